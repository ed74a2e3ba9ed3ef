from __future__ import annotations

import numpy as np
import pytest

from likely.core.errors import DataError, SpecError
from likely.models.forecasting.orders import choose_lags, choose_season, corrected_criterion


def test_the_criterion_is_that_of_least_squares_for_every_order():
    z = np.random.default_rng(0).normal(size=80).cumsum()
    values, highest = corrected_criterion([z], 6), 6
    at = np.arange(highest, len(z))
    for order in range(highest + 1):
        X = np.column_stack([np.ones(len(at)), *(z[at - lag] for lag in range(1, order + 1))])
        residual = np.linalg.lstsq(X, z[at], rcond=None)[1][0]
        n, k = len(at), order + 2
        assert values[order] == pytest.approx(n * np.log(residual / n) + 2 * k * n / (n - k - 1))


def test_a_season_is_told_by_the_calendar_or_seen_in_the_series():
    t = np.arange(120)
    wave = np.sin(2 * np.pi * t / 12) + 0.1 * np.random.default_rng(0).normal(size=120)
    assert choose_season("auto", 0, [wave]) == 12
    assert choose_season("auto", 7, [wave]) == 7
    assert choose_season(None, 7, [wave]) == 1
    assert choose_season(5, 7, [wave]) == 5
    with pytest.raises(SpecError, match="season must be"):
        choose_season("yearly", 0, [wave])


def test_noise_has_no_season(seed):
    """The autocorrelation of 300 differences is beyond 0.4 at a lag by chance far less often than once in 1e6."""
    noise = np.random.default_rng(seed).normal(size=300)
    assert choose_season("auto", 0, [noise]) == 1


def test_lags_are_a_number_or_a_list_and_must_fit_into_the_series():
    z = [np.random.default_rng(0).normal(size=30)]
    assert choose_lags(3, 1, z, None) == (1, 2, 3)
    assert choose_lags((12, 1), 1, z, None) == (1, 12)
    with pytest.raises(DataError, match="too short: it has 30 steps, and lags up to 28 with 5 ahead need at least 34"):
        choose_lags(28, 1, z, 5)
    for wrong in (0, (1, 1), "many", (0,)):
        with pytest.raises(SpecError, match="lags must be"):
            choose_lags(wrong, 1, z, None)


def test_with_a_season_whole_seasons_and_one_are_tried():
    t = np.arange(200)
    wave = np.sin(2 * np.pi * t / 12) + np.random.default_rng(0).normal(size=200)
    assert len(choose_lags("auto", 12, [wave], None)) in (13, 25)
    assert len(choose_lags("auto", 12, [wave[:20]], None)) < 13  # too short for a year
