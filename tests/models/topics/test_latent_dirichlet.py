from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import sparse
from scipy.optimize import linear_sum_assignment, minimize
from scipy.special import gammaln
from sklearn.base import clone
from sklearn.decomposition import LatentDirichletAllocation
from sklearn.exceptions import NotFittedError

import likely
from likely import LatentDirichlet
from likely.core.errors import DataError, LikelyWarning
from likely.inference import CollapsedGibbs, VariationalBayes

BOTH = [VariationalBayes(), VariationalBayes(batch_size=64, max_iter=15, tol=0.0), CollapsedGibbs(150, 50)]
NAMES = ["variational", "online", "gibbs"]


def planted(seed=0, documents=300, words=60, topics=4, length=80):
    """Documents of known topics: each topic owns a part of the words, and shares a little with all."""
    rng = np.random.default_rng(seed)
    phi = np.full((topics, words), 0.05 / words)
    for k in range(topics):
        own = slice(k * words // topics, (k + 1) * words // topics)
        phi[k, own] += 0.95 * rng.dirichlet(np.full(words // topics, 2.0))
    theta = rng.dirichlet(np.full(topics, 0.3), documents)
    X = np.array([rng.multinomial(length, row @ phi) for row in theta])
    return X, phi, theta


def fitted(inference=BOTH[0], topics=4, **more):
    X, _, _ = planted()
    return LatentDirichlet(topics, inference, random_state=0, **more).fit(X)


def dirichlet_multinomial(counts, prior):
    """log p(topics of each document's words | α): counts (n, K)."""
    total = prior.sum()
    own = (gammaln(prior + counts) - gammaln(prior)).sum(-1)
    return gammaln(total) - gammaln(total + counts.sum(-1)) + own


def exact_log_prob(words, phi, prior):
    """log p(words | φ, α), summed over all assignments: Dirichlet-multinomial of z times the product of φ."""
    topics = len(phi)
    total = -np.inf
    for code in range(topics ** len(words)):
        z = [(code // topics**i) % topics for i in range(len(words))]
        counts = np.bincount(z, minlength=topics)
        total = np.logaddexp(total, dirichlet_multinomial(counts, prior) + np.log(phi[z, words]).sum())
    return total


# --- topics ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("inference", "topics"), [(BOTH[0], 4), (BOTH[1], 2), (CollapsedGibbs(300, 200), 4)], ids=NAMES
)
def test_planted_topics_are_recovered(inference, topics):
    """Of 60 seeds the distances end at 0.044. Of four topics batches merge two now and then, as in scikit-learn."""
    X, phi, theta = planted(topics=topics)
    model = LatentDirichlet(topics, inference, random_state=0).fit(X)
    distance = np.abs(model.topic_word_[:, None] - phi[None]).sum(-1) / 2  # total variation
    recovered, true = linear_sum_assignment(distance)
    assert distance[recovered, true].max() < 0.1
    shares = np.abs(model.transform(X)[:, recovered] - theta[:, true]).mean()
    assert shares < 0.04


@pytest.mark.parametrize("learn_prior", [False, True])
@pytest.mark.parametrize("passes", [1, 3, 10])
def test_the_bound_of_all_documents_never_falls(passes, learn_prior):
    X, _, _ = planted(1, documents=60, length=30)
    inference = VariationalBayes(max_iter=60, tol=0.0, passes=passes)
    model = LatentDirichlet(6, inference, learn_prior=learn_prior, random_state=3).fit(X)
    assert len(model.history_) == 60
    assert np.diff(model.history_).min() >= -1e-10 * abs(model.history_[-1])
    assert model.history_[-1] > model.history_[0]


def test_the_trace_is_the_bound_of_scikit_learn():
    """The last value before topics stop moving: scikit-learn's bound at the same topics and the same γ optimum."""
    X, _, _ = planted(2, documents=50)
    model = LatentDirichlet(3, VariationalBayes(max_iter=2000, tol=1e-13, passes=200), random_state=0).fit(X)
    other = twin(model, X)
    np.testing.assert_allclose(model.history_[-1], other.score(X), rtol=1e-6)


def twin(model, X):
    """scikit-learn's model with our topics."""
    topics = len(model.components_)
    prior, smooth = float(model.document_prior_[0]), model.topic_prior_
    other = LatentDirichletAllocation(
        topics, doc_topic_prior=prior, topic_word_prior=smooth, max_iter=1, mean_change_tol=1e-12, random_state=0
    )
    other.set_params(max_doc_update_iter=20_000).fit(X)
    other.components_ = model.components_
    from sklearn.decomposition._lda import _dirichlet_expectation_2d

    other.exp_dirichlet_component_ = np.exp(_dirichlet_expectation_2d(other.components_))
    return other


def test_documents_and_both_perplexities_equal_those_of_scikit_learn(monkeypatch):
    X, _, _ = planted(3, documents=40)
    model = fitted()
    monkeypatch.setattr("likely.models.topics.latent_dirichlet.TOL", 1e-12)
    monkeypatch.setattr("likely.models.topics.latent_dirichlet.PASSES", 20_000)
    other = twin(model, X)
    np.testing.assert_allclose(model.transform(X), other.transform(X), atol=1e-7)
    np.testing.assert_allclose(model.perplexity(X, "bound"), other.perplexity(X), rtol=1e-8)


def test_one_step_from_the_same_topics_is_that_of_scikit_learn():
    """Full-batch M-step: λ = β + expected counts, after documents are inferred to the end."""
    from likely.models.topics.ascent import Documents, Topics
    from likely.models.topics.corpus import Corpus

    X, _, _ = planted(4, documents=30)
    start = np.random.default_rng(0).gamma(100, 0.01, (3, X.shape[1]))
    table = sparse.csr_array(X)
    corpus = Corpus.of(
        table.indptr.astype(np.int64), table.indices.astype(np.int32), table.data.astype(float), X.shape[1]
    )
    topics = Topics(start, np.full(3, 0.4), 0.2)
    topics.expect()
    documents = Documents(corpus, topics)
    documents.infer(20_000, 1e-13)
    ours = 0.2 + documents.expected_counts()[:, :3].T
    other = LatentDirichletAllocation(3, doc_topic_prior=0.4, topic_word_prior=0.2, mean_change_tol=1e-13)
    other.set_params(max_doc_update_iter=20_000, max_iter=1, random_state=0).fit(X)
    other.components_, other.doc_topic_prior_ = start, 0.4
    from sklearn.decomposition._lda import _dirichlet_expectation_2d

    other.exp_dirichlet_component_ = np.exp(_dirichlet_expectation_2d(start))
    _, statistics = other._e_step(X.astype(float), cal_sstats=True, random_init=False)
    np.testing.assert_allclose(ours, 0.2 + statistics, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("inference", [VariationalBayes(), CollapsedGibbs(20, 10)], ids=["variational", "gibbs"])
def test_a_single_topic_is_the_smoothed_frequency_of_words(inference):
    X, _, _ = planted()
    model = LatentDirichlet(1, inference, topic_prior=0.3, random_state=0).fit(X)
    np.testing.assert_allclose(model.components_[0], X.sum(0) + 0.3, rtol=1e-9)
    np.testing.assert_allclose(model.transform(X[:5]), np.ones((5, 1)))


def test_online_is_about_as_good_as_all_documents_at_once():
    """Of two topics, which batches cannot merge; of 15 seeds the perplexities differ by 0.0014."""
    X, _, _ = planted(5, documents=600, topics=2)
    test = X[500:]
    batch = LatentDirichlet(2, random_state=0).fit(X[:500])
    online = LatentDirichlet(2, VariationalBayes(batch_size=50, max_iter=10, tol=0.0), random_state=0).fit(X[:500])
    stream = LatentDirichlet(2, VariationalBayes(), random_state=0)
    for _ in range(10):
        for first in range(0, 500, 50):
            stream.partial_fit(X[first : first + 50], total_documents=500)
    best = batch.perplexity(test)
    assert online.perplexity(test) < 1.02 * best
    assert stream.perplexity(test) < 1.02 * best
    assert (stream.n_steps_, stream.n_documents_) == (100, 5000)


@pytest.mark.parametrize(
    ("inference", "smooth", "rtol"),
    [(VariationalBayes(60, tol=0.0), 0.01, 0.1), (CollapsedGibbs(300, 290), None, 0.25)],
    ids=["variational", "gibbs"],
)
def test_a_learned_prior_is_that_of_the_documents(inference, smooth, rtol):
    """Topics without a common word: α is that of largest likelihood for the counts of the topics, which are known.

    Of 50 seeds the bound ends within 0.04. A chain gives some of the rare words of a document to its main topic, which
    takes a tenth from α; of 100 seeds it ended within 0.19.
    """
    rng = np.random.default_rng(0)
    theta = rng.dirichlet([0.6, 0.3, 0.15], 400)
    X = np.array([rng.multinomial(60, row.repeat(8) / 8) for row in theta])
    model = LatentDirichlet(3, inference, topic_prior=smooth, learn_prior=True, random_state=0).fit(X)
    order = [int(model.topic_word_[:, 8 * k : 8 * k + 8].sum(1).argmax()) for k in range(3)]
    counts = X.reshape(400, 3, 8).sum(2)
    best = minimize(lambda free: -dirichlet_multinomial(counts, np.exp(free)).sum(), np.zeros(3))
    np.testing.assert_allclose(model.document_prior_[order], np.exp(best.x), rtol=rtol)


# --- documents ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("inference", BOTH, ids=NAMES)
def test_documents_are_inferred_one_by_one(inference):
    X, _, _ = planted()
    model = LatentDirichlet(4, inference, random_state=0).fit(X)
    order = np.random.default_rng(0).permutation(len(X))
    shares = model.transform(X)
    np.testing.assert_array_equal(model.transform(X[order]), shares[order])
    np.testing.assert_array_equal(model.transform(X[:7]), shares[:7])
    np.testing.assert_allclose(shares.sum(1), 1, rtol=1e-12)


def test_the_posterior_is_a_dirichlet_whose_mean_is_the_transform():
    X, _, _ = planted()
    model = fitted()
    posterior = model.posterior(X[:9])
    assert isinstance(posterior, torch.distributions.Dirichlet)
    np.testing.assert_allclose(posterior.mean, model.transform(X[:9]), rtol=1e-12)
    mass = posterior.concentration.sum(1)  # one for each word, and the prior
    np.testing.assert_allclose(mass, X[:9].sum(1) + model.document_prior_.sum(), rtol=1e-6)


def test_log_prob_is_below_the_exact_one_and_near_it():
    model = fitted(CollapsedGibbs(150, 50), topics=3, document_prior=0.8)
    documents = [[0, 1, 0], [20, 21], [0, 20, 40, 41], [5]]
    exact = [exact_log_prob(words, model.topic_word_, model.document_prior_) for words in documents]
    gap = np.array(exact) - model.log_prob(documents)
    assert gap.min() > 0
    assert gap.max() < 0.5


def test_perplexity_of_uniform_topics_is_the_number_of_words():
    X, _, _ = planted()
    model = fitted(CollapsedGibbs(5, 2))
    model.components_ = np.ones_like(model.components_)
    np.testing.assert_allclose(model.perplexity(X), 60, rtol=1e-12)
    assert model.score(X) == pytest.approx(model.log_prob(X).mean())


def test_perplexity_is_that_of_the_predictive_distribution():
    X, _, _ = planted()
    model = fitted()
    first = model.perplexity(X, random_state=1)
    assert first == model.perplexity(X, random_state=1) != model.perplexity(X, random_state=2)
    # two words, one seen and one scored, in both orders
    halves = []
    for seen, scored in ((0, 30), (30, 0)):
        share = model.transform([[seen]])[0]
        halves.append(1 / (share @ model.topic_word_[:, scored]))
    perplexities = {round(model.perplexity([[0, 30]], random_state=seed), 9) for seed in range(20)}
    assert perplexities == {round(value, 9) for value in halves}


def test_kinds_of_x_agree():
    X, _, _ = planted(documents=40)
    tokens = [np.repeat(np.arange(60), row).tolist() for row in X]
    names = [f"w{i}" for i in range(60)]
    quick = VariationalBayes(max_iter=5, tol=0.0)
    models = [
        LatentDirichlet(4, quick, random_state=0).fit(given)
        for given in (X, X.astype(float), sparse.csr_matrix(X), sparse.coo_array(X), torch.from_numpy(X), tokens)
    ]
    for model in models[1:]:
        np.testing.assert_array_equal(model.components_, models[0].components_)
    frame = pd.DataFrame(X, columns=names)
    model = LatentDirichlet(4, quick, random_state=0).fit(frame)
    assert model.top_words(3) == models[0].top_words(3, names)
    assert models[0].top_words(2)[0] == [int(word[1:]) for word in model.top_words(2)[0]]
    np.testing.assert_array_equal(model.transform(frame), models[0].transform(X))


def test_a_document_without_words_has_the_mean_of_the_prior():
    X, _, _ = planted(documents=50)
    X[[7, 20]] = 0
    for inference in (VariationalBayes(), CollapsedGibbs(20, 10), VariationalBayes(batch_size=1, max_iter=2, tol=0.0)):
        model = LatentDirichlet(4, inference, document_prior=[1.0, 2.0, 3.0, 4.0], random_state=0)
        with pytest.warns(
            LikelyWarning, match=r"2 of 50 documents have no words \(the first is document 7\); they say"
        ):
            model.fit(X)
        np.testing.assert_allclose(model.transform(X[[7]])[0], [0.1, 0.2, 0.3, 0.4], rtol=1e-12)
        assert model.log_prob(X[[7]])[0] == 0
    with pytest.warns(LikelyWarning, match="no words"):
        full = LatentDirichlet(4, random_state=0).fit(X)
    alone = LatentDirichlet(4, random_state=0).fit(np.delete(X, [7, 20], axis=0))
    np.testing.assert_allclose(full.components_, alone.components_, rtol=1e-9)
    assert np.isfinite(full.perplexity(X))


def test_sampled_documents_have_the_lengths_and_topics_of_the_model(seed):
    model = fitted()
    drawn = model.sample(2000, random_state=seed, length=50)
    assert drawn.shape == (2000, 60)
    np.testing.assert_array_equal(np.asarray(drawn.sum(1)).ravel(), 50)
    expected = model.document_prior_ / model.document_prior_.sum() @ model.topic_word_
    share = np.asarray(drawn.sum(0)).ravel() / 100_000
    # a document's words share its θ: at most 50 times the variance of independent words; six standard deviations
    assert np.all(np.abs(share - expected) < 6 * np.sqrt(50 * expected / 100_000))
    np.testing.assert_array_equal(np.asarray(model.sample(3, length=[1, 0, 7]).sum(1)).ravel(), [1, 0, 7])
    np.testing.assert_array_equal(model.sample(5), model.sample(5))
    as_sparse, as_tokens = (fitted().fit(form) for form in (sparse.csr_array(planted()[0]), [[0, 1], [2, 59], [1, 0]]))
    assert sparse.issparse(as_sparse.sample(2))
    assert [len(tokens) for tokens in as_tokens.sample(2, length=[3, 4])] == [3, 4]
    _, theta = model.sample(4, return_hidden=True)
    np.testing.assert_allclose(theta.sum(1), 1)
    for length in (-1, 0.5, [1, 2]):
        with pytest.raises(DataError, match="must be an integer from 0, or one for each of 3 documents"):
            model.sample(3, length=length)


# --- as an estimator ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("inference", BOTH, ids=NAMES)
def test_the_same_seed_gives_the_same_bits(inference):
    X, _, _ = planted(documents=50)
    first, second, other = (LatentDirichlet(4, inference, random_state=seed).fit(X) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first.components_, second.components_)
    assert first.history_ == second.history_ != other.history_


@pytest.mark.parametrize("inference", BOTH, ids=NAMES)
def test_saved_and_loaded_it_is_the_same(inference, tmp_path):
    X, _, _ = planted(documents=50)
    frame = pd.DataFrame(X, columns=[f"w{i}" for i in range(60)])
    model = LatentDirichlet(3, inference, document_prior=(0.2, 0.3, 0.4), random_state=0).fit(frame)
    model.save(tmp_path / "topics.likely")
    loaded = likely.load(tmp_path / "topics.likely")
    assert loaded.get_params() == model.get_params()
    np.testing.assert_array_equal(loaded.transform(frame), model.transform(frame))
    assert loaded.perplexity(frame, "bound") == model.perplexity(frame, "bound")
    assert (loaded.history_, loaded.top_words(4)) == (model.history_, model.top_words(4))
    if isinstance(inference, VariationalBayes):
        np.testing.assert_array_equal(loaded.partial_fit(frame).components_, model.partial_fit(frame).components_)


def test_scikit_learn_conventions():
    X, _, _ = planted(documents=30)
    model = LatentDirichlet(3, "variational_bayes(max_iter=5, tol=0)", random_state=0)
    with pytest.raises(NotFittedError):
        model.transform(X)
    copy = clone(model).set_params(n_components=2)
    np.testing.assert_allclose(copy.fit_transform(X), copy.transform(X))
    assert copy.get_feature_names_out().tolist() == ["topic0", "topic1"]
    assert copy.set_params(inference=VariationalBayes()).set_params(inference__max_iter=3).inference.max_iter == 3
