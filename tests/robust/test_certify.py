"""Randomised smoothing: exact bounds of fractions, the closed form of a plane, and no attack inside a certificate."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import stats
from sklearn.tree import DecisionTreeClassifier

from likely import Classifier, GaussianProcess, KMeans, Regressor
from likely.core.errors import DataError, SpecError
from likely.robust import PGD, attack, certify
from likely.robust.certify import lower_bound


@pytest.mark.parametrize(("hits", "draws"), [(1, 10), (7, 10), (10, 10), (990, 1000)])
def test_the_bound_is_that_of_clopper_and_pearson(hits, draws):
    bound = lower_bound(hits, draws, 0.01)
    assert stats.binom.sf(hits - 1, draws, bound) == pytest.approx(0.01)
    interval = stats.binomtest(hits, draws, alternative="greater").proportion_ci(0.99, method="exact")
    assert bound == pytest.approx(interval.low)
    assert lower_bound(0, draws, 0.01) == 0


def test_the_radius_of_a_plane_is_its_distance(clouds, seed):
    """f(x + ε) = sign(wᵀx + b + wᵀε): p = Φ(distance/σ). No radius is above it, but with α; 20 rows at 1e-6 each."""
    X, y = clouds
    kept = y != "c"
    model = Classifier(prior="normal(1.0)").fit(X[kept], y[kept])
    rows = X[kept][:20]
    distance = np.abs(rows @ model.coef_.ravel() + model.intercept_) / np.linalg.norm(model.coef_)
    found = certify(model, rows, sigma=0.7, n=2000, alpha=1e-6, random_state=seed)
    assert (found.radius <= distance).all()
    fraction = stats.norm.cdf(distance / 0.7)
    least = 0.7 * stats.norm.ppf([lower_bound(int(stats.binom.ppf(1e-6, 2000, p)), 2000, 1e-6) for p in fraction])
    assert (found.radius >= np.maximum(least, 0) - 1e-12).all()
    sure = ~found.abstained
    np.testing.assert_array_equal(found.predicted[sure], model.predict(rows)[sure])


def test_no_attack_wins_inside_a_certified_radius(net, clouds, seed):
    """PGD on the smoothed network by the gradient of its mean probabilities, within 0.8 of the certified radius.

    There the certified class has probability Φ(0.2 r/σ) or more; of 4,000 draws it has the most: at 6 deviations.
    """
    X, y = clouds
    rows, sigma = X[:20], 0.4
    found = certify(net, rows, sigma, n=1000, alpha=1e-7, random_state=seed)
    kept = (found.radius > 0.25) & (found.predicted == y[:20])
    assert kept.sum() > 5
    noise = sigma * torch.randn(64, 1, 4, generator=torch.Generator().manual_seed(seed % 2**31))
    likelihood, posterior = net.likelihood_, net.posterior_

    def smoothed(x):
        scores = posterior.predictive(likelihood, (x + noise).flatten(0, 1)).logits
        return scores.unflatten(0, (len(noise), -1)).softmax(-1).mean(0).log()

    fresh = np.random.default_rng(seed)
    for row, label, radius in zip(rows[kept], found.predicted[kept], found.radius[kept], strict=True):
        place = np.searchsorted(net.classes_, [label])
        worst = attack(smoothed, row[None].astype(np.float32), place, PGD(0.8 * radius, 2, steps=10), bounds=(-99, 99))
        answers = net.predict(worst.perturbed + sigma * fresh.normal(size=(4000, 4)))
        assert (answers == label).mean() > 0.5 + 0.4 * (
            stats.norm.cdf(0.2 * radius / sigma) - 0.5
        ) - 6 * 0.5 / 4000**0.5


def test_the_same_seed_gives_the_same_certificates(net, clouds):
    first, again = (certify(net, clouds[0][:4], 0.3, n=200, random_state=3) for _ in range(2))
    np.testing.assert_array_equal(first.radius, again.radius)
    assert first.accuracy(clouds[1][:4], 0.0) >= first.accuracy(clouds[1][:4], 0.2)
    assert "of 4 rows certified in the 2-norm" in str(first)


def test_bad_input_is_refused_in_words(net, clouds):
    X, _ = clouds
    with pytest.raises(SpecError, match="sigma=-1 must be a positive number, in the units of X"):
        certify(net, X, -1)
    with pytest.raises(DataError, match="sigma=1000 is far beyond the range of X, which goes from"):
        certify(net, X, 1000.0)
    with pytest.raises(SpecError, match="alpha=2 must be a probability"):
        certify(net, X, 0.1, alpha=2)
    with pytest.raises(DataError, match="n=0"):
        certify(net, X, 0.1, n=0)
    with pytest.raises(SpecError, match="certify takes a classifier"):
        certify(Regressor().fit(X, X[:, 0]), X, 0.1)
    with pytest.raises(SpecError, match="certify takes a classifier"):
        certify(GaussianProcess(learn=False).fit(X, X[:, 0]), X, 0.1)
    with pytest.raises(SpecError, match="model is a KMeans; certify takes a fitted classifier with predict"):
        certify(KMeans(2).fit(X), X, 0.1)
    tree = DecisionTreeClassifier().fit(X, X[:, 0] > 5)
    with pytest.raises(DataError, match=r"X must have rows \(n, …\) of finite numbers; found list"):
        certify(tree, [["a"] * 4], 0.1)
    with pytest.raises(SpecError, match="several labels per row"):
        certify(DecisionTreeClassifier().fit(X, X[:, :2] > 1), X, 0.1)
