"""One of K labels 0, 1, …, K − 1: what `Categorical` and `Ordinal` share. η has K numbers."""

from __future__ import annotations

from typing import Any

from torch import Tensor
from torch.distributions import constraints

from ..core.spec import require
from . import weighted
from .base import Likelihood, Target

__all__ = ["_Labels", "count_classes", "frequencies"]


class _Labels(Likelihood):
    """A likelihood of labels that takes the number of classes from the data unless `classes` says it."""

    classes: int | None = None

    labels = True
    numeric = False
    needs = "labels 0, 1, 2, …"

    def validate(self) -> None:
        whole = isinstance(self.classes, int) and not isinstance(self.classes, bool) and self.classes >= 2
        require(self.classes is None or whole, self, "classes", "a whole number above 1, or None")

    @property
    def support(self) -> Any:
        return constraints.integer_interval(0, self.classes - 1) if self.classes else constraints.nonnegative_integer

    def target(self, y: Tensor) -> Target:
        return Target(classes=count_classes(y, self.classes))

    def known_target(self) -> Target | None:
        return Target(classes=self.classes) if self.classes else None

    def example_target(self) -> Target:
        return Target(classes=self.classes or 3)

    def size(self, target: Target) -> int:
        return target.classes or 2

    def target_of(self, size: int) -> Target:
        return Target(classes=size)


def count_classes(y: Tensor, least: int | None) -> int:
    """One more than the largest label, at least 2 and at least what was asked for."""
    largest = int(y.nan_to_num(nan=0.0).max()) if y.numel() else 0
    return max(largest + 1, least or 2)


def frequencies(y: Tensor, share: Tensor, classes: int) -> Tensor:
    """The weighted frequency of each class, (k, classes): never 0, so that an absent class has a finite logit."""
    sums = share.new_zeros(classes, share.shape[-1]).index_add_(0, y.long(), share)
    floored = sums.T.clamp_min(weighted.FLOOR)
    return floored / floored.sum(-1, keepdim=True)
