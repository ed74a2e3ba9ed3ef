"""What attacks and certificates ask of a model: losses, margins and their gradients, and the door for rows and targets.

    labels    loss = −log p(y | x),     margin = max over k ≠ y of  log p(k | x) − log p(y | x)
    numbers   loss = margin = max over outputs of  |mean(y | x) − y| − threshold

The margin is above 0 where the answer is wrong: another class is more probable, or the prediction is off by more than a
threshold.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..core.errors import DataError, SpecError
from ..models.supervised.base import as_array
from ..optim.ascent import followed
from ..optim.bounds import Bounds, bounds_of
from .forms import changed_rows

__all__ = ["PURPOSE", "Labelled", "Numbers", "Scoring", "Victim"]

ROWS = 256
"""Rows of a block, where nothing is known of a model's layers."""
DEVIATIONS = 2.0
"""How far off a prediction may be, in standard deviations of the prediction, where no threshold is given."""
PURPOSE = "attacks and certificates"


class Victim(ABC):
    """What attacks ask (see `likely.optim.ascent.Victim`), and the door: rows and targets in, answers out."""

    linear: bool = False
    """Whether margins are linear in x, so that there is a closed form."""
    rows: int = ROWS
    """Rows to be attacked at once."""
    work: float = math.inf
    """Multiply-adds of the largest operation on these rows."""
    positions: bool = False
    """Whether labels may be those of positions in a row, whose scores are (n, *positions, classes)."""
    purpose: str = PURPOSE
    """Who asks, for messages."""
    span: tuple[float, float] | None = None
    """The least and the largest number of the rows that the model learned from, if it knows them."""

    @abstractmethod
    def read(self, X: Any) -> Tensor:
        """What may be changed of rows: floating-point numbers (n, …)."""

    @abstractmethod
    def targets(self, x: Tensor, X: Any, y: Any) -> Tensor:
        """Targets as `margins` takes them, one entry per row; None: what the model itself answers."""

    @abstractmethod
    def evaluate(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """The loss and the margin of each row, (n,) and (n,)."""

    @abstractmethod
    def margins(self, x: Tensor, y: Tensor) -> Tensor:
        """The margin of each way to be fooled, (n, ways)."""

    @abstractmethod
    def answers(self, X: Any) -> np.ndarray:
        """What the model says of rows, through its public door."""

    @abstractmethod
    def wrong(self, answers: np.ndarray, y: Tensor) -> np.ndarray:
        """Which answers are wrong, (n,)."""

    def follow(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The loss and the margin of each row, and the gradient of the loss in x, (n, …)."""
        return followed(self, x, y)

    def bounds(self, bounds: Any, x: Tensor) -> Bounds:
        """The bounds asked for, of what may be changed of rows."""
        return bounds_of(bounds, x)

    def limits(self, bounds: Bounds) -> Bounds:
        """The bounds that changed rows stay in: those asked for, and those of the model itself."""
        return bounds

    def changed(self, X: Any, x: Tensor, point: Tensor, bounds: Any) -> Any:
        """What X, read as x, has become, in the form of X."""
        return changed_rows(X, x, point, bounds)


class Scoring(Victim):
    """A victim whose margins are made of scores: log-probabilities of classes, or means of numbers."""

    @abstractmethod
    def scores(self, x: Tensor) -> Tensor:
        """What the margins are made of: log-probabilities (n, classes), or means (n, outputs)."""

    @abstractmethod
    def margins_of(self, scores: Tensor, y: Tensor) -> Tensor:
        """The margin of each way to be fooled, (n, ways)."""

    def labels(self, x: Tensor) -> Tensor:
        """The place of the answer among the classes for each row, (n,)."""
        return self.scores(x).argmax(1)

    def evaluate(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        return self.judged(self.scores(x), y)

    def judged(self, scores: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """The loss and the margin of each row, of scores."""
        margin = self.margins_of(scores, y).max(1).values  # one of two that are alike: both could have no gradient
        return margin, margin

    def margins(self, x: Tensor, y: Tensor) -> Tensor:
        return self.margins_of(self.scores(x), y)


class Labelled(Scoring):
    """Scores are log-probabilities (or logits), y the place of the right class among them."""

    def judged(self, scores: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        own = scores.gather(1, y.unsqueeze(1)).squeeze(1)
        return scores.logsumexp(1) - own, self.margins_of(scores.detach(), y).amax(1)

    def margins_of(self, scores: Tensor, y: Tensor) -> Tensor:
        place = y.unsqueeze(1)
        return (scores - scores.gather(1, place)).scatter(1, place, -math.inf)


class Numbers(Scoring):
    """Scores are means; y is (n, 2, outputs): the numbers, and how far off a prediction may be."""

    threshold: Any = None

    def margins_of(self, scores: Tensor, y: Tensor) -> Tensor:
        error, width = scores - y[:, 0], y[:, 1]
        return torch.cat([error - width, -error - width], 1)

    def wrong(self, answers: np.ndarray, y: Tensor) -> np.ndarray:
        target, width = as_array(y.double()).transpose(1, 0, 2)
        return (np.abs(answers.reshape(len(target), -1) - target) > width).any(1)

    def with_thresholds(self, y: Tensor, distribution: Any) -> Tensor:
        """Numbers (n, outputs) beside how far off predictions with this distribution may be."""
        if bool(y.isnan().any()):
            row = int(y.isnan().any(1).nonzero()[0])
            raise DataError(f"y has no number at row {row}; an attack needs one for each row.")
        if self.threshold is not None:
            return torch.stack([y, self._given(y).expand_as(y)], 1)
        width = DEVIATIONS * distribution().variance.sqrt().reshape(len(y), -1).to(y)
        if not bool(width.isfinite().all()):
            raise DataError("The predictions have no finite standard deviation; give a threshold in the units of y.")
        return torch.stack([y, width.expand_as(y)], 1)

    def _given(self, y: Tensor) -> Tensor:
        try:
            width = torch.as_tensor(np.asarray(self.threshold, dtype=float)).to(y)
        except (TypeError, ValueError):
            width = torch.full_like(y[0], math.nan)
        if not bool((width >= 0).all()) or width.ndim > 1 or (width.ndim == 1 and len(width) != y.shape[1]):
            raise SpecError(f"threshold={self.threshold!r} must be a number of the units of y, 0 or more.")
        return width
