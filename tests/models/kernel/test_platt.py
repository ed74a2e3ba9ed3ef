from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from likely.models.kernel.platt import couple, fit_sigmoid, folds


def test_the_sigmoid_is_the_logistic_regression_of_softened_targets():
    """A target t within 0 and 1 is a row of weight t with label 1, and one of weight 1 − t with label 0."""
    rng = np.random.default_rng(0)
    decision, weight = rng.normal(size=200), rng.random(200)
    positive = rng.random(200) < expit(2 * decision - 0.5)
    seen, unseen = weight[positive].sum(), weight[~positive].sum()
    target = np.where(positive, (seen + 1) / (seen + 2), 1 / (unseen + 2))
    rows, labels = np.tile(decision, 2)[:, None], np.repeat([1, 0], 200)
    share = np.concatenate([weight * target, weight * (1 - target)])
    peer = LogisticRegression(C=np.inf, tol=1e-12, max_iter=1000).fit(rows, labels, share)
    np.testing.assert_allclose(
        fit_sigmoid(decision, positive, weight), [peer.coef_[0, 0], peer.intercept_[0]], rtol=1e-4
    )


@pytest.mark.parametrize("scaling", [1e-6, 1.0, 1e6])
def test_the_unit_of_decisions_does_not_matter(scaling):
    decision = np.random.default_rng(0).normal(size=100)
    positive = decision + np.random.default_rng(1).logistic(size=100) > 0
    a, b = fit_sigmoid(decision, positive, np.ones(100))
    np.testing.assert_allclose(fit_sigmoid(scaling * decision, positive, np.ones(100)), [a / scaling, b], rtol=1e-6)


def test_probabilities_never_fall_with_the_decision():
    decision = np.linspace(-1, 1, 20)
    a, b = fit_sigmoid(decision, decision < 0, np.ones(20))
    assert a == 0
    assert b == pytest.approx(0, abs=1e-6)


@given(st.integers(3, 6), st.integers(0, 2**31))
def test_coupled_pairs_minimise_their_disagreement(classes, seed):
    """Against a general solver on the simplex, for Σᵢ Σ_{j≠i} (r_ji pᵢ − r_ij pⱼ)²."""
    pairs = np.random.default_rng(seed).uniform(0.05, 0.95, size=(1, classes * (classes - 1) // 2))

    def disagreement(p):
        ends = combinations(range(classes), 2)
        return 2 * sum((r * p[i] - (1 - r) * p[j]) ** 2 for (i, j), r in zip(ends, pairs[0], strict=True))

    probability = couple(pairs, classes)[0]
    whole = {"type": "eq", "fun": lambda p: p.sum() - 1}
    start = np.full(classes, 1 / classes)
    best = minimize(disagreement, start, bounds=[(0, 1)] * classes, constraints=whole, options={"ftol": 1e-15})
    np.testing.assert_allclose(probability.sum(), 1)
    assert (probability >= 0).all()
    assert disagreement(probability) <= best.fun + 1e-10


@given(st.integers(2, 6), st.integers(0, 2**31))
def test_pairs_that_agree_give_back_their_probabilities(classes, seed):
    p = np.random.default_rng(seed).dirichlet(np.ones(classes)) * 0.99 + 0.01 / classes
    pairs = np.array([[p[j] / (p[i] + p[j]) for i, j in combinations(range(classes), 2)]])
    np.testing.assert_allclose(couple(pairs, classes)[0], p, rtol=1e-5)


@given(st.lists(st.integers(2, 30), min_size=2, max_size=4), st.integers(2, 6))
def test_each_fold_has_its_share_of_each_class(sizes, most):
    labels = np.repeat(np.arange(len(sizes)), sizes)
    fold = folds(labels, most, 0)
    assert fold.max() + 1 == min(most, *sizes)
    for label, size in enumerate(sizes):
        counts = np.bincount(fold[labels == label], minlength=fold.max() + 1)
        assert counts.min() >= 1
        assert counts.max() - counts.min() <= 1
        assert counts.sum() == size
