"""Weights of pixels near borders."""

from __future__ import annotations

import numpy as np
import pytest

from likely.core.errors import DataError, SpecError
from likely.data import boundary_weights


def test_boundary_weights_are_their_equation():
    """Two half-planes: the distance to the other one is 1, 2, 3 … pixels."""
    mask = np.repeat([[0] * 6 + [1] * 6], 3, 0)[None]
    weights = boundary_weights(mask, width=1.5, strength=3.0)
    distance = np.r_[np.arange(6, 0, -1), np.arange(1, 7)]
    expected = 1 + 3 * np.exp(-(distance**2) / (2 * 1.5**2))
    np.testing.assert_allclose(weights[0, 0] / weights[0, 0, 0], expected / expected[0])
    assert weights.mean() == pytest.approx(1)
    np.testing.assert_array_equal(boundary_weights(np.zeros((2, 3, 3))), 1)
    with pytest.raises(DataError, match=r"masks has shape \(3, 3\)"):
        boundary_weights(np.zeros((3, 3)))
    with pytest.raises(SpecError, match="width=0 must be positive"):
        boundary_weights(mask, width=0)
