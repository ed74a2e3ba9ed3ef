import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import calibration_curve
from sklearn.linear_model import LinearRegression

from likely import Regressor
from likely.core.errors import DataError
from likely.evaluate import PIT, Reliability, calibration
from likely.likelihoods import Poisson


class Chances(ClassifierMixin, BaseEstimator):
    """P(1) is the first column of X."""

    classes_ = np.array([0, 1])

    def predict_proba(self, X):
        return np.stack([1 - X[:, 0], X[:, 0]], 1)


@pytest.fixture
def honest(seed):
    rng = np.random.default_rng(seed)
    chance = rng.random(20_000)
    return chance[:, None], (rng.random(20_000) < chance).astype(int)


def test_bins_are_scikit_learns(honest):
    X, y = honest
    result = calibration(Chances(), X, y, label=1)
    frequency, confidence = calibration_curve(y, X[:, 0], n_bins=10)
    np.testing.assert_allclose(result.frequency, frequency)
    np.testing.assert_allclose(result.confidence, confidence)
    assert result.count.sum() == len(y)


def test_honest_probabilities_are_calibrated(honest):
    """Each of 15 z-scores is within 5: a false alarm in 1 of 10⁵ seeds."""
    for label in (None, 1):
        result = calibration(Chances(), *honest, label=label)
        assert isinstance(result, Reliability)
        assert (np.abs(result.frequency - result.confidence) < 5 * result.standard_error).all()
        assert result.expected_calibration_error < 0.02


def test_overconfidence_is_found(seed):
    """Chances of ¼ and ¾ told as 0 and 1 are off by ¼ everywhere. Of 40,000 rows, 0.011 are 5 standard errors: a
    false alarm in 1 of 10⁶ seeds.
    """
    rng = np.random.default_rng(seed)
    told = rng.integers(0, 2, size=40_000).astype(float)
    y = (rng.random(40_000) < 0.25 + 0.5 * told).astype(int)
    assert calibration(Chances(), told[:, None], y).expected_calibration_error == pytest.approx(0.25, abs=0.011)


def test_the_error_is_the_weighted_gap(honest):
    result = calibration(Chances(), *honest, bins=7)
    share = result.count / result.count.sum()
    assert result.expected_calibration_error == pytest.approx(share @ np.abs(result.frequency - result.confidence))


def test_a_missing_label_does_not_count(honest):
    X, y = honest
    X, y = X[:100], y[:100].copy()
    y[:40] = -1
    model = Chances()
    model.missing_label = -1
    assert calibration(model, X, y).count.sum() == 60
    assert calibration(Chances(), X, y).count.sum() == 100  # unasked, no label is left out


def test_pit_of_the_truth_is_uniform(known, draws):
    """The Kolmogorov-Smirnov p-value is below 10⁻⁶ in 1 of 10⁶ seeds."""
    result = calibration(known(), *draws(2000))
    assert isinstance(result, PIT)
    assert result.p_value > 1e-6
    assert ((result.values >= 0) & (result.values <= 1)).all()


def test_randomised_pit_of_counts_is_uniform(known):
    """As above; without the randomisation the distance would be near 0.4 at these rates."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(2000, 1)) * 0.3
    y = rng.poisson(np.exp(X[:, 0])).astype(float)
    result = calibration(known(counts=True), X, y)
    assert result.p_value > 0.001


@pytest.mark.parametrize(("wrong", "mean", "spread"), [({"scale": 0.5}, 0.5, 1), ({"shift": 1.0}, 0, 0)])
def test_pit_shows_what_is_wrong(known, draws, wrong, mean, spread):
    """Too narrow: more than a uniform's variance at the ends; too high a forecast: values below ½."""
    result = calibration(known(**wrong), *draws(2000))
    assert result.p_value < 1e-6
    if spread:
        assert result.values.mean() == pytest.approx(mean, abs=0.05)
        assert result.values.var() > 1.3 / 12
    else:
        assert result.values.mean() < 0.4


def test_results_are_plain_data(known, draws):
    data = calibration(known(), *draws(10)).to_dict()
    assert isinstance(data["values"], list)
    assert set(data) == {"values", "distance", "p_value"}


def test_errors(honest):
    X, y = honest
    with pytest.raises(DataError, match=r"label=7 is not a class of the model; it has \[0, 1\]"):
        calibration(Chances(), X, y, label=7)
    with pytest.raises(DataError, match="bins must be 1 or more; found 0"):
        calibration(Chances(), X, y, bins=0)
    with pytest.raises(DataError, match="Calibration needs a model with predict_proba or predict_dist"):
        calibration(LinearRegression(), X, y)


def test_likelys_regressors_are_calibrated_on_their_own_family():
    """False alarm below 0.001 for each; the counts are far from normal."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(1500, 1)) * 0.5
    counts = rng.poisson(np.exp(X[:, 0]))
    assert calibration(Regressor(likelihood=Poisson()).fit(X, counts), X, counts).p_value > 0.001
    assert calibration(Regressor().fit(X, counts), X, counts).p_value < 0.001
