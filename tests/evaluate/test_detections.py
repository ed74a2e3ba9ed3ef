from __future__ import annotations

import numpy as np
import pytest

from likely.core.errors import DataError
from likely.evaluate import average_precision
from likely.evaluate.detections import OVERLAPS

AREAS = {"all": (0, 1e10), "small": (0, 32**2), "medium": (32**2, 96**2), "large": (96**2, 1e10)}


def iou(a, b):
    width, height = min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])
    shared = max(width, 0) * max(height, 0)
    size = [(box[2] - box[0]) * (box[3] - box[1]) for box in (a, b)]
    return shared / (sum(size) - shared)


def slow(detections, boxes, labels, label, threshold, area="all", most=100):
    """AP of one class at one threshold, one detection after the other, as COCO's definition reads."""
    low, high = AREAS[area]
    answers, count = [], 0
    for (own, words, probabilities), true, names in zip(detections, boxes, labels, strict=True):
        truth = [box for box, name in zip(true, names, strict=True) if name == label]
        outside = [not low <= (b[2] - b[0]) * (b[3] - b[1]) <= high for b in truth]
        count += outside.count(False)
        free = [True] * len(truth)
        mine = [k for k in sorted(range(len(own)), key=lambda k, p=probabilities: -p[k]) if words[k] == label][:most]
        for k in mine:
            place = None
            for skipped in (False, True):  # boxes that count come first
                best = threshold
                for j, box in enumerate(truth):
                    if place is None or outside[place] == skipped:
                        overlap = iou(own[k], box)
                        if free[j] and outside[j] == skipped and overlap >= best:
                            best, place = overlap, j
            size = (own[k][2] - own[k][0]) * (own[k][3] - own[k][1])
            ignored = outside[place] if place is not None else not low <= size <= high
            if place is not None:
                free[place] = False
            if not ignored:
                answers.append((probabilities[k], place is not None))
    if not count:
        return np.nan
    answers.sort(key=lambda answer: -answer[0])
    right = np.cumsum([hit for _, hit in answers]) if answers else np.zeros(0)
    precision, recall = right / (1 + np.arange(len(answers))), right / count
    pairs = list(zip(precision, recall, strict=True))
    return np.mean([max((p for p, r in pairs if r >= level), default=0.0) for level in np.linspace(0, 1, 101)])


def scene(seed, images=6):
    """Random true boxes, and detections near them, far from them and twice."""
    rng = np.random.default_rng(seed)
    boxes, labels, detections = [], [], []
    for _ in range(images):
        low = rng.uniform(0, 200, (rng.integers(0, 6), 2))
        true = np.concatenate([low, low + rng.uniform(5, 150, low.shape)], 1)
        names = rng.choice(["cat", "dog"], len(true))
        near = np.repeat(true, 2, 0) + rng.normal(0, 8, (2 * len(true), 4))
        far = np.concatenate([low, low + 20], 1)
        own = np.concatenate([near, far])
        own[:, 2:] = np.maximum(own[:, 2:], own[:, :2] + 1)
        words = np.concatenate([np.repeat(names, 2), rng.choice(["cat", "dog"], len(far))])
        boxes.append(true)
        labels.append(names)
        detections.append((own, words, rng.random(len(own))))
    return detections, boxes, labels


def test_by_hand():
    """One right, one that comes second to a box, one right: precision 1 to recall 1/2, then 2/3."""
    truth = [[[0, 0, 10, 10], [20, 0, 30, 10]]]
    answers = [([[0, 0, 10, 10], [0, 0, 10, 9], [20, 0, 30, 8]], ["cell"] * 3, [0.9, 0.8, 0.7])]
    measured = average_precision(answers, truth, [["cell", "cell"]])
    assert measured.at(0.5) == pytest.approx((51 + 50 * 2 / 3) / 101)
    assert measured.at(0.85) == pytest.approx(51 / 101)
    assert measured.value == pytest.approx((7 * (51 + 50 * 2 / 3) + 3 * 51) / 101 / 10)
    assert float(measured) == measured.value


