"""Gaussian processes at their bounds: what is refused, units of the data, hyperparameters that end at a bound."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from tests.models.kernel.test_gaussian_process import NEW, X, Y, held

import likely
from likely.core.errors import ConvergenceWarning, DataError, LikelyWarning, SpecError, TrainingError
from likely.kernels import RBF, Linear
from likely.likelihoods import Bernoulli, Categorical, Normal, Poisson, StudentT
from likely.models.kernel.gaussian_process import GaussianProcess


# --- bad input --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"mean": "linear"}, SpecError, r"GaussianProcess\(mean='linear'\): mean must be \"constant\" or \"zero\""),
        ({"starts": 0}, SpecError, "starts must be a positive integer"),
        ({"inducing": 0}, SpecError, "inducing must be a positive integer, how many inducing points"),
        ({"kernel": "nonsense"}, SpecError, "Unknown kernel 'nonsense'"),
        ({"kernel": RBF((1.0, 2.0, 3.0))}, DataError, "has 3 length scales, but rows of 2 columns"),
        ({"likelihood": StudentT(), "inducing": 5}, SpecError, r"inducing=5\) needs normal noise of one σ"),
    ],
)
def test_arguments_that_cannot_be_are_refused(arguments, error, message):
    with pytest.raises(error, match=message):
        GaussianProcess(**arguments).fit(X, Y)


def test_targets_that_cannot_be_are_refused():
    with pytest.raises(DataError, match=r"y has a negative value.*Poisson needs counts"):
        GaussianProcess(likelihood=Poisson()).fit(X, np.round(Y) - 3)
    with pytest.raises(DataError, match=r"y has shape \(40, 2\).*fit one model for each output"):
        GaussianProcess().fit(X, np.stack([Y, Y], 1))
    with pytest.raises(DataError, match="y has no target at all"):
        GaussianProcess().fit(X, np.full(40, np.nan))
    with pytest.raises(DataError, match="Only binary classification is supported"):
        GaussianProcess(likelihood=Bernoulli()).fit(X, np.arange(40) % 3)
    with pytest.raises(DataError, match="only one class"):
        GaussianProcess(likelihood=Categorical()).fit(X, np.zeros(40))
    with pytest.raises(DataError, match="y has 39 rows, but X has 40"):
        GaussianProcess().fit(X, Y[:39])


def test_too_many_rows_are_refused_with_the_remedy():
    many = np.zeros((10_001, 1))
    with pytest.raises(DataError, match=r'X has 10,001 rows.*takes up to 10,000.*inducing=500 or "auto"'):
        GaussianProcess().fit(many, many[:, 0])
    with pytest.raises(DataError, match=r"10,001 rows.*fit a sample of the rows"):
        GaussianProcess(likelihood=Poisson()).fit(many, many[:, 0])
    with pytest.raises(DataError, match=r"4,000 rows and 3 latent functions"):
        GaussianProcess(likelihood=Categorical()).fit(many[:4000], np.arange(4000) % 3)


def test_a_singular_kernel_matrix_is_reported_and_a_worse_one_refused():
    twice = np.concatenate([X, X])
    with pytest.warns(LikelyWarning, match=r"singular to working precision; 1e-10 of its mean diagonal was added"):
        model = held(RBF(), Normal(scale=1e-9)).fit(twice, np.concatenate([Y, Y]))
    assert model.jitter_ == 1e-10
    huge = X.copy()
    huge[0] = 1e200
    with pytest.raises(TrainingError, match=r"entries that are not finite.*standardise X"):
        held(Linear(), Normal(scale=1.0)).fit(huge, Y)


def test_questions_that_cannot_be_answered():
    with pytest.raises(NotFittedError):
        GaussianProcess().predict(X)
    model = held(RBF(), Normal(scale=0.3)).fit(X, Y)
    with pytest.raises(DataError, match=r"level=1\.5 must be one number strictly between 0 and 1"):
        model.predict_interval(NEW, level=1.5)
    with pytest.raises(DataError, match="n=0: how many to draw must be an integer above 0"):
        model.sample(NEW, n=0)
    with pytest.raises(ValueError, match="X has 3 features"):
        model.predict(np.zeros((2, 3)))


def test_likely_load_finds_it(tmp_path):
    held(RBF(), Normal(scale=0.3)).fit(X, Y).save(tmp_path / "model.likely")
    assert likely.load(tmp_path / "model.likely").predict(NEW).shape == (7,)


# --- units and bounds -----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("unit", [1e-3, 1e3, 1e6])
def test_units_of_y_change_nothing_but_units(unit):
    """y → cy takes σ → cσ, the variance → c²·variance and log p(y) → log p(y) − n log c."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-3, 3, (60, 1))
    y = np.sin(2 * x[:, 0]) + 0.1 * rng.normal(size=60)
    plain, other = GaussianProcess().fit(x, y), GaussianProcess().fit(x, unit * y)
    assert plain.converged_
    assert other.converged_
    assert other.score(x, unit * y) == pytest.approx(plain.score(x, y), abs=1e-6)
    assert other.log_evidence_ == pytest.approx(plain.log_evidence_ - 60 * np.log(unit), abs=1e-4)
    assert other.noise_ == pytest.approx(unit * plain.noise_, rel=1e-3)
    assert other.kernel_.variance == pytest.approx(unit**2 * plain.kernel_.variance, rel=1e-2)


