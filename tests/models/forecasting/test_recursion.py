from __future__ import annotations

import numpy as np
import torch

from likely import Forecaster, Regressor
from likely.inference import Exact
from likely.models.forecasting.recursion import Recursion, recursion_of
from likely.models.forecasting.windows import Past

ONE = np.ones(1)


def ar(weight, bias=0.0, scale=1.0):
    lags = tuple(range(1, len(weight) + 1))
    return Recursion(lags, np.array([weight]), np.empty((1, 0)), bias * ONE, scale * ONE, ONE)


def past(values):
    return Past((np.asarray(values, dtype=float),), np.empty((1, 50, 0)))


def test_a_known_ar1_has_its_exact_mean_and_variance_at_each_step():
    a, b, s, h = 0.8, 1.0, 0.5, np.arange(1, 51)
    ahead = ar([a], b, s).ahead(past([3.0]), 50, 0)
    centre = b / (1 - a)
    np.testing.assert_allclose(ahead.mean[0], centre + a**h * (3.0 - centre), rtol=1e-9)
    np.testing.assert_allclose(ahead.variance[0], s**2 * (1 - a ** (2 * h)) / (1 - a**2), rtol=1e-9)


def test_the_past_beyond_the_lags_does_not_matter():
    """The Markov property of order p."""
    model = ar([0.5, 0.3])
    one, two = (model.ahead(past([*old, 1.0, 2.0]), 5, 0).mean for old in ([], [9.0, -7.0]))
    torch.testing.assert_close(one, two)


def test_paths_have_the_moments_of_the_closed_form(seed):
    """Means and variances of 20,000 paths at 5 steps; each lies beyond 5 standard errors about once in 2e6."""
    model, count = ar([0.6, -0.3], 0.2, 0.7), 20_000
    ahead = model.ahead(past([1.0, -1.0]), 5, 0)
    drawn = model.paths(past([1.0, -1.0]), 5, count, seed)[:, 0]
    deviation = ahead.stddev[0].numpy()
    assert (np.abs(drawn.mean(0) - ahead.mean[0].numpy()) < 5 * deviation / np.sqrt(count)).all()
    assert (np.abs(drawn.var(0) / deviation**2 - 1) < 5 * np.sqrt(2 / count)).all()


def test_members_are_centred_on_least_squares_and_do_not_explode(seed):
    """200 draws in mirrored pairs lie around the centre; those that explode are left out."""
    rng = np.random.default_rng(seed)
    z = np.zeros(300)
    for t in range(2, 300):
        z[t] = 0.5 * z[t - 1] + 0.2 * z[t - 2] + rng.normal()
    X = np.column_stack([z[1:-1], z[:-2]])
    fitted = Regressor(inference=Exact("full")).fit(X, z[2:])
    members = recursion_of(fitted, (1, 2), 0)
    error = members.weight.std(0)
    assert (np.abs(members.weight.mean(0) - fitted.coef_) < error).all()
    assert np.abs(members.impulses(400)[:, -1]).max() < 1.0
    point = recursion_of(Regressor(inference=Exact()).fit(X, z[2:]), (1, 2), 0)
    np.testing.assert_allclose(point.weight[0], fitted.coef_, rtol=1e-9)


def test_covariates_move_the_forecast_by_their_weight():
    rng = np.random.default_rng(0)
    known = rng.normal(size=200)
    z = np.zeros(200)
    for t in range(1, 200):
        z[t] = 0.5 * z[t - 1] + 2.0 * known[t] + 0.01 * rng.normal()
    model = Forecaster(lags=1, covariates=(1,), transform="none", inference=Exact()).fit(np.column_stack([z, known]))
    low, high = (model.predict(1, future=[[value]]) for value in (0.0, 1.0))
    np.testing.assert_allclose(high - low, 2.0, atol=0.01)
