"""Rows of topics filled up to whole vectors."""

from __future__ import annotations

import numpy as np
import pytest

from likely.models.topics.lanes import LANES, padded


@pytest.mark.parametrize("size", [1, LANES - 1, LANES, LANES + 1, 3 * LANES])
def test_the_last_axis_is_the_next_multiple_of_the_lanes(size):
    rows = np.random.default_rng(0).normal(size=(2, 3, size))
    out = padded(rows, -1.5)
    assert out.shape[-1] % LANES == 0
    assert 0 <= out.shape[-1] - size < LANES
    np.testing.assert_array_equal(out[..., :size], rows)
    assert (out[..., size:] == -1.5).all()


def test_it_is_a_copy_of_the_wanted_dtype():
    row = np.ones(LANES, np.int64)
    out = padded(row, 0, np.int32)
    out[0] = 7
    assert out.dtype == np.int32
    assert row[0] == 1
