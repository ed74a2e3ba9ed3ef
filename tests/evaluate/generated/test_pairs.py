"""Two samples in common units."""

from __future__ import annotations

import numpy as np
import pytest

from likely.core.errors import DataError
from likely.evaluate.generated.pairs import distances_to, pair_of


def test_numbers_are_in_deviations_and_labels_one_apart():
    real = {"a": [0.0, 2.0, 4.0], "b": ["x", "y", "x"]}
    first, second = pair_of(real, {"a": [2.0, 2.0], "b": ["x", "z"]}).in_units()
    assert np.std(first[:, 0]) == pytest.approx(1.0)
    assert np.linalg.norm(first[0, 1:] - first[1, 1:]) == pytest.approx(1.0)
    assert np.linalg.norm(second[0] - second[1]) == pytest.approx(1.0)


def test_nearest_distances_are_those_of_all_pairs():
    rng = np.random.default_rng(0)
    points, others = rng.normal(size=(20, 3)), rng.normal(size=(30, 3))
    gaps = np.sort(np.linalg.norm(points[:, None] - others, axis=-1), 1)[:, :4]
    np.testing.assert_allclose(distances_to(points, others, 4), gaps, rtol=1e-9)
    own = np.sort(np.linalg.norm(points[:, None] - points, axis=-1), 1)[:, 1:3]
    np.testing.assert_allclose(distances_to(points, points, 2, own=True), own, rtol=1e-6, atol=1e-7)


def test_a_single_row_or_infinity_is_refused():
    with pytest.raises(DataError, match="generated must have 2 rows or more"):
        pair_of(np.zeros((3, 1)), np.zeros((1, 1)))
    with pytest.raises(DataError, match="real contains infinity"):
        pair_of(np.array([[np.inf], [0.0]]), np.zeros((2, 1)))
