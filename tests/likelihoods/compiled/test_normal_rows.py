"""The compiled sum over normal columns is scipy's log-density of them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

from likely.likelihoods.compiled.normal_rows import normal_rows

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("far", [0.0, 1e8])
@pytest.mark.parametrize(("rows", "columns", "size"), [(7, 3, 4), (1, 1, 1), (0, 2, 3)])
def test_rows_are_sums_of_log_densities(rows, columns, size, far):
    """Also far from 0, where expanded squares would cancel."""
    y, mean = RNG.normal(far, 1.0, (rows, columns)), RNG.normal(far, 1.0, (columns, size))
    scale = RNG.random((columns, size)) + 0.5
    level = -np.log(scale * np.sqrt(2 * np.pi)).sum(0)
    out = np.empty((rows, size))
    normal_rows(y, mean, 1 / scale, level, out)
    expected = norm.logpdf(y[:, :, None], mean, scale).sum(1)
    np.testing.assert_allclose(out, expected, rtol=1e-10)


def test_missing_numbers_stay_missing():
    out = np.empty((2, 1))
    normal_rows(np.array([[np.nan], [0.0]]), np.zeros((1, 1)), np.ones((1, 1)), np.zeros(1), out)
    assert np.isnan(out[0, 0])
    assert out[1, 0] == 0.0
