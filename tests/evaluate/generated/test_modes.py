"""Modes of a known mixture."""

from __future__ import annotations

import numpy as np
import pytest

from likely.core.errors import DataError
from likely.evaluate import modes

RING = np.array([[np.cos(a), np.sin(a)] for a in np.arange(8) * np.pi / 4])


def test_the_mixture_itself_reaches_all_modes(seed):
    rng = np.random.default_rng(seed)
    rows = RING[rng.integers(8, size=4000)] + 0.02 * rng.normal(size=(4000, 2))
    result = modes(rows, RING, 0.02)
    assert result.reached == 8
    # P(radius > 3σ) in the plane is exp(−4.5) = 1.1 %; 5 standard errors
    assert abs(result.near - (1 - np.exp(-4.5))) < 5 * np.sqrt(0.0111 / 4000)
    assert result.reverse_kl < 0.01


def test_one_mode_alone_is_log_k_away():
    result = modes(np.tile(RING[3], (10, 1)), RING, 0.02)
    assert (result.reached, result.near) == (1, 1.0)
    assert result.reverse_kl == pytest.approx(np.log(8))


def test_rows_far_from_all_modes_reach_none():
    result = modes(np.full((5, 2), 9.0), RING, 0.02)
    assert (result.reached, result.near, result.reverse_kl) == (0, 0.0, np.inf)


def test_bad_input_is_named():
    with pytest.raises(DataError, match="same number of columns"):
        modes(np.zeros((4, 3)), RING, 0.1)
    with pytest.raises(DataError, match=r"scale=0 and within=3\.0 must be above 0"):
        modes(np.zeros((4, 2)), RING, 0)
    with pytest.raises(DataError, match="a number above 0 for each of the 8 centres"):
        modes(np.zeros((4, 2)), RING, 0.1, weights=[1.0])
