"""Naive Bayes: scikit-learn's where it has the model, and what follows from p(y) Πⱼ p(xⱼ | y) where it has not."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import stats
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.naive_bayes import BernoulliNB, CategoricalNB, GaussianNB
from sklearn.utils.estimator_checks import check_estimator

import likely
from likely import NaiveBayes
from likely.likelihoods import (
    Bernoulli,
    Beta,
    Categorical,
    Exponential,
    Gamma,
    Laplace,
    MultivariateNormal,
    NegativeBinomial,
    Normal,
    Ordinal,
    Poisson,
    Product,
    StudentT,
)

KINDS = [Normal(), Poisson(), Bernoulli(), Categorical(4), Gamma(), Beta()]
"""One likelihood for each column of `mixed`."""


def mixed(n, classes=3, seed=0):
    """Rows of all kinds, whose columns are independent given the label, and the labels."""
    rng = np.random.default_rng(seed)
    y = rng.integers(classes, size=n)
    columns = [
        rng.normal(y, 1.0 + y),
        rng.poisson(1.0 + 2 * y),
        rng.random(n) < (1 + y) / (classes + 1),
        (rng.integers(4, size=n) + y) % 4 * (rng.random(n) < 0.7),
        rng.gamma(1.0 + y, 2.0, size=n),
        rng.beta(1.0 + y, 2.0, size=n),
    ]
    return np.column_stack(columns).astype(float), y


# --- equality -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("load", [load_iris, load_wine])
@pytest.mark.parametrize("weighted", [False, True])
def test_numbers_are_those_of_gaussian_naive_bayes(load, weighted):
    X, y = load(return_X_y=True)
    weight = np.random.default_rng(0).uniform(0.1, 3, len(y)) if weighted else None
    model, peer = NaiveBayes().fit(X, y, weight), GaussianNB(var_smoothing=0.0).fit(X, y, weight)
    np.testing.assert_allclose(model.predict_proba(X), peer.predict_proba(X), rtol=0, atol=1e-8)
    np.testing.assert_allclose(model.predict_log_proba(X), peer.predict_log_proba(X), rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(model.joint_log_prob(X), peer.predict_joint_log_proba(X), rtol=1e-7, atol=1e-7)
    np.testing.assert_array_equal(model.predict(X), peer.predict(X))
    assert model.score(X, y, weight) == pytest.approx(peer.score(X, y, weight))


@pytest.mark.parametrize("smoothing", [0.01, 1.0, 7.5])
def test_bits_are_those_of_bernoulli_naive_bayes(smoothing):
    X, y = load_digits(return_X_y=True)
    X = (X > 7).astype(float)
    model, peer = NaiveBayes(Bernoulli(), smoothing).fit(X, y), BernoulliNB(alpha=smoothing).fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X), peer.predict_proba(X), rtol=0, atol=1e-8)


@pytest.mark.parametrize("smoothing", [0.01, 1.0, 7.5])
@pytest.mark.parametrize("likelihood", [Categorical(), Ordinal()], ids=repr)
def test_labels_are_those_of_categorical_naive_bayes(smoothing, likelihood):
    """An Ordinal without inputs has a probability of its own for each label, as a Categorical has."""
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=400)
    X = (rng.integers([2, 3, 4, 5, 5], size=(400, 5)) * (rng.random((400, 5)) < 0.3 + 0.2 * y[:, None])).astype(int)
    weight = rng.uniform(0, 2, 400)
    peer = CategoricalNB(alpha=smoothing).fit(X, y, weight)
    model = NaiveBayes(likelihood, smoothing).fit(X, y, weight)
    np.testing.assert_allclose(model.predict_proba(X), peer.predict_proba(X), rtol=0, atol=1e-8)


def test_given_class_probabilities_replace_the_frequencies():
    X, y = load_iris(return_X_y=True)
    prior = [0.7, 0.2, 0.1]
    model, peer = NaiveBayes(class_prior=prior).fit(X, y), GaussianNB(priors=prior, var_smoothing=0.0).fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X), peer.predict_proba(X), rtol=0, atol=1e-8)


def test_one_vector_with_a_covariance_is_quadratic_discriminant_analysis():
    X, y = load_iris(return_X_y=True)
    model = NaiveBayes(MultivariateNormal()).fit(X, y)
    joint = [
        stats.multivariate_normal(X[y == k].mean(0), np.cov(X[y == k].T, bias=True)).logpdf(X) + np.log(1 / 3)
        for k in range(3)
    ]
    np.testing.assert_allclose(model.joint_log_prob(X), np.column_stack(joint), rtol=1e-6)


def test_columns_of_mixed_kinds_multiply():
    """log p(x, y) − log p(y) is the sum over models of one column each."""
    X, y = mixed(500)
    together = NaiveBayes(KINDS).fit(X, y)
    alone = [NaiveBayes(kind).fit(X[:, [j]], y).joint_log_prob(X[:, [j]]) for j, kind in enumerate(KINDS)]
    prior = np.log(np.bincount(y) / len(y))
    np.testing.assert_allclose(together.joint_log_prob(X) - prior, sum(alone) - len(KINDS) * prior, atol=1e-8)


@pytest.mark.parametrize("likelihood", [StudentT(), Laplace(), NegativeBinomial(), Exponential(), Gamma()], ids=repr)
def test_each_class_is_the_weighted_estimate_of_its_rows(likelihood):
    rng = np.random.default_rng(0)
    X, y = rng.poisson(3.0, size=(90, 2)) + 1.0, rng.integers(2, size=90)
    weight = rng.uniform(0.5, 2, 90)
    joint = NaiveBayes(likelihood).fit(X, y, weight).joint_log_prob(X)
    for k in range(2):
        own = torch.from_numpy(X[y == k]), torch.from_numpy(weight[y == k])
        etas = [likelihood.weighted_mle(own[0][:, j], own[1]) for j in range(2)]
        rows = sum(likelihood.log_prob(eta, torch.from_numpy(X[:, j])) for j, eta in enumerate(etas))
        expected = rows.numpy() + np.log(weight[y == k].sum() / weight.sum())
        np.testing.assert_allclose(joint[:, k], expected, atol=1e-6)


# --- invariance -----------------------------------------------------------------------------------------------------
def test_a_weight_of_two_is_repetition_and_of_zero_absence():
    X, y = mixed(300)
    weight = np.random.default_rng(1).integers(0, 3, 300)
    weighed = NaiveBayes(KINDS).fit(X, y, weight)
    repeated = NaiveBayes(KINDS).fit(np.repeat(X, weight, 0), np.repeat(y, weight))
    np.testing.assert_allclose(weighed.eta_, repeated.eta_, atol=1e-8)
    np.testing.assert_allclose(weighed.predict_proba(X), repeated.predict_proba(X), atol=1e-9)


def test_rows_without_a_label_do_not_count():
    X, y = mixed(300)
    labels = y.astype(float)
    labels[::3] = np.nan
    kept = ~np.isnan(labels)
    some, alone = NaiveBayes(KINDS).fit(X, labels), NaiveBayes(KINDS).fit(X[kept], labels[kept])
    np.testing.assert_allclose(some.predict_proba(X), alone.predict_proba(X), atol=1e-9)
    assert some.score(X, labels) == alone.score(X[kept], labels[kept])
    log_prob = some.log_prob(X, labels)
    np.testing.assert_array_equal(log_prob[~kept], 0.0)
    np.testing.assert_allclose(log_prob[kept], np.log(some.predict_proba(X)[kept, y[kept]]))


def test_a_missing_entry_is_a_model_without_that_column_for_that_row():
    X, y = mixed(300)
    model = NaiveBayes(KINDS).fit(X, y)
    for j in range(len(KINDS)):
        holes = X.copy()
        holes[:, j] = np.nan
        rest = [column for column in range(len(KINDS)) if column != j]
        without = NaiveBayes([KINDS[column] for column in rest]).fit(X[:, rest], y)
        np.testing.assert_allclose(model.predict_proba(holes), without.predict_proba(X[:, rest]), atol=1e-8)
    np.testing.assert_allclose(model.predict_proba(np.full((1, len(KINDS)), np.nan)), [np.bincount(y) / len(y)])


def test_missing_entries_in_training_leave_the_others_of_the_row():
    X, y = mixed(300)
    holes = X.copy()
    holes[np.random.default_rng(0).random(X.shape) < 0.3] = np.nan
    model = NaiveBayes(KINDS).fit(holes, y)
    joint = np.log(np.bincount(y) / len(y)) * np.ones((300, 3))
    for j, kind in enumerate(KINDS):
        kept = ~np.isnan(holes[:, j])
        alone = NaiveBayes(kind, class_prior=[0.2, 0.3, 0.5]).fit(holes[kept][:, [j]], y[kept])
        joint += alone.joint_log_prob(X[:, [j]]) - np.log([0.2, 0.3, 0.5])
    np.testing.assert_allclose(model.joint_log_prob(X), joint, atol=1e-6)


@pytest.mark.parametrize("holes", [0.0, 0.2])
def test_pieces_give_what_all_rows_give(holes):
    X, y = mixed(400)
    X[np.random.default_rng(0).random(X.shape) < holes] = np.nan
    weight = np.random.default_rng(1).uniform(0, 2, 400)
    whole, pieces = NaiveBayes(KINDS).fit(X, y, weight), NaiveBayes(KINDS)
    for rows in np.array_split(np.argsort(y, kind="stable"), 7):  # the first pieces lack some classes
        pieces.partial_fit(X[rows], y[rows], classes=[2, 1, 0], sample_weight=weight[rows])
    np.testing.assert_allclose(pieces.class_prior_, whole.class_prior_)
    np.testing.assert_allclose(pieces.predict_proba(X), whole.predict_proba(X), atol=1e-8)


def test_rows_can_be_added_to_a_fit_and_to_a_loaded_model(tmp_path):
    X, y = mixed(200)
    whole = NaiveBayes(KINDS).fit(X, y)
    model = NaiveBayes(KINDS).fit(X[:100], y[:100])
    model.save(tmp_path / "half.likely")
    for half in (model, likely.load(tmp_path / "half.likely")):
        half.partial_fit(X[100:], y[100:])
        np.testing.assert_allclose(half.predict_proba(X), whole.predict_proba(X), atol=1e-8)


def test_a_class_that_was_not_seen_yet_has_no_probability():
    X, y = mixed(100, classes=2)
    model = NaiveBayes(KINDS).partial_fit(X, y, classes=[0, 1, 2])
    two = NaiveBayes(KINDS).fit(X, y)
    np.testing.assert_allclose(
        model.predict_proba(X), np.column_stack([two.predict_proba(X), np.zeros(100)]), atol=1e-9
    )
    assert bool(np.isfinite(model.predict_log_proba(X)).all())
    assert set(model.joint_sample(200, random_state=0)[1]) == {0, 1}


def test_numbers_far_from_zero_keep_their_spread():
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=3000)
    X = rng.normal(size=(3000, 3)) + 0.5 * y[:, None]
    near, far = NaiveBayes().fit(X, y), NaiveBayes().fit(X + 1e6, y)
    np.testing.assert_allclose(far.predict_proba(X + 1e6), near.predict_proba(X), atol=1e-7)


def test_blocks_do_not_change_the_answer(monkeypatch):
    X, y = mixed(500)
    whole = NaiveBayes(KINDS).fit(X, y).predict_proba(X)
    monkeypatch.setattr("likely.models.emissions.part.BLOCK", 6 * 17)
    np.testing.assert_allclose(NaiveBayes(KINDS).fit(X, y).predict_proba(X), whole, atol=1e-9)


def test_a_fit_and_a_prediction_need_less_than_a_copy_of_the_rows():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60_000, 50)), rng.integers(2, size=60_000)
    NaiveBayes().fit(X[:10], y[:10]).predict(X[:10])
    most = []

    class Watch(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            out = function(*args, **(kwargs or {}))
            if isinstance(out, torch.Tensor) and out.untyped_storage().data_ptr() != X.ctypes.data:
                most.append(out.untyped_storage().nbytes())
            return out

    tracemalloc.start()  # what numpy holds
    NaiveBayes().fit(X, y).predict(X)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < X.nbytes / 4
    with Watch():  # what torch makes
        NaiveBayes().fit(X, y).predict(X)
    assert max(most) < X.nbytes / 4


# --- a generative model ---------------------------------------------------------------------------------------------
def test_samples_refitted_give_the_model_back(seed):
    """Fractions of 60,000 rows within 5 standard errors; what is allowed of probabilities is said below."""
    X, y = mixed(2000)
    model = NaiveBayes(KINDS, random_state=seed).fit(X, y)
    rows, labels = model.joint_sample(60_000)
    assert rows.shape == (60_000, len(KINDS))
    again = NaiveBayes(KINDS).fit(rows, labels)
    # log p of 20,000 rows a class moves by about ½·(numbers of η)/20,000 on average, and 40 times that at most here
    gap = model.predict_log_proba(X) - again.predict_log_proba(X)
    assert np.sqrt((model.predict_proba(X) * gap**2).sum(1).mean()) < 0.05
    np.testing.assert_allclose(again.class_prior_, model.class_prior_, atol=5 * 0.5 / np.sqrt(60_000))
    repeat = NaiveBayes(KINDS, random_state=seed).fit(X, y).joint_sample(60_000)
    np.testing.assert_array_equal(repeat[0], rows)
    np.testing.assert_array_equal(repeat[1], labels)


def test_probabilities_of_its_own_data_are_calibrated(seed):
    """Of the rows given p, a share p has the label: 30 z-scores, of which none exceeds 5 (false alarm 2e-5)."""
    model = NaiveBayes(KINDS, random_state=seed).fit(*mixed(2000))
    rows, labels = model.joint_sample(40_000)
    probability = model.predict_proba(rows)
    for k in range(3):
        order = np.array_split(np.argsort(probability[:, k]), 10)
        for group in order:
            p, hit = probability[group, k], labels[group] == k
            assert abs((hit - p).sum()) < 5 * np.sqrt((p * (1 - p)).sum()) + 1e-3


def test_the_distribution_of_a_label_is_a_torch_categorical():
    X, y = mixed(100)
    model = NaiveBayes(KINDS).fit(X, y)
    distribution = model.predict_dist(X)
    assert isinstance(distribution, torch.distributions.Categorical)
    np.testing.assert_allclose(distribution.probs.numpy(), model.predict_proba(X))
    np.testing.assert_allclose(distribution.log_prob(torch.from_numpy(y)).numpy(), model.log_prob(X, y))


# --- names, files, tables -------------------------------------------------------------------------------------------
def test_likelihoods_by_name_by_list_and_as_a_product_are_the_same():
    X, y = mixed(100)
    frame = pd.DataFrame(X, columns=list("abcdef"))
    expected = NaiveBayes(KINDS).fit(frame, y).predict_proba(frame)
    by_name = dict(zip("fedcba", KINDS[::-1], strict=True))
    for likelihood in (by_name, Product(dict(zip("uvwxyz", KINDS, strict=True)))):
        np.testing.assert_allclose(NaiveBayes(likelihood).fit(frame, y).predict_proba(frame), expected, rtol=1e-8)
    numbered = dict(enumerate(KINDS))
    np.testing.assert_allclose(NaiveBayes(numbered).fit(X, y).predict_proba(X), expected, rtol=1e-8)


def test_saved_and_loaded_it_is_the_same(tmp_path):
    X, y = mixed(150)
    frame = pd.DataFrame(X, columns=list("abcdef"))
    names = np.array(["low", "mid", "high"])[y]
    by_name = dict(zip("abcdef", KINDS, strict=True))
    for likelihood, data in ((by_name, frame), (KINDS, frame), (StudentT(), frame[["a", "e"]])):
        model = NaiveBayes(likelihood, random_state=0).fit(data, names)
        model.save(tmp_path / "bayes.likely")
        loaded = likely.load(tmp_path / "bayes.likely")
        np.testing.assert_array_equal(loaded.predict_proba(data), model.predict_proba(data))
        np.testing.assert_array_equal(loaded.predict(data), model.predict(data))
        np.testing.assert_array_equal(loaded.joint_sample(5)[0], model.joint_sample(5)[0])
        assert loaded.classes_.dtype == model.classes_.dtype
        assert list(loaded.feature_names_in_) == list(model.feature_names_in_)


def test_scikit_learns_own_checks_pass():
    results = check_estimator(NaiveBayes(), on_fail=None, on_skip=None)
    failed = {result["check_name"]: result["exception"] for result in results if result["status"] == "failed"}
    assert failed == {}
    assert len([result for result in results if result["status"] == "passed"]) >= 50


SCRIPT = """
import sys
import numpy as np
import torch
torch.set_num_threads(1)
from likely import NaiveBayes
from likely.core import distributed
from likely.likelihoods import Laplace, Normal, Poisson

random = np.random.default_rng(0)
y = random.integers(3, size=203)
X = np.column_stack([random.normal(y, 1.0), random.poisson(1.0 + y), random.laplace(y, 1.0)])
X[::5, 0] = np.nan
weight = random.uniform(0, 2, 203)
whole = NaiveBayes([Normal(), Poisson(), Laplace()]).fit(X, y, weight)
pieces = NaiveBayes([Normal(), Poisson()])
for rows in np.array_split(np.arange(203), 3):
    pieces.partial_fit(X[rows, :2], y[rows], classes=[0, 1, 2], sample_weight=weight[rows])
answers = {"whole": whole.predict_log_proba(X), "prior": whole.class_prior_}
answers["pieces"] = pieces.predict_log_proba(X[:, :2])
"""


def test_two_processes_fit_what_one_fits(by_processes):
    alone, first, second = by_processes(SCRIPT)
    for name in alone:
        np.testing.assert_array_equal(first[name], second[name], err_msg=name)
        np.testing.assert_allclose(first[name], alone[name], rtol=1e-8, atol=1e-8, err_msg=name)
