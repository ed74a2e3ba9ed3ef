"""Categorical: one of K labels without order; the likelihood of softmax regression.

−log p(y = j | x) = log Σₖ exp(ηₖ) − ηⱼ
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, distributions
from torch.distributions import constraints
from torch.nn.functional import cross_entropy

from ..core.spec import require
from . import weighted
from .base import Likelihood, Target

__all__ = ["Categorical"]


class Categorical(Likelihood):
    """Categorical(classes=None | K): η are K logits, K taken from the data unless given.

    >>> import torch
    >>> Categorical().log_prob(torch.tensor([0.0, 1e4]), torch.tensor(0))
    tensor(-10000.)
    """

    classes: int | None = None

    labels = True
    numeric = False
    needs = "labels 0, 1, 2, …"

    def validate(self) -> None:
        require_classes(self, self.classes)

    @property
    def support(self) -> Any:
        return labels_support(self.classes)

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

    def distribution(self, eta: Tensor) -> distributions.Categorical:
        return distributions.Categorical(logits=eta, validate_args=False)

    def log_prob(self, eta: Tensor, y: Tensor) -> Tensor:
        if eta.ndim == 2 and y.shape == eta.shape[:-1]:  # a batch of rows, as in every training loop
            return -cross_entropy(eta, y.long(), reduction="none")
        shape = torch.broadcast_shapes(eta.shape[:-1], y.shape)
        logits = eta.expand(*shape, eta.shape[-1]).reshape(-1, eta.shape[-1])
        return -cross_entropy(logits, y.long().expand(shape).reshape(-1), reduction="none").reshape(shape)

    def log_likelihood(self, eta: Tensor, y: Tensor) -> Tensor:
        if eta.ndim == 2 and y.shape == eta.shape[:-1]:
            return -cross_entropy(eta, y.long(), reduction="sum")
        return super().log_likelihood(eta, y)

    def probabilities(self, eta: Tensor) -> Tensor:
        return eta.softmax(-1)

    def derivatives(self, eta: Tensor, y: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """[y = k] − pₖ and diag(p) − ppᵀ."""
        log_prob, score = self.slope(eta, y)
        probability = eta.softmax(-1)
        outer = probability.unsqueeze(-1) * probability.unsqueeze(-2)
        return log_prob, score, torch.diag_embed(probability) - outer

    def slope(self, eta: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        log_probability, index = eta.log_softmax(-1), y.long().unsqueeze(-1)
        score = -log_probability.exp()
        return log_probability.gather(-1, index).squeeze(-1), score.scatter_add(-1, index, torch.ones_like(score))

    def estimate(self, y: Tensor, share: Tensor) -> Tensor:
        """The logarithms of the weighted frequencies."""
        return frequencies(y, share, count_classes(y, self.classes)).log()


def require_classes(spec: Likelihood, classes: int | None) -> None:
    """Raise a `SpecError` unless the number of classes is a whole number above 1, or left to the data."""
    whole = isinstance(classes, int) and not isinstance(classes, bool)
    require(classes is None or (whole and classes >= 2), spec, "classes", "a whole number above 1, or None")


def labels_support(classes: int | None) -> Any:
    """0, 1, …, K − 1, or without end where K is left to the data."""
    return constraints.integer_interval(0, classes - 1) if classes else constraints.nonnegative_integer


def count_classes(y: Tensor, least: int | None) -> int:
    """One more than the largest label, at least 2 and at least what was asked for."""
    largest = int(y.nan_to_num(nan=0.0).max()) if y.numel() else 0
    return max(largest + 1, least or 2)


def frequencies(y: Tensor, share: Tensor, classes: int) -> Tensor:
    """The weighted frequency of each class, (k, classes): never 0, so that an absent class has a finite logit."""
    sums = share.new_zeros(classes, share.shape[-1]).index_add_(0, y.long(), share)
    floored = sums.T.clamp_min(weighted.FLOOR)
    return floored / floored.sum(-1, keepdim=True)
