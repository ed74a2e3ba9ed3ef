from __future__ import annotations

import numpy as np
import pytest

from likely import Forecaster
from likely.core.errors import DataError
from likely.plots import future

WALK = np.random.default_rng(0).normal(size=60).cumsum()


def test_the_fan_holds_the_median_and_opens_at_the_last_value():
    model = Forecaster(lags=2, transform="none", random_state=0).fit(WALK)
    ax = future(model, 6, levels=(0.5, 0.9))
    lines = {line.get_label(): line for line in ax.get_lines()}
    assert lines["forecast"].get_ydata()[0] == WALK[-1]
    lower, upper = model.predict_interval(6, level=0.9)
    fan = ax.collections[0].get_paths()[0].vertices[:, 1]
    assert fan.max() == pytest.approx(max(upper.max(), WALK[-1]), rel=1e-5)
    assert fan.min() == pytest.approx(min(lower.min(), WALK[-1]), rel=1e-5)
    assert "the next 6 steps" in ax.get_title(loc="left")


def test_a_series_that_is_not_there_is_refused():
    model = Forecaster(lags=2, transform="none").fit(WALK)
    with pytest.raises(DataError, match="there are 1 series of 1"):
        future(model, 2, series=3)
