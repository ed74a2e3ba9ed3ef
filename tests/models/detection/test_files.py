"""Detectors in files: what comes back, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

import likely
from likely.core.errors import ModelFileError
from likely.models.detection.files import restore, state_of


def test_a_file_holds_it(fitted, tmp_path):
    model, (images, boxes, labels) = fitted
    model.save(tmp_path / "cells.likely")
    loaded = likely.load(tmp_path / "cells.likely")
    assert loaded.detect(images[:4]) == model.detect(images[:4])
    np.testing.assert_array_equal(loaded.log_prob(images, boxes, labels), model.log_prob(images, boxes, labels))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"in_shape": [1, 0, 8]}, r"The file has images of shape \[1, 0, 8\]"),
        ({"in_shape": [1, 24]}, r"The file has images of shape \[1, 24\]"),
        ({"in_shape": [1, 10**6, 10**6]}, "The file has images of shape"),
        ({"classes": []}, "The file has fewer than one class"),
    ],
)
def test_parts_that_do_not_fit_each_other_are_refused(fitted, changes, words):
    learned, tensors = state_of(fitted[0])
    with pytest.raises(ModelFileError, match=words):
        restore(clone(fitted[0]), learned | changes, tensors)


def test_units_are_above_0(fitted):
    learned, tensors = state_of(fitted[0])
    name = next(name for name in tensors if name.endswith(".unit"))
    with pytest.raises(ModelFileError, match="The file has units that are not above 0: unit"):
        restore(clone(fitted[0]), learned, tensors | {name: -tensors[name]})
