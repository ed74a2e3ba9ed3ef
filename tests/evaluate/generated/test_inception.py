"""Inception score and Fréchet distance have known values on known distributions."""

from __future__ import annotations

import numpy as np
import pytest

from likely import Classifier
from likely.core.errors import DataError
from likely.evaluate import frechet_distance, inception_score
from likely.priors import Normal


class Sure:
    """A classifier that reads the class off the first column."""

    def __init__(self, classes):
        self.classes = classes

    def predict_proba(self, X):
        return np.eye(self.classes)[np.asarray(X)[:, 0].astype(int)]


class Unsure(Sure):
    def predict_proba(self, X):
        return np.full((len(X), self.classes), 1 / self.classes)


def test_sure_answers_over_all_classes_score_their_number():
    rows = np.arange(40)[:, None] % 4
    assert inception_score(Sure(4), rows) == pytest.approx(4.0)
    assert inception_score(Sure(4), np.zeros((10, 1))) == pytest.approx(1.0)
    assert inception_score(Unsure(4), rows) == pytest.approx(1.0)
    assert inception_score(Sure(4), rows, splits=5) == pytest.approx((4.0, 0.0))


def test_frechet_distance_of_gaussians_is_the_wasserstein_distance():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(500, 3))
    rows -= rows.mean(0)
    rows = rows @ np.linalg.inv(np.linalg.cholesky(np.cov(rows, rowvar=False))).T  # covariance 1 exactly
    scale = np.array([1.0, 2.0, 0.5])
    assert frechet_distance(rows, rows) == pytest.approx(0.0, abs=1e-9)
    shifted = rows * scale + [1.0, 0.0, -2.0]
    assert frechet_distance(rows, shifted) == pytest.approx(5.0 + ((scale - 1) ** 2).sum())


def test_frechet_distance_needs_no_invertible_covariance():
    rows = np.arange(10.0)[:, None] * [1.0, 1.0]
    assert frechet_distance(rows, rows + np.array([0.0, 2.0])) == pytest.approx(4.0, abs=1e-6)


def test_with_a_classifier_the_features_are_its_log_odds():
    rows = np.arange(40)[:, None] % 2
    assert frechet_distance(rows, rows[::-1], Sure(2)) == pytest.approx(0.0, abs=1e-6)
    assert frechet_distance(rows, np.zeros((40, 1)), Sure(2)) > 100


def test_any_classifier_of_ours_is_a_feature_map(seed):
    """Of two classes the features are ±½ of the log-odds: the distance is ½[(Δ mean)² + (Δ deviation)²] of them."""
    rng = np.random.default_rng(seed)
    X = np.r_[rng.normal(-1, 1, (80, 2)), rng.normal(1, 1, (80, 2))]
    model = Classifier(prior=Normal(1.0)).fit(X, np.repeat(["a", "b"], 80))
    real, made = X[::2], rng.normal(0.5, 2.0, (90, 2))
    odds = [np.subtract(*np.log(model.predict_proba(rows)).T) for rows in (real, made)]
    mean, deviation = (np.subtract(*(statistic(own) for own in odds)) for statistic in (np.mean, _deviation))
    assert frechet_distance(real, made, model) == pytest.approx(0.5 * (mean**2 + deviation**2), rel=1e-5)
    probabilities = model.predict_proba(made)
    divergence = (probabilities * np.log(probabilities / probabilities.mean(0))).sum(1).mean()
    assert inception_score(model, made) == pytest.approx(np.exp(divergence), rel=1e-6)


def _deviation(values):
    return values.std(ddof=1)


def test_bad_input_is_named():
    with pytest.raises(DataError, match="without missing values"):
        frechet_distance(np.array([[np.nan], [1.0]]), np.ones((2, 1)))
    with pytest.raises(DataError, match="splits=0 must be from 1 to the number of rows, 4"):
        inception_score(Sure(2), np.zeros((4, 1)), splits=0)
