"""One of K labels 0, 1, …, K − 1: what `Categorical` and `Ordinal` share. η has K numbers."""

from __future__ import annotations

from typing import Any

from torch import Tensor
from torch.distributions import constraints
from torch.nn.functional import one_hot

from ..core.spec import require
from . import weighted
from .base import Likelihood, Target

__all__ = ["_Labels", "count_classes", "frequencies"]


class _Labels(Likelihood):
    """A likelihood of labels that takes the number of classes from the data unless `classes` is given."""

    classes: int | None = None

    labels = True
    numeric = False

    def validate(self) -> None:
        whole = isinstance(self.classes, int) and not isinstance(self.classes, bool) and self.classes >= 2
        require(self.classes is None or whole, self, "classes", "an integer above 1, or None")

    @property
    def _count(self) -> int | None:
        """How many classes there are, if the spec says so."""
        return self.classes

    @property
    def needs(self) -> str:  # type: ignore[override]
        """The support in words."""
        return "labels 0, 1, 2, …" + (f" below {self._count}" if self._count else "")

    @property
    def support(self) -> Any:
        return constraints.integer_interval(0, self._count - 1) if self._count else constraints.nonnegative_integer

    def target(self, y: Tensor) -> Target:
        return Target(classes=count_classes(y, self._count))

    def known_target(self) -> Target | None:
        return Target(classes=self._count) if self._count else None

    def example_target(self) -> Target:
        return Target(classes=self._count or 3)

    def size(self, target: Target) -> int:
        return target.classes or 2

    def target_of(self, size: int) -> Target:
        return Target(classes=size)

    def indexed(self, y: Tensor) -> Tensor:
        return y.long()

    def each_log_prob(self, eta: Tensor, y: Tensor) -> Tensor:
        return self.label_log_probs(eta).T[y.long()]

    def label_log_probs(self, eta: Tensor) -> Tensor:
        """log P(y = j) for all K labels, of shape (…, K)."""
        raise NotImplementedError(f"{type(self).__name__} must give the probabilities of its labels")

    def statistics(self, y: Tensor, origin: Tensor) -> Tensor | None:
        return one_hot(y.long(), self._count).to(y.dtype) if self._count else None

    def from_statistics(self, mean: Tensor, origin: Tensor) -> Tensor:
        return self.from_frequencies(kept_positive(mean))

    def from_frequencies(self, frequency: Tensor) -> Tensor:
        """η (k, classes) under which the labels have these probabilities."""
        raise NotImplementedError(f"{type(self).__name__} must give its η")

    def estimate(self, y: Tensor, fraction: Tensor) -> Tensor:
        """η of the weighted frequencies."""
        return self.from_frequencies(frequencies(y, fraction, count_classes(y, self._count)))


def count_classes(y: Tensor, least: int | None) -> int:
    """One more than the largest label, at least 2 and at least what was asked for."""
    largest = int(y.nan_to_num(nan=0.0).max()) if y.numel() else 0
    return max(largest + 1, least or 2)


def frequencies(y: Tensor, fraction: Tensor, classes: int) -> Tensor:
    """The weighted frequency of each class, (k, classes): never 0, so that an absent class has a finite logit."""
    sums = fraction.new_zeros(classes, fraction.shape[-1]).index_add_(0, y.long(), fraction)
    return kept_positive(sums.T)


def kept_positive(frequency: Tensor) -> Tensor:
    """Frequencies that sum to 1, none of them 0."""
    floored = frequency.clamp_min(weighted.FLOOR)
    return floored / floored.sum(-1, keepdim=True)
