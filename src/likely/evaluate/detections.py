"""Average precision of detections, by the definition of COCO.

For a class and a threshold t on the IoU, detections of all images go in falling order of probability. One is right if
it overlaps a true box of its image, which no earlier one has taken, by t or more; it takes the one that it overlaps
most. With precision(r) the largest precision at a recall of r or more,

    AP = mean of precision(r) over r = 0, 0.01, …, 1,     mAP = mean of AP over classes and t = 0.5, 0.55, …, 0.95

An `area` counts the true boxes of some sizes alone: others, and detections that match those or are of other sizes
themselves, count neither as right nor as wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch

from ..core.errors import DataError
from ..data.geometry import overlaps
from .result import Result

__all__ = ["AveragePrecision", "average_precision"]

OVERLAPS = tuple(round(0.5 + 0.05 * step, 2) for step in range(10))
RECALLS = np.linspace(0.0, 1.0, 101)
AREAS = {"all": (0.0, 1e10), "small": (0.0, 32.0**2), "medium": (32.0**2, 96.0**2), "large": (96.0**2, 1e10)}


@dataclass(frozen=True)
class AveragePrecision(Result):
    """AP of every class at every threshold. `value` is the mean over both: what COCO calls AP, and others mAP."""

    classes: np.ndarray
    overlaps: np.ndarray
    by_class: np.ndarray
    """AP, (overlaps, classes); NaN for a class that has no true box."""
    precisions: np.ndarray
    """The largest precision at each recall 0, 0.01, …, 1 or more: (overlaps, classes, 101)."""
    recalls: np.ndarray
    """The fraction of true boxes that are detected, (overlaps, classes)."""

    @property
    def value(self) -> float:
        """mAP over classes and thresholds."""
        return float(np.nanmean(self.by_class))

    def at(self, overlap: float) -> float:
        """mAP at one threshold: `at(0.5)` is what Pascal VOC made known as mAP@0.5."""
        row = np.flatnonzero(np.isclose(self.overlaps, overlap))
        if not len(row):
            raise DataError(f"overlap={overlap:g} is not among those measured, {self.overlaps.tolist()}.")
        return float(np.nanmean(self.by_class[row[0]]))

    def __float__(self) -> float:
        return self.value

    def __str__(self) -> str:
        first = self.by_class[0]
        own = ", ".join(f"{label} {value:.3f}" for label, value in zip(self.classes, first, strict=True))
        return f"mAP {self.value:.3f}; at IoU {self.overlaps[0]:g}: {np.nanmean(first):.3f} ({own})"


def average_precision(
    detections: Sequence[Any],
    boxes: Sequence[Any],
    labels: Sequence[Any] | None = None,
    *,
    overlaps: Sequence[float] = OVERLAPS,
    area: str = "all",
    most: int = 100,
) -> AveragePrecision:
    """AP of what `Detector.detect` gives for images, against their true boxes and labels.

    `detections` may also be tuples (boxes, labels, probabilities). For a sound figure they must include improbable
    ones: `detect(X, threshold=0.01)`. `area` is "all", "small" (up to 32² pixels), "medium" or "large" (from 96²), and
    `most` how many detections of an image and class count.

    >>> truth = [[[0, 0, 10, 10], [20, 0, 30, 10]]]
    >>> answers = [([[0, 0, 10, 10], [0, 0, 10, 9], [20, 0, 30, 8]], ["cell"] * 3, [0.9, 0.8, 0.7])]
    >>> print(average_precision(answers, truth, [["cell", "cell"]], overlaps=(0.5, 0.9)))
    mAP 0.670; at IoU 0.5: 0.835 (cell 0.835)
    """
    low, high = _range_of(area)
    thresholds = np.asarray(overlaps, dtype=np.float64)
    if thresholds.ndim != 1 or not len(thresholds) or not ((thresholds > 0) & (thresholds <= 1)).all():
        raise DataError(f"overlaps={overlaps!r} must be thresholds above 0 and up to 1, such as (0.5,).")
    if len(detections) != len(boxes) or (labels is not None and len(labels) != len(boxes)):
        raise DataError(f"detections are of {len(detections)} images and boxes of {len(boxes)}; both need the same.")
    answers = [_as_answer(answer, i) for i, answer in enumerate(detections)]
    true = [_as_truth(own, None if labels is None else labels[i]) for i, own in enumerate(boxes)]
    words = [own for _, own in true if len(own)]
    classes = np.unique(np.concatenate(words)) if words else np.empty(0, int)
    pairs = list(zip(answers, true, strict=True))
    matches = [[_matched(*pair, label, thresholds, low, high, most) for pair in pairs] for label in classes]
    parts = [_curve(own, len(thresholds)) for own in matches]
    precisions = np.stack([part[0] for part in parts], 1) if parts else np.empty((len(thresholds), 0, len(RECALLS)))
    recalls = np.stack([part[1] for part in parts], 1) if parts else np.empty((len(thresholds), 0))
    return AveragePrecision(classes, thresholds, precisions.mean(-1), precisions, recalls)


class _Matches(NamedTuple):
    """Of one image and class: probabilities (k,), which are right and which are ignored (T, k), and true boxes."""

    probabilities: np.ndarray
    right: np.ndarray
    ignored: np.ndarray
    boxes: int


def _matched(
    answer: Any, true: Any, label: Any, thresholds: np.ndarray, low: float, high: float, most: int
) -> _Matches:
    boxes, words, probabilities = answer
    own = np.flatnonzero(words == label)
    own = own[np.argsort(-probabilities[own], kind="stable")][:most]
    boxes, probabilities = boxes[own], probabilities[own]
    truth = true[0][true[1] == label]
    outside = _outside(truth, low, high)
    right = np.zeros((len(thresholds), len(own)), bool)
    ignored = np.zeros_like(right)
    iou = overlaps(torch.from_numpy(boxes), torch.from_numpy(truth)).numpy()
    taken = np.zeros((len(thresholds), len(truth)), bool)
    limits = np.minimum(thresholds, 1 - 1e-10)[:, None]
    rows = np.arange(len(thresholds))
    for k in range(len(own) if len(truth) else 0):
        free = ~taken & (iou[k] >= limits)
        counted = free & ~outside
        choice = np.where(counted.any(1, keepdims=True), counted, free)  # one that counts comes first
        best = np.where(choice, iou[k], -1.0)
        last = len(truth) - 1 - best[:, ::-1].argmax(1)  # of equal ones the last, as COCO's program has it
        hit = choice[rows, last]
        taken[rows[hit], last[hit]] = True
        right[:, k], ignored[:, k] = hit, hit & outside[last]
    ignored |= ~right & _outside(boxes, low, high)
    return _Matches(probabilities, right, ignored, int((~outside).sum()))


def _curve(matches: list[_Matches], thresholds: int) -> tuple[np.ndarray, np.ndarray]:
    """Precision at each recall (T, 101) and the last recall (T,); NaN where no box counts."""
    count = sum(own.boxes for own in matches)
    if not count:
        return np.full((thresholds, len(RECALLS)), np.nan), np.full(thresholds, np.nan)
    order = np.argsort(-np.concatenate([own.probabilities for own in matches]), kind="stable")
    right, ignored = (np.concatenate([own[index] for own in matches], 1)[:, order] for index in (1, 2))
    precisions, recalls = np.zeros((thresholds, len(RECALLS))), np.zeros(thresholds)
    for row in range(thresholds):
        hits, misses = np.cumsum(right[row] & ~ignored[row]), np.cumsum(~right[row] & ~ignored[row])
        recall = hits / count
        precision = hits / np.maximum(hits + misses, 1)
        envelope = np.maximum.accumulate(precision[::-1])[::-1]
        at = np.searchsorted(recall, RECALLS, side="left")
        inside = at < len(envelope)
        precisions[row, inside] = envelope[at[inside]]
        recalls[row] = recall[-1] if len(recall) else 0.0
    return precisions, recalls


def _outside(boxes: np.ndarray, low: float, high: float) -> np.ndarray:
    area = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
    return (area < low) | (area > high)


def _range_of(area: str) -> tuple[float, float]:
    if area not in AREAS:
        raise DataError(f"area={area!r} must be one of {', '.join(AREAS)}.")
    return AREAS[area]


def _as_answer(answer: Any, image: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    parts = (answer.boxes, answer.labels, answer.probabilities) if hasattr(answer, "boxes") else tuple(answer)
    if len(parts) < 3:
        raise DataError(f"detections[{image}] has {len(parts)} parts; boxes, labels and probabilities are needed.")
    boxes = np.asarray(parts[0], dtype=np.float64).reshape(-1, 4)
    words, probabilities = np.asarray(parts[1]), np.asarray(parts[2], dtype=np.float64)
    if not len(boxes) == len(words) == len(probabilities):
        sizes = f"{len(boxes)} boxes, {len(words)} labels and {len(probabilities)} probabilities"
        raise DataError(f"detections[{image}] has {sizes}; each box needs one of both.")
    return boxes, words, probabilities


def _as_truth(boxes: Any, labels: Any) -> tuple[np.ndarray, np.ndarray]:
    true = np.asarray(boxes, dtype=np.float64).reshape(-1, 4)
    words = np.full(len(true), "object") if labels is None else np.asarray(labels)
    if len(words) != len(true):
        raise DataError(f"An image has {len(true)} boxes and {len(words)} labels; each box needs one.")
    return true, words
