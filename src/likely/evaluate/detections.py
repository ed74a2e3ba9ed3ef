"""Average precision of detections, by the definition of COCO.

For a class and a threshold t on the IoU, detections of all images go in falling order of probability. One is right if
it overlaps a true box of its image, which no earlier one has taken, by t or more; it takes the one that it overlaps
most. With precision(r) the largest precision at a recall of r or more,

    AP = mean of precision(r) over r = 0, 0.01, …, 1,     mAP = mean of AP over classes and t = 0.5, 0.55, …, 0.95

An `area` counts the true boxes of some sizes alone: others, and detections that match those or are of other sizes
themselves, count neither as right nor as wrong.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch

from ..core.errors import DataError
from ..data.geometry import overlaps
from ..models.labels import shown
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
        """mAP over classes and thresholds; NaN where no true box counts."""
        return _mean(self.by_class)

    def at(self, overlap: float) -> float:
        """mAP at one threshold: `at(0.5)` is what Pascal VOC made known as mAP@0.5."""
        row = np.flatnonzero(np.isclose(self.overlaps, overlap))
        if not len(row):
            raise DataError(f"overlap={overlap:g} is not among those measured, {self.overlaps.tolist()}.")
        return _mean(self.by_class[row[0]])

    def __float__(self) -> float:
        return self.value

    def __str__(self) -> str:
        first = self.by_class[0]
        own = ", ".join(f"{label} {value:.3f}" for label, value in zip(self.classes, first, strict=True))
        return f"mAP {self.value:.3f}; at IoU {self.overlaps[0]:g}: {_mean(first):.3f} ({own})"


def average_precision(
    detections: Sequence[Any],
    boxes: Sequence[Any],
    labels: Sequence[Any] | None = None,
    *,
    classes: Sequence[Any] | None = None,
    overlaps: Sequence[float] = OVERLAPS,
    area: str = "all",
    most: int = 100,
) -> AveragePrecision:
    """AP of what `Detector.detect` gives for images, against their true boxes and labels.

    `detections` may also be tuples (boxes, labels, probabilities). For a sound figure they must include improbable
    ones: `detect(X, threshold=0.01)`. Without `labels`, all true boxes are of the one class that was detected.

    `classes` are those that the model knows (its `classes_`; if not given, those of the detections): a warning names
    the ones that true boxes have beside them, whose AP is 0. `area` is "all", "small" (up to 32² pixels), "medium" or
    "large" (from 96²); the AP of a class is NaN where no true box of it has such a size. `most` is how many detections
    of an image and class count.

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
        named = "" if labels is None else f", labels of {len(labels)}"
        raise DataError(
            f"detections has {len(detections)} entries and boxes {len(boxes)}{named}; each image needs one."
        )
    answers = [_as_answer(answer, i) for i, answer in enumerate(detections)]
    known = _distinct([own for _, own, _ in answers]) if classes is None else np.unique(np.asarray(classes))
    common = _common(known) if labels is None else None
    true = [_as_truth(own, common if labels is None else labels[i]) for i, own in enumerate(boxes)]
    there = _distinct([own for _, own in true])
    if not len(there):
        raise DataError(
            "boxes has no box in any image, so that there is nothing to detect and no precision to measure."
        )
    _tell_unknown(there, known, given=classes is not None)
    pairs = list(zip(answers, true, strict=True))
    matches = [[_matched(*pair, label, thresholds, low, high, most) for pair in pairs] for label in there]
    parts = [_curve(own, len(thresholds)) for own in matches]
    precisions, recalls = (np.stack([part[index] for part in parts], 1) for index in (0, 1))
    return AveragePrecision(there, thresholds, precisions.mean(-1), precisions, recalls)


def _distinct(labels: list[np.ndarray]) -> np.ndarray:
    filled = [own for own in labels if len(own)]
    return np.unique(np.concatenate(filled)) if filled else np.empty(0, int)


def _common(known: np.ndarray) -> Any:
    """The class of all true boxes where they have no labels."""
    if len(known) > 1:
        raise DataError(
            f"labels is None, but detections are of {len(known)} classes ({shown(known)}); give each box one."
        )
    return known[0] if len(known) else "object"


def _tell_unknown(there: np.ndarray, known: np.ndarray, *, given: bool) -> None:
    unknown = np.array([label not in known.tolist() for label in there.tolist()])
    if not unknown.any() or (not given and not len(known)):
        return
    strange = shown(there[unknown])
    if given:
        what = f"The boxes have classes that the model does not know ({strange})"
    else:
        what = f"The boxes have classes that no detection is of ({strange}; detections are of {shown(known)})"
    warnings.warn(f"{what}: their average precision is 0.", UserWarning, stacklevel=3)


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


def _mean(values: np.ndarray) -> float:
    counted = values[~np.isnan(values)]
    return float(counted.mean()) if counted.size else float("nan")


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
    """The boxes of an image and their labels: one for each, or one for all."""
    true = np.asarray(boxes, dtype=np.float64).reshape(-1, 4)
    words = np.asarray(labels)
    words = np.full(len(true), labels) if words.ndim == 0 else words
    if len(words) != len(true):
        raise DataError(f"An image has {len(true)} boxes and {len(words)} labels; each box needs one.")
    return true, words
