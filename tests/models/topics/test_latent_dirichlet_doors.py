"""Latent Dirichlet allocation at the door: what is refused; real documents and several processes."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy import sparse
from tests.models.topics.test_latent_dirichlet import fitted, planted

from likely import LatentDirichlet
from likely.core.errors import ConvergenceWarning, DataError, SpecError
from likely.inference import CollapsedGibbs, VariationalBayes


# --- bad input ------------------------------------------------------------------------------------------------------
def with_value(value, dtype=float):
    X = planted(documents=5)[0].astype(dtype)
    X[3, 7] = value
    return X


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize(
    ("value", "message"),
    [
        (-2, r"X has a negative value \(-2\) at document 3, word 7; LatentDirichlet needs counts of words: 0, 1, 2, …"),
        (0.5, r"X has a fraction \(0.5\) at document 3, word 7; .* \(not tf-idf or frequencies\)"),
        (1e12, r"X has a value too large to count \(1e\+12\) at document 3, word 7"),
    ],
)
def test_what_is_no_count_is_refused_by_its_place(form, value, message):
    with pytest.raises(DataError, match=message):
        LatentDirichlet(2).fit(form(with_value(value)))


def test_nan_is_refused_by_its_place():
    with pytest.raises(DataError, match="X contains NaN at row 3, column 7"):
        LatentDirichlet(2).fit(with_value(np.nan))
    with pytest.raises(DataError, match="X has NaN at document 3, word 7"):
        LatentDirichlet(2).fit(sparse.csr_matrix(with_value(np.nan)))


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.zeros((3, 4)), "X has no words: all counts of its 3 documents are 0"),
        ([[], []], "X has no words: all counts of its 2 documents are 0"),
        ([], "X is an empty list"),
        (sparse.csr_matrix((0, 4)), r"X is empty: its shape is \(0, 4\)"),
        (["the cat", "sat"], "Document 0 of X is text; give token ids, or counts"),
        ([[0, 1], [0.5]], "Document 1 of X has values of kind float64; in a list, each document is a list of token"),
        ([[0, 1], [2, -1]], "Document 1 of X has the token -1 at position 1; ids are 0, 1, 2"),
        ([[[0, 1]]], r"Document 0 of X has shape \(1, 2\)"),
        (np.zeros((2, 3, 4)), r"X has shape \(2, 3, 4\); LatentDirichlet needs one row of counts a document"),
    ],
)
def test_other_documents_are_refused(X, message):
    with pytest.raises(DataError, match=message):
        LatentDirichlet(2).fit(X)


def test_words_that_the_model_does_not_know_are_named():
    model = fitted(VariationalBayes(max_iter=2, tol=0.0))
    with pytest.raises(
        DataError, match=r"Document 1 of X has the word 60 at position 2, but the model knows the words"
    ):
        model.transform([[0, 1], [3, 59, 60]])
    for wide in (np.ones((2, 61)), sparse.csr_matrix(np.ones((2, 61)))):
        with pytest.raises(DataError, match="X has 61 features, but LatentDirichlet is expecting 60 features as input"):
            model.transform(wide)
    with pytest.raises(DataError, match="vocabulary has 2 names; the model knows 60 words"):
        model.top_words(2, ["a", "b"])
    with pytest.raises(DataError, match="X has no words, so that there is nothing to score"):
        model.perplexity([[]])
    with pytest.raises(SpecError, match='method=\'perfect\' is unknown; use "completion" or "bound"'):
        model.perplexity([[0]], "perfect")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_components": 0}, r"n_components=0\): n_components must be a positive integer"),
        ({"document_prior": -1.0}, r"document_prior=-1.0\): document_prior must be a positive number or 10 of them"),
        ({"document_prior": [1.0, 2.0]}, "document_prior must be a positive number or 10 of them"),
        ({"topic_prior": "big"}, "topic_prior must be a positive number, or None"),
        ({"inference": "gibs"}, "Unknown inference 'gibs'"),
        ({"inference": 3}, r"inference must be one of the inference specs \(.*CollapsedGibbs.*VariationalBayes"),
    ],
)
def test_other_arguments_are_refused(arguments, message):
    with pytest.raises(SpecError, match=message):
        LatentDirichlet(**arguments).fit([[0, 1]])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: VariationalBayes(max_iter=0), "max_iter must be a positive integer"),
        (lambda: VariationalBayes(batch_size=0), "batch_size must be a positive integer or None"),
        (lambda: VariationalBayes(learning_decay=0.5), "learning_decay must be above 0.5 and at most 1"),
        (lambda: CollapsedGibbs(sweeps=10, warmup=10), "warmup must be from 0 to below sweeps=10"),
        (lambda: CollapsedGibbs(thin=0), "thin must be a positive integer"),
    ],
)
def test_other_specs_are_refused(make, message):
    with pytest.raises(SpecError, match=message):
        make()


def test_a_fit_that_ends_early_says_so_and_gibbs_has_no_partial_fit():
    X, _, _ = planted(documents=30)
    with pytest.warns(ConvergenceWarning, match=r"The bound still grew after 2 iterations; raise max_iter or tol of"):
        LatentDirichlet(4, VariationalBayes(max_iter=2), random_state=0).fit(X)
    with pytest.raises(SpecError, match="partial_fit is a step of online VariationalBayes; CollapsedGibbs"):
        LatentDirichlet(4, CollapsedGibbs()).partial_fit(X)


# --- real documents and several processes ---------------------------------------------------------------------------
def together(words, X):
    """The mean of log p(v, w) − log p(v) − log p(w) over pairs of words, in documents that have both, or one."""
    seen = (X[:, words] > 0).toarray().astype(float)
    one, both = seen.mean(0) + 0.5 / len(seen), seen.T @ seen / len(seen) + 0.5 / len(seen)
    return np.log(both / np.outer(one, one))[np.triu_indices(len(words), 1)].mean()


def test_topics_of_news_predict_held_out_words_better_than_frequency(shared_data):
    """Of 20 seeds perplexities are at most 0.80 of that of frequencies, and 0.01 apart; the words of a topic come
    together by 0.37 or more, 0.07 apart, and frequent words by 0.08."""
    with np.load(shared_data / "ap_news.npz", allow_pickle=False) as file:
        parts = (file["counts"].astype(np.int64), file["indices"], file["indptr"])
        X = sparse.csr_array(parts, shape=tuple(file["shape"]))
    train, test = X[:500], X[2000:]
    frequency = LatentDirichlet(1, VariationalBayes(max_iter=2, tol=0.0), topic_prior=0.05).fit(train)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        models = [
            LatentDirichlet(10, inference, topic_prior=0.05, random_state=0).fit(train)
            for inference in (VariationalBayes(max_iter=20), CollapsedGibbs(100, 50))
        ]
    assert together(frequency.top_words(10)[0], test) < 0.1
    for model in models:
        assert model.perplexity(test) < 0.9 * frequency.perplexity(test)
        assert np.mean([together(words, test) for words in model.top_words(10)]) > 0.2


SCRIPT = """
import sys
import numpy as np
from likely import LatentDirichlet
from likely.core import distributed
from likely.inference import CollapsedGibbs, VariationalBayes

X = np.random.default_rng(0).poisson(np.kron(np.eye(3), np.full((17, 5), 2.0)) + 0.1)
answers = {}
for name, inference in {
    "all": VariationalBayes(max_iter=30, tol=0.0),
    "batches": VariationalBayes(max_iter=5, tol=0.0, batch_size=10),
    "gibbs": CollapsedGibbs(30, 10),
}.items():
    model = LatentDirichlet(3, inference, learn_prior=True, random_state=0).fit(X)
    answers[name], answers[name + "/prior"] = model.components_, model.document_prior_
    answers[name + "/trace"] = np.array(model.history_)
"""


def test_several_processes_find_what_one_finds(by_processes):
    alone, first, second = by_processes(SCRIPT)
    for name, value in alone.items():
        np.testing.assert_array_equal(first[name], second[name], err_msg=name)
        np.testing.assert_allclose(first[name], value, rtol=1e-8, atol=1e-8 * np.abs(value).max(), err_msg=name)
