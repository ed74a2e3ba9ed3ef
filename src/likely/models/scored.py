"""What a fitted model says of rows, as a function of them that has gradients: what attacks and explanations ask."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import numpy as np
from torch import Tensor

from ..core.learned import Learned

__all__ = ["Scored"]


class Scored(Learned):
    """A model that predicts by scores of its rows, which torch can differentiate.

    "log_prob"   log p(k | x) of each class k, up to a number that a row's classes share: (n, classes)
    "pairs"      f(x) of each pair of classes, positive for the later one: (n, pairs), as `combinations` orders them
    "mean"       the mean of y: (n, outputs)
    """

    _kept: ClassVar[str] = ""
    """The attribute with the rows of the fit that the model keeps."""

    @property
    def _score(self) -> Literal["log_prob", "pairs", "mean"]:
        """What the scores are."""
        raise NotImplementedError(f"{type(self).__name__} must say what its scores are")

    def _points(self, X: Any) -> Tensor:
        """Rows as `_scores` takes them: float64, finite."""
        raise NotImplementedError(f"{type(self).__name__} must read rows")

    def _scores(self, x: Tensor) -> Tensor:
        """The scores of some rows; gradients go to x, if it asks for them."""
        raise NotImplementedError(f"{type(self).__name__} must tell its scores")

    @property
    def _affine(self) -> bool:
        """Whether differences of scores are linear in x, plus a constant."""
        return False

    @property
    def _span(self) -> tuple[float, float] | None:
        """The least and the largest number of the rows that were learned from, if the model keeps them."""
        kept = getattr(self, self._kept) if self._kept else np.empty(0)
        return (float(kept.min()), float(kept.max())) if kept.size else None

    @property
    def _work(self) -> float:
        """Multiply-adds of the scores of one row."""
        return float(self.__dict__.get("n_features_in_", 1))

    @property
    def _ends(self) -> Tensor | None:
        """The least and the largest number that each column may have, (2, columns); None where any will do.

        NaN stands for a column that has no small changes: its numbers are labels or counts.
        """
        return None
