"""Weighted data: cleaning, and the simple statistics that estimates are made of.

Here y is (n,), `fraction` is (n, k): k sets of weights, each summing to 1; a statistic is (k,). All in float64.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from .base import Likelihood

__all__ = [
    "FLOOR",
    "as_given",
    "clean",
    "from_moments",
    "magnitude",
    "mean",
    "median",
    "robust_spread",
    "spread",
    "variance",
]

FLOOR = 1e-12
"""The least probability or rate that an estimate gives, so that its logarithm is finite."""

RESOLUTION = 1e-10
"""The least spread that an estimate gives, in units of the magnitude of y: below it the data are all but equal."""


def clean(likelihood: Likelihood, y: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    """y in float64 with placeholders for what is missing, and the fractions (n, k) of the rest.

    A set of weights that are all 0 becomes uniform: it carries no information, so all rows count alike.
    """
    gone = likelihood.missing(y)
    weights = (weight if weight.ndim > 1 else weight.unsqueeze(-1)).double()
    targets = y.double()
    present = (~gone).double().unsqueeze(-1)
    if bool(gone.any()):
        gone = gone.reshape(gone.shape + (1,) * likelihood.event_dim)
        targets = torch.where(gone, likelihood.placeholder(targets), targets)
        weights = weights * present
    total = weights.sum(0)
    uniform = present / present.sum().clamp_min(1)
    return targets, torch.where(total > 0, weights / total.clamp_min(torch.finfo(total.dtype).tiny), uniform)


def as_given(eta: Tensor, weight: Tensor) -> Tensor:
    """η of shape (k, size) in the precision and shape that the weights asked for."""
    eta = eta.to(weight.dtype if weight.is_floating_point() else torch.get_default_dtype())
    return eta if weight.ndim > 1 else eta.squeeze(0)


def mean(y: Tensor, fraction: Tensor) -> Tensor:
    """Σ w y.

    >>> mean(torch.tensor([1.0, 3.0]), torch.tensor([[0.5], [0.5]]))
    tensor([2.])
    """
    return y @ fraction


def variance(y: Tensor, fraction: Tensor) -> Tensor:
    """Σ w (y − mean)².

    >>> variance(torch.tensor([1.0, 3.0]), torch.tensor([[0.5], [0.5]]))
    tensor([1.])
    """
    return (fraction * (y.unsqueeze(-1) - mean(y, fraction)).square()).sum(0)


def median(y: Tensor, fraction: Tensor) -> Tensor:
    """The middle of all values that split the weight in two halves; y may also be (n, k).

    >>> median(torch.tensor([1.0, 2.0, 10.0]), torch.full((3, 1), 1 / 3))
    tensor([2.])
    """
    ordered, order = (y if y.ndim > 1 else y.unsqueeze(-1).expand_as(fraction)).sort(0)
    below = fraction.gather(0, order).cumsum(0)
    last = len(y) - 1
    lower = (below < 0.5 - FLOOR).sum(0, keepdim=True).clamp_max(last)
    upper = (below <= 0.5 + FLOOR).sum(0, keepdim=True).clamp_max(last)
    return 0.5 * (ordered.gather(0, lower) + ordered.gather(0, upper)).squeeze(0)


def magnitude(y: Tensor, fraction: Tensor) -> Tensor:
    """The root mean square, and 1 where all values are 0.

    >>> magnitude(torch.tensor([-3.0, 0.0]), torch.tensor([[1.0, 0.0], [0.0, 1.0]]))
    tensor([3., 1.])
    """
    size = (y.square() @ fraction).sqrt()
    return torch.where(size > 0, size, 1.0)


def spread(y: Tensor, fraction: Tensor) -> Tensor:
    """The standard deviation, but no less than what data of this magnitude can resolve.

    >>> spread(torch.tensor([1.0, 3.0]), torch.tensor([[0.5], [0.5]]))
    tensor([1.])
    """
    return torch.maximum(variance(y, fraction).sqrt(), RESOLUTION * magnitude(y, fraction))


def from_moments(mean: Tensor, square: Tensor, origin: Tensor) -> Tensor:
    """The standard deviation from the means of y − origin and of its square; no less than their digits can resolve.

    >>> from_moments(torch.tensor(1.0), torch.tensor(5.0), torch.tensor(0.0))
    tensor(2.)
    """
    least = torch.maximum(1e-8 * square.sqrt(), RESOLUTION * origin.abs()).clamp_min(1e-150)
    return torch.maximum((square - mean.square()).clamp_min(0).sqrt(), least)


def robust_spread(y: Tensor, fraction: Tensor, otherwise: Tensor) -> Tensor:
    """The median distance from the median, which outliers do not move; `otherwise` where more than half are equal.

    >>> robust_spread(torch.tensor([0.0, 1.0, 1e9]), torch.full((3, 1), 1 / 3), torch.ones(1))
    tensor([1.])
    """
    middle = median(y, fraction)
    distance = median((y.unsqueeze(-1) - middle).abs(), fraction)
    return torch.where(distance > RESOLUTION * middle.abs(), distance, otherwise)
