import numpy as np
import pytest
import torch
from scipy import stats
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from torch.distributions import Normal

from likely import Classifier, Regressor
from likely.core.errors import DataError, LikelyWarning
from likely.evaluate import crps, log_score, log_scores


def test_log_score_is_the_mean_log_density(known, draws):
    X, y = draws(200)
    expected = stats.norm.logpdf(y, X[:, 0], 1.0)
    np.testing.assert_allclose(log_scores(known(), X, y), expected)
    assert log_score(known(), X, y) == pytest.approx(expected.mean())
    weight = np.arange(200.0)
    assert log_score(known(), X, y, sample_weight=weight) == pytest.approx(np.average(expected, weights=weight))


def test_log_score_of_a_classifier_is_minus_scikit_learns_log_loss():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(90, 2)), np.array(["a", "b", "c"])[np.arange(90) % 3]
    model = LogisticRegression().fit(X, y)
    assert log_score(model, X, y) == pytest.approx(-log_loss(y, model.predict_proba(X)))


def test_it_is_a_scorer(known, draws):
    X, y = draws(100)
    scores = cross_val_score(known(), X, y, scoring=log_score, cv=4)
    assert scores.mean() == pytest.approx(log_score(known(), X, y))


def test_wrappers_are_opened(known, draws):
    X, y = draws(50)
    pipeline = make_pipeline(FunctionTransformer(lambda x: 2 * x), known()).fit(X, y)
    assert log_score(pipeline, X, y) == log_score(known(), 2 * X, y)
    search = GridSearchCV(known(), {"scale": [1.0, 5.0]}, scoring=log_score).fit(X, y)
    assert search.best_params_ == {"scale": 1.0}
    assert log_score(search, X, y) == log_score(known(), X, y)


def test_the_truth_has_the_best_expected_scores(known, draws):
    """n = 4000 rows: the truth leads by more than 7 paired standard errors for these wrong forecasts."""
    X, y = draws(4000)
    for wrong in (known(scale=2.0), known(scale=0.5), known(shift=0.5)):
        assert log_score(known(), X, y) > log_score(wrong, X, y)
        assert crps(known(), X, y) < crps(wrong, X, y)


def test_missing_targets_do_not_count(known, draws):
    X, y = draws(60)
    y[::3] = np.nan
    seen = ~np.isnan(y)
    assert np.isnan(log_scores(known(), X, y)).sum() == 20
    assert log_score(known(), X, y) == pytest.approx(log_score(known(), X[seen], y[seen]))
    assert crps(known(), X, y) == pytest.approx(crps(known(), X[seen], y[seen]))
    with pytest.raises(DataError, match="every one is missing"):
        log_score(known(), X, np.full(60, np.nan))


def test_a_class_that_was_never_seen_scores_minus_infinity():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3, 2))
    y = rng.integers(0, 2, (40, 3))
    y[0, 0] = 0
    model = Classifier().fit(X, y)
    new = y.copy()
    new[5, 1] = 7
    with pytest.warns(LikelyWarning, match="y has the class 7, .* never saw in training: 1 of the targets"):
        scores = log_scores(model, X, new)
    assert scores[5] == -np.inf
    kept = np.arange(40) != 5
    np.testing.assert_allclose(scores[kept], model.log_prob(X, y)[kept])
    # text is not a number: a mistake, not a new class
    with pytest.raises(DataError, match="y has the class '0' at row 0, which was not seen"):
        log_scores(model, X, y.astype(str))


def test_crps_of_a_normal_equals_its_integral(known):
    """∫ (F(t) − 1[t ≥ y])² dt, by the trapezoid rule."""
    grid = np.linspace(-30, 30, 600_001)
    X, y = np.array([[0.3]]), np.array([1.7])
    integrand = (stats.norm.cdf(grid, 0.3, 2.0) - (grid >= 1.7)) ** 2
    assert crps(known(scale=2.0), X, y) == pytest.approx(np.trapezoid(integrand, grid), abs=1e-4)


class Hidden(torch.distributions.Distribution):
    """A normal whose name does not give it away."""

    def __init__(self, base):
        self.base = base
        super().__init__(base.batch_shape, validate_args=False)

    def sample(self, sample_shape=()):
        return self.base.sample(sample_shape)


def test_crps_by_draws_agrees_with_the_closed_form(known, draws, monkeypatch, seed):
    """The error of 2000 draws, averaged over 300 rows, has a standard deviation below 0.002: 0.01 is five of them."""
    X, y = draws(300)
    exact = crps(known(), X, y)
    forecast = known.predict_dist
    monkeypatch.setattr(known, "predict_dist", lambda self, X: Hidden(forecast(self, X)))
    assert crps(known(), X, y, draws=2000, random_state=seed) == pytest.approx(exact, abs=0.01)


def test_crps_of_a_sure_forecast_is_the_absolute_error(known):
    X, y = np.array([[0.0], [1.0]]), np.array([2.0, 0.0])
    assert crps(known(scale=1e-9), X, y) == pytest.approx(1.5)


def test_models_without_a_density_are_told_so():
    model = LinearRegression().fit([[0.0], [1.0]], [0.0, 1.0])
    with pytest.raises(
        DataError, match="The log score needs a model with log_prob or predict_proba; LinearRegression has"
    ):
        log_score(model, [[0.0]], [0.0])
    with pytest.raises(DataError, match="The CRPS needs a model with predict_dist"):
        crps(model, [[0.0]], [0.0])


def test_the_forecast_of_known_is_normal(known):
    assert isinstance(known().predict_dist(np.zeros((1, 1))), Normal)


def test_likelys_models_answer():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2))
    y = X @ [1.0, -2.0] + rng.normal(size=200)
    regressor = Regressor().fit(X, y)
    rest = y - regressor.predict(X)
    assert log_score(regressor, X, y) == pytest.approx(-0.5 * (np.log(2 * np.pi * (rest**2).mean()) + 1), rel=1e-6)
    labels = np.where(y > 0, "up", "down")
    classifier = Classifier().fit(X, labels)
    assert log_score(classifier, X, labels) == pytest.approx(-log_loss(labels, classifier.predict_proba(X)), rel=1e-5)
    assert np.isfinite(cross_val_score(Regressor(), X, y, scoring=log_score)).all()
