"""MMD: unbiased, zero between equal distributions, with a p-value from permutations."""

from __future__ import annotations

import numpy as np
import pytest

from likely.core.errors import DataError
from likely.evaluate import mmd


def test_mmd_of_normals_is_the_closed_form(seed):
    """For k = exp(−d²/2ℓ²) and N(0, 1), N(δ, 1): MMD² = 2 ℓ/√(ℓ²+2) (1 − exp(−δ²/(2(ℓ²+2))))."""
    rng = np.random.default_rng(seed)
    first, second = rng.normal(size=(2000, 1)), rng.normal(size=(2000, 1)) + 1.0
    spread = first.std()
    length = 1.0
    result = mmd(first, second, lengthscale=length / spread)
    exact = 2 * length / np.sqrt(length**2 + 2) * (1 - np.exp(-1 / (2 * (length**2 + 2))))
    # the estimate has a standard error of about 0.007 here: six of them, false alarms below 1e-8
    assert abs(result.squared - exact) < 0.045
    assert result.p_value == 1 / 201


def test_it_is_the_sum_over_pairs_that_it_says():
    rng = np.random.default_rng(0)
    first, second = rng.normal(size=(7, 2)), rng.normal(size=(5, 2))
    unit = first.std(0)
    points = [(rows - first.mean(0)) / unit for rows in (first, second)]

    def mean(a, b, same):
        values = [
            np.exp(-0.5 * ((x - y) ** 2).sum()) for i, x in enumerate(a) for j, y in enumerate(b) if not same or i != j
        ]
        return np.mean(values)

    expected = mean(points[0], points[0], True) + mean(points[1], points[1], True) - 2 * mean(*points, False)
    assert mmd(first, second, lengthscale=1.0, permutations=1).squared == pytest.approx(expected, abs=1e-12)


def test_equal_samples_are_rarely_called_different(seed):
    rng = np.random.default_rng(seed)
    p_values = [mmd(*rng.normal(size=(2, 40, 2)), permutations=39, random_state=rng).p_value for _ in range(60)]
    # P(p ≤ 0.05) = 0.05: more than 15 of 60 has probability below 1e-6
    assert np.sum(np.array(p_values) <= 0.05) <= 15


def test_bad_arguments_are_named():
    with pytest.raises(DataError, match="lengthscale=-1 must be above 0"):
        mmd(np.zeros((3, 1)), np.zeros((3, 1)), lengthscale=-1)
    with pytest.raises(DataError, match="permutations=0 must be 1 or more"):
        mmd(np.zeros((3, 1)), np.zeros((3, 1)), permutations=0)
