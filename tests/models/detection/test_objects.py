from __future__ import annotations

import numpy as np
import pytest
import torch

from likely.core.errors import DataError
from likely.models.detection.objects import as_objects, classes_among, read_boxes, read_images, read_labels

IMAGES = np.zeros((2, 1, 20, 30))
GOOD = [[[0, 0, 5, 5]], []]


@pytest.mark.parametrize(
    ("X", "words"),
    [
        (np.zeros((2, 20, 30, 3)), r"channels last.*transpose\(0, 3, 1, 2\)"),
        (np.zeros((2, 20)), r"\(2, 20\).*\(n, channels, height, width\)"),
        ([np.zeros((3, 8, 8)), np.zeros((3, 9, 8))], r"different sizes, \(3, 8, 8\) and \(3, 9, 8\)"),
        (np.full((1, 1, 4, 4), np.nan), "NaN"),
        (np.zeros((2, 1, 0, 24)), "images of 0 × 24 pixels, in which there is nothing to see"),
        (np.zeros((0, 1, 8, 8)), "required by Detector"),
    ],
)
def test_images_that_will_not_do(X, words):
    with pytest.raises(DataError, match=words):
        read_images(X)


def test_grey_images_have_one_channel_and_colour_is_told_from_it():
    assert read_images(np.zeros((2, 20, 30))).shape == (2, 1, 20, 30)
    with pytest.raises(DataError, match=r"images in colour; the model was fitted on grey images"):
        read_images(np.zeros((2, 3, 20, 30)), channels=1)


@pytest.mark.parametrize(
    ("boxes", "words"),
    [
        (None, "list with an array"),
        (np.zeros((3, 4)), r"shape \(3, 4\).*list of arrays"),
        ([[[0, 0, 5, 5]]], "1 entries, but X has 2 images"),
        ([[[0, 0, 5]], []], r"boxes\[0\] has shape \(1, 3\)"),
        ([[], [[0, 0, np.inf, 5]]], r"boxes\[1\].*infinity"),
        ([[], [[3, 3, 3, 8]]], r"boxes\[1\] has a box of no area, \(3, 3, 3, 8\)"),
        ([[], [[20, 10, 5, 4]]], r"width, height\) become these"),
        ([[], [[0, 0, 31, 5]]], r"outside the image, \(0, 0, 31, 5\), where that has 30 × 20 pixels"),
        ([[], [[-1, 0, 3, 5]]], r"outside the image, \(-1, 0, 3, 5\)"),
        ([[["a", 0, 3, 5]], []], "not an array of numbers"),
    ],
)
def test_boxes_that_will_not_do(boxes, words):
    with pytest.raises(DataError, match=words):
        read_boxes(boxes, torch.zeros(2, 1, 20, 30))


def test_labels_that_will_not_do():
    boxes = read_boxes(GOOD, torch.zeros(2, 1, 20, 30))
    with pytest.raises(DataError, match=r"labels\[0\] has shape \(2,\), but image 0 has 1 boxes"):
        read_labels([["a", "b"], []], boxes)
    with pytest.raises(DataError, match="labels has 1 entries, but there are 2 images"):
        read_labels([["a"]], boxes)
    with pytest.raises(DataError, match=r"labels\[0\] is None; give a list with a label for each of the 1 boxes"):
        read_labels([None, []], boxes)
    for none in (None, np.nan):
        with pytest.raises(DataError, match=rf"labels\[0\] has {none} for box 0; each box needs a label"):
            read_labels([[none], []], boxes)
    with pytest.raises(DataError, match="mixes text and numbers"):
        classes_among([np.array(["a"]), np.array([1])])
    with pytest.raises(DataError, match="no box at all"):
        classes_among([np.array([])])
    with pytest.raises(DataError, match=r"labels\[0\] has the class 'c', which was not seen in fit; known: 'a', 'b'"):
        as_objects(boxes, [np.array(["c"]), np.array([])], np.array(["a", "b"]))


def test_objects_do_not_depend_on_the_order_of_boxes():
    boxes = [np.array([[1.0, 2.0, 3.0, 4.0], [0.0, 0.0, 5.0, 5.0]])]
    labels = [np.array(["b", "a"])]
    classes = np.array(["a", "b"])
    torch.testing.assert_close(
        as_objects(boxes, labels, classes), as_objects([boxes[0][::-1]], [labels[0][::-1]], classes)
    )
