"""Precision, recall, density, coverage."""

from __future__ import annotations

import numpy as np
import pytest

from likely.core.errors import DataError
from likely.evaluate import fidelity


def test_a_sample_is_its_own_best_imitation():
    rows = np.random.default_rng(0).normal(size=(200, 2))
    result = fidelity(rows, rows)
    assert (result.precision, result.recall, result.coverage) == (1.0, 1.0, 1.0)
    assert result.density >= 1.0


def test_half_the_modes_halve_recall_and_keep_precision(seed):
    rng = np.random.default_rng(seed)
    real = rng.normal(size=(1000, 2)) + 50.0 * (np.arange(1000) % 2)[:, None]
    result = fidelity(real, rng.normal(size=(1000, 2)))
    assert result.precision > 0.85
    assert 0.4 < result.recall < 0.51
    assert result.coverage < 0.51


def test_balls_reach_to_the_kth_neighbour():
    real = np.array([[0.0], [1.0], [3.0]])
    # in units of the real rows; the balls around 0, 1, 3 with k = 1 have radii 1, 1, 2
    result = fidelity(real, np.array([[1.9], [6.0]]), neighbours=1)
    assert result.precision == 0.5
    assert result.density == pytest.approx((2 + 0) / 2)  # 1.9 lies in the balls around 1 and 3
    assert result.coverage == pytest.approx(2 / 3)


def test_too_many_neighbours_are_refused():
    with pytest.raises(DataError, match="5 nearest neighbours need 6 rows or more; there are 3"):
        fidelity(np.zeros((3, 1)), np.zeros((9, 1)))
