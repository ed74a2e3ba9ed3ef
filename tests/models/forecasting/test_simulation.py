from __future__ import annotations

import numpy as np
import pytest

from likely import Forecaster
from likely.inference import MAP, Ensemble, Exact
from likely.likelihoods import Normal, Poisson
from likely.models.forecasting.simulation import Simulation
from likely.models.forecasting.windows import Past
from likely.networks import LSTM, MLP


@pytest.fixture(scope="module")
def linear():
    rng = np.random.default_rng(0)
    z = np.zeros(300)
    for t in range(1, 300):
        z[t] = 0.7 * z[t - 1] + rng.normal()
    return Forecaster(Normal(), lags=1, transform="none", season=None, inference=Exact()).fit(z)


def test_drawn_paths_have_the_moments_of_the_closed_form(linear, seed):
    """4,000 paths of 5 steps against the exact recursion; each moment beyond 5 standard errors about once in 2e6."""
    exact = linear.predict_dist(5)
    unit, location = float(linear.scale_[0]), float(linear.location_[0])
    engine = Simulation(linear.parts_["regressor"], (1,), False, lambda drawn: drawn)
    last = (linear.series_.values[0][-1:, 0] - location) / unit
    drawn = location + unit * engine.paths(Past((last,), np.empty((1, 5, 0))), 5, 4000, seed)[:, 0]
    deviation = exact.stddev.numpy()
    assert (np.abs(drawn.mean(0) - exact.mean.numpy()) < 5 * deviation / np.sqrt(4000)).all()
    assert (np.abs(drawn.var(0) / deviation**2 - 1) < 5 * np.sqrt(2 / 4000)).all()
    mixed = engine.ahead(Past((last,), np.empty((1, 5, 0))), 5, seed)
    assert mixed.batch_shape == (1, 5)
    np.testing.assert_allclose(location + unit * mixed.mean[0, 0], exact.mean[0], rtol=1e-6)  # nothing is drawn yet


def test_counts_stay_counts_and_any_network_goes_on():
    counts = np.random.default_rng(0).poisson(4.0, 80)
    model = Forecaster(Poisson(), lags=2, random_state=0).fit(counts)
    drawn = model.sample(50, steps=4)
    assert (drawn == drawn.round()).all()
    assert (drawn >= 0).all()
    assert 1.0 < model.predict(1)[0] < 10.0
    for network, inference in ((MLP((4,)), Ensemble(2, by=MAP(epochs=2))), (LSTM(2), MAP(epochs=2))):
        other = Forecaster(network=network, lags=3, inference=inference, random_state=0).fit(counts + 1.0)
        assert np.isfinite(other.predict(3)).all()
        np.testing.assert_array_equal(
            other.sample(3, steps=2, random_state=1), other.sample(3, steps=2, random_state=1)
        )