@pytest.mark.parametrize("unit", [1e-3, 1e3])
def test_units_of_y_change_nothing_under_heavy_tails(unit):
    """Neither do they where log p is not concave, and the curvature of what is latent is not that of the scale."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-3, 3, (40, 1))
    y = np.sin(2 * x[:, 0]) + 0.1 * rng.standard_t(3, size=40) + 5.0 * (np.arange(40) % 15 == 0)
    plain, other = (GaussianProcess(likelihood=StudentT()).fit(x, c * y) for c in (1.0, unit))
    assert other.log_evidence_ == pytest.approx(plain.log_evidence_ - 40 * np.log(unit), rel=1e-3)
    np.testing.assert_allclose(other.predict(x), unit * plain.predict(x), atol=1e-3 * unit)
    assert other.shared_[0] == pytest.approx(plain.shared_[0] + np.log(unit), abs=1e-3)


def test_a_variance_far_from_where_it_began_is_found():
    """The evidence of 1000·y has its top at a variance near 10⁶, five factors of ten from the kernel's own."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-3, 3, (60, 1))
    y = 1e3 * (np.sin(2 * x[:, 0]) + 0.1 * rng.normal(size=60))
    model = GaussianProcess(1.0 * RBF()).fit(x, y)
    assert model.converged_
    assert model.kernel_.variance > 3e5
    assert model.log_evidence_ == pytest.approx(GaussianProcess().fit(x, y).log_evidence_, abs=1e-3)


def test_a_bound_that_holds_a_hyperparameter_back_is_named():
    x = np.linspace(-3, 3, 40)[:, None]
    with pytest.warns(ConvergenceWarning, match="still rises beyond the bounds of the search, .* at noise ="):
        model = GaussianProcess().fit(x, np.sin(x[:, 0]))  # no noise at all: σ → 0
    assert not model.converged_


@pytest.mark.parametrize("likelihood", [Normal(), Poisson(), Bernoulli()], ids=repr)
def test_answers_in_blocks_are_those_of_all_rows_at_once(likelihood, monkeypatch):
    """The integral over f has 121 nodes for each row: no block holds them for all rows."""
    rows = np.linspace(-2.0, 2.0, 23)[:, None]
    targets = (np.round(np.exp(rows[:, 0])) if isinstance(likelihood, Poisson) else rows[:, 0] > 0).astype(float)
    model = GaussianProcess(RBF(), likelihood, learn=False).fit(rows, targets)

    def answers():
        distribution = model.predict_dist(rows)
        numbers = model.predict_interval(rows) if isinstance(likelihood, Poisson) else ()
        return [model.predict(rows), model.log_prob(rows, targets), distribution.mean.numpy(), *numbers]

    whole = answers()
    monkeypatch.setattr("likely.models.kernel.gaussian_process.CHUNK", 5)
    for together, apart in zip(whole, answers(), strict=True):
        np.testing.assert_allclose(apart, together, rtol=1e-8, atol=1e-10)
