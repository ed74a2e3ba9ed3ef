from __future__ import annotations

import numpy as np
import pytest

from likely.models.forecasting.backtest import LEVELS, Backtest


def test_measures_are_their_formulas_and_leave_out_what_is_not_known():
    rng = np.random.default_rng(0)
    actual, mean = rng.normal(size=(2, 5)), rng.normal(size=(2, 5))
    actual[1, 4] = np.nan
    quantiles = np.sort(rng.normal(size=(9, 2, 5)), 0)
    result = Backtest(np.array([5, 10]), actual, mean, quantiles)
    known = ~np.isnan(actual)
    assert result.mse == pytest.approx(((actual - mean)[known] ** 2).mean())
    assert result.mae == pytest.approx(np.abs(actual - mean)[known].mean())
    losses = []
    for row, seen, ends in zip(actual, known, quantiles.swapaxes(0, 1), strict=True):
        per_level = [
            2 * sum(max(q * (y - e), (q - 1) * (y - e)) for y, e in zip(row[seen], own[seen], strict=True))
            for q, own in zip(LEVELS, ends, strict=True)
        ]
        losses.append(np.mean(per_level) / np.abs(row[seen]).sum())
    assert result.weighted_quantile_loss == pytest.approx(np.mean(losses))
    inside = ((actual >= quantiles[0]) & (actual <= quantiles[-1]))[known].mean()
    assert result.coverage == pytest.approx(inside)
    assert "2 origins" in str(result)
