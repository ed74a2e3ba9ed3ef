from __future__ import annotations

import numpy as np
import pytest

from likely import Forecaster
from likely.core.errors import DataError
from likely.inference import Exact

RNG = np.random.default_rng(0)
WALK = RNG.normal(size=400).cumsum()


def test_each_step_is_its_own_least_squares():
    model = Forecaster(lags=3, horizon=4, transform="none", inference=Exact()).fit(WALK)
    at = np.arange(3, len(WALK) - 3)
    X = np.column_stack([np.ones(len(at)), WALK[at - 1], WALK[at - 2], WALK[at - 3]])
    last = np.array([1.0, WALK[-1], WALK[-2], WALK[-3]])
    expected = [last @ np.linalg.lstsq(X, WALK[at + h], rcond=None)[0] for h in range(4)]
    np.testing.assert_allclose(model.predict(4), expected, rtol=1e-8)
    np.testing.assert_allclose(model.predict(2), expected[:2], rtol=1e-8)


def test_paths_of_a_walk_hang_together_and_have_the_marginals(seed):
    """Steps 3 and 4 of a walk correlate by √(3/4) ≈ 0.87; 1,000 paths put an estimate below 0.7 less than once in 1e6.

    The mean of 1,000 draws lies beyond 5 standard errors less than once in 1e6.
    """
    model = Forecaster(lags=1, horizon=4, transform="none").fit(WALK)
    drawn = model.sample(1000, steps=4, random_state=seed)
    assert np.corrcoef(drawn[:, 2], drawn[:, 3])[0, 1] > 0.7
    ahead = model.predict_dist(4)
    assert (np.abs(drawn.mean(0) - ahead.mean.numpy()) < 5 * ahead.stddev.numpy() / np.sqrt(1000)).all()


def test_a_horizon_is_as_far_as_it_goes():
    model = Forecaster(lags=2, horizon=3).fit(WALK)
    with pytest.raises(DataError, match="the model answers for horizon=3"):
        model.predict(4)
    late = model.predict(2, series=np.append(WALK, np.nan))
    np.testing.assert_allclose(late, model.predict(3)[1:], rtol=1e-9)