def test_every_figure_is_that_of_the_definition(seed):
    detections, boxes, labels = scene(seed)
    for area in AREAS:
        measured = average_precision(detections, boxes, labels, area=area, most=4)
        for k, label in enumerate(measured.classes):
            for t in (0, 5, 9):
                expected = slow(detections, boxes, labels, label, OVERLAPS[t], area, most=4)
                np.testing.assert_allclose(measured.by_class[t, k], expected, atol=1e-12)


def test_true_boxes_with_any_probabilities_are_perfect(seed):
    _, boxes, labels = scene(seed)
    rng = np.random.default_rng(seed)
    answers = [(own, names, rng.random(len(own))) for own, names in zip(boxes, labels, strict=True)]
    assert average_precision(answers, boxes, labels).value == 1.0


def test_a_class_only_detected_does_not_count_and_one_missed_is_0():
    answers = [([[0, 0, 4, 4]], ["bird"], [0.9])]
    measured = average_precision(answers, [[[0, 0, 4, 4]]], [["cat"]], classes=["bird", "cat"])
    assert measured.classes.tolist() == ["cat"]
    assert measured.value == 0.0
    none = average_precision([(np.empty((0, 4)), [], [])], [[[0, 0, 4, 4]]])
    assert none.value == 0.0


def test_classes_that_the_model_cannot_have_detected_are_told():
    answers, boxes = [([[0, 0, 4, 4]], ["cat"], [0.9])], [[[0, 0, 4, 4], [5, 5, 8, 8]]]
    with pytest.warns(
        UserWarning, match=r"classes that no detection is of \('zebra'; detections are of 'cat'\): their av"
    ):
        measured = average_precision(answers, boxes, [["cat", "zebra"]])
    assert measured.by_class[0].tolist() == [1.0, 0.0]
    with pytest.warns(UserWarning, match=r"classes that the model does not know \('zebra'\)"):
        average_precision(answers, boxes, [["cat", "zebra"]], classes=["cat", "dog"])
    with pytest.warns(UserWarning, match=r"classes that no detection is of \(1; detections are of 'cat'\)"):
        average_precision(answers, boxes, [[1, 1]])


def test_boxes_without_labels_are_of_the_one_class_that_was_detected():
    boxes = [[[0, 0, 4, 4]]]
    assert average_precision([([[0, 0, 4, 4]], ["cell"], [0.9])], boxes).value == 1.0
    assert average_precision([([[0, 0, 4, 4]], [3], [0.9])], boxes, classes=[3]).classes.tolist() == [3]
    two = [([[0, 0, 4, 4], [5, 5, 8, 8]], ["cell", "dirt"], [0.9, 0.8])]
    with pytest.raises(DataError, match="labels is None, but detections are of 2 classes"):
        average_precision(two, boxes)


def test_where_no_box_counts_there_is_no_figure():
    answers = [([[0, 0, 4, 4]], ["cat"], [0.9])]
    with pytest.raises(DataError, match="boxes has no box in any image"):
        average_precision(answers, [[]])
    large = average_precision(answers, [[[0, 0, 4, 4]]], area="large")  # and numpy says nothing of empty slices
    assert np.isnan(large.value)
    assert np.isnan(large.at(0.5))
    assert "mAP nan" in str(large)


def test_what_will_not_do():
    with pytest.raises(DataError, match="detections has 1 entries and boxes 2; each image needs one"):
        average_precision([([], [], [])], [[], []])
    with pytest.raises(DataError, match="area='tiny' must be one of all, small"):
        average_precision([([], [], [])], [[]], area="tiny")
    with pytest.raises(DataError, match="1 boxes, 2 labels and 1 probabilities"):
        average_precision([([[0, 0, 1, 1]], ["a", "b"], [0.5])], [[]])
    with pytest.raises(DataError, match=r"overlap=0.3 is not among those measured"):
        average_precision([([], [], [])], [[[0, 0, 1, 1]]]).at(0.3)
