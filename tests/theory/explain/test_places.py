"""Which number of an answer is explained: of its classes or outputs, and of its positions."""

from __future__ import annotations

import numpy as np
import pytest

from likely.core.errors import DataError
from likely.theory.explain.places import places_of, region_of

SCORES = np.array([[0.1, 0.7, 0.2], [0.5, 0.2, 0.3]])
NAMES = np.array(["low", "mid", "high"])


def test_by_default_the_largest_number_of_each_row_is_explained():
    place, name = places_of(SCORES, None, NAMES)
    assert place.tolist() == [1, 0]
    assert name.tolist() == ["mid", "low"]


@pytest.mark.parametrize(("target", "expected"), [("high", [2, 2]), (["high", "low"], [2, 0])])
def test_a_target_is_for_all_rows_or_for_each(target, expected):
    place, name = places_of(SCORES, target, NAMES)
    assert place.tolist() == expected
    np.testing.assert_array_equal(NAMES[expected], name)
    assert places_of(SCORES, np.array(expected), None)[0].tolist() == expected


def test_one_number_has_no_name():
    assert places_of(SCORES[:, :1], None, None)[1] is None


def test_targets_that_will_not_do_are_named():
    with pytest.raises(DataError, match="target='huge' is not one of the classes low, mid, high"):
        places_of(SCORES, "huge", NAMES)
    with pytest.raises(DataError, match="target=7 is not one of the outputs 0, 1, 2"):
        places_of(SCORES, [0, 7], None)
    with pytest.raises(DataError, match=r"target has shape \(3,\); one is needed, or one for each of 2 rows"):
        places_of(SCORES, [0, 1, 2], None)


def test_a_position_and_the_mask_of_it_are_one_region():
    for at in np.ndindex(3, 4):
        mask = np.zeros((3, 4), bool)
        mask[at] = True
        np.testing.assert_array_equal(region_of(at, (3, 4)), mask.ravel())
        np.testing.assert_array_equal(region_of(mask, (3, 4)), mask.ravel())


@pytest.mark.parametrize("at", [(3, 0), (-1, 0), (1,), np.zeros((3, 4), bool), np.ones((4, 3), bool), (0.5, 1.0)])
def test_positions_outside_and_empty_masks_are_refused(at):
    with pytest.raises(DataError, match=r"must be a position inside \(3, 4\), such as \(1, 2\), or a mask"):
        region_of(at, (3, 4))
