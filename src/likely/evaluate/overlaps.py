"""Overlaps of regions: intersection over union, and Dice, of each class over all pixels.

IoU = |A ∩ B| / |A ∪ B|,     Dice = 2 |A ∩ B| / (|A| + |B|) = 2 IoU / (1 + IoU)

Both are losses of a decision, not likelihoods: probabilities are fitted by the likelihood, and what to do with them is
chosen afterwards. `dice_threshold` is the choice that makes the expected Dice largest.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..core.errors import DataError
from ..models.labels import missing_among, shown
from .protocol import as_array
from .result import Result

__all__ = ["Overlap", "dice", "dice_threshold", "iou", "overlap"]


@dataclass(frozen=True)
class Overlap(Result):
    """IoU and Dice of each class; NaN for a class that neither mask has."""

    classes: np.ndarray
    iou: np.ndarray
    dice: np.ndarray
    accuracy: float
    """The fraction of pixels that are right."""
    pixels: int

    def __str__(self) -> str:
        parts = zip(self.classes, self.iou, self.dice, strict=True)
        lines = [f"{label}: IoU {i:.3f}, Dice {d:.3f}" for label, i, d in parts]
        mean = f"mean IoU {np.nanmean(self.iou):.3f}, Dice {np.nanmean(self.dice):.3f}"
        return "\n".join([*lines, f"{mean}; {self.accuracy:.1%} of {self.pixels} pixels right"])


def overlap(
    actual: Any, predicted: Any, labels: Sequence[Any] | None = None, *, missing_label: int | None = None
) -> Overlap:
    """IoU and Dice of each class over all pixels of masks (n, height, width), or of any arrays of labels.

    `labels` are the classes that the model knows; a warning names those that the masks have beside them, whose pixels
    cannot be right. A pixel that is missing (NaN, None, or `missing_label`) does not count.

    >>> result = overlap([[0, 0, 1, 1]], [[0, 1, 1, 1]])
    >>> result.iou.round(3), result.dice.round(3)
    (array([0.5  , 0.667]), array([0.667, 0.8  ]))
    """
    truth, answer = as_array(actual), as_array(predicted)
    if truth.shape != answer.shape or not truth.size:
        raise DataError(f"actual has shape {truth.shape} and predicted {answer.shape}; masks of one size are needed.")
    counts = ~missing_among(truth, missing_label)
    truth, answer = truth[counts], answer[counts]
    if not truth.size:
        raise DataError("actual has no labels: all of them are missing.")
    seen = np.union1d(truth, answer)
    classes = seen if labels is None else np.asarray(labels)
    strange = np.setdiff1d(truth, classes)
    if len(strange):
        warnings.warn(
            f"The masks have classes that the model does not know ({shown(strange)}): none of their pixels can be "
            "right.",
            UserWarning,
            stacklevel=2,
        )
        classes = np.union1d(classes, strange)
    both = np.array([np.sum((truth == label) & (answer == label)) for label in classes], dtype=float)
    sizes = np.array([np.sum(truth == label) + np.sum(answer == label) for label in classes], dtype=float)
    there = sizes > 0
    ious = np.divide(both, sizes - both, out=np.full(len(classes), np.nan), where=there)
    dices = np.divide(2 * both, sizes, out=np.full(len(classes), np.nan), where=there)
    return Overlap(classes, ious, dices, float(np.mean(truth == answer)), len(truth))


def iou(actual: Any, predicted: Any, labels: Sequence[Any] | None = None, *, missing_label: int | None = None) -> float:
    """Intersection over union, the mean over the classes that occur; `overlap` has one number for each.

    >>> round(iou([0, 0, 1, 1], [0, 1, 1, 1]), 4)
    0.5833
    """
    return float(np.nanmean(overlap(actual, predicted, labels, missing_label=missing_label).iou))


def dice(
    actual: Any, predicted: Any, labels: Sequence[Any] | None = None, *, missing_label: int | None = None
) -> float:
    """The Dice coefficient (F₁ of pixels), the mean over the classes that occur; `overlap` has one for each.

    >>> round(dice([0, 0, 1, 1], [0, 1, 1, 1]), 4)
    0.7333
    """
    return float(np.nanmean(overlap(actual, predicted, labels, missing_label=missing_label).dice))


def dice_threshold(probabilities: Any) -> float:
    """Above which probability pixels should be called the class, for the largest expected Dice of it.

        argmax over t of  2 Σ_{p > t} p / (#{p > t} + Σ p)

    That is half of the Dice which is reached, so never above ½: a rare class is called sooner than it is probable.

    >>> dice_threshold([0.9, 0.4, 0.1])
    0.25
    """
    p = np.sort(as_array(probabilities).astype(float).ravel())[::-1]
    if not p.size or not bool((p >= 0).all() and (p <= 1).all()):
        raise DataError("probabilities must be numbers between 0 and 1, of one class.")
    reached = 2 * np.cumsum(p) / (np.arange(1, len(p) + 1) + p.sum())
    best = int(np.argmax(reached))
    return float((p[best] + (p[best + 1] if best + 1 < len(p) else 0.0)) / 2)
