"""The gradient of a log-density, as samplers that follow it ask: for all chains at once, and never a NaN.

A density that knows its gradient offers `value_and_grad(rows) → (n,), (n, *event)`; others are differentiated.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from ..core.errors import DataError
from .density import LogDensity, shown

__all__ = ["first_value_and_gradient", "value_and_gradient"]


def value_and_gradient(log_prob: LogDensity, position: Tensor) -> tuple[Tensor, Tensor]:
    """log p (chains,) and ∇ log p (chains, *event). Where either is NaN: −∞ with gradient 0, no mass there.

    >>> value, gradient = value_and_gradient(lambda x: -0.5 * x.square().sum(1), torch.tensor([[3.0, 4.0]]))
    >>> value, gradient
    (tensor([-12.5000], dtype=torch.float64), tensor([[-3., -4.]]))
    """
    known = getattr(log_prob, "value_and_grad", None)
    if known is not None:
        value, gradient = known(position)
    else:
        with torch.enable_grad():
            point = position.detach().requires_grad_()
            log_probs = _asked(log_prob, point)
            (gradient,) = torch.autograd.grad(log_probs, point, torch.ones_like(log_probs))
            value = log_probs.detach()
    value = value.double()
    limit = math.sqrt(torch.finfo(gradient.dtype).max)  # steeper, and speeds and positions would overflow
    size = gradient.detach().abs()
    if bool(size.max() < limit) and bool(value.detach().max() < torch.inf):  # a NaN is its own maximum, and fails
        return value, gradient
    good = (size < limit).reshape(len(size), -1).all(1) & (value < torch.inf)
    mask = good.reshape(-1, *[1] * (gradient.ndim - 1))
    return torch.where(good, value, -torch.inf), torch.where(mask, gradient, 0.0)


def _asked(log_prob: LogDensity, point: Tensor) -> Tensor:
    """The answer with its way back to the positions, or an error that says it has none."""
    reason: RuntimeError | None = None
    try:
        log_probs = getattr(log_prob, "unchecked", log_prob)(point)
        if log_probs.requires_grad:
            return log_probs
    except RuntimeError as error:
        if "requires grad" not in str(error):  # what torch says of .numpy() and of in-place changes
            raise
        reason = error
    raise DataError(
        "log_prob has no gradient: its answer does not depend on positions through torch's operations. "
        "Use torch instead of numpy inside it, or a method without gradients, MetropolisHastings()."
    ) from reason


def first_value_and_gradient(log_prob: LogDensity, position: Tensor) -> tuple[Tensor, Tensor]:
    """`value_and_gradient` where chains start: there it must be finite."""
    value, gradient = value_and_gradient(log_prob, position)
    bad = ~torch.isfinite(value)
    if bool(bad.any()):
        row = int(bad.nonzero()[0])
        raise DataError(
            f"log_prob or its gradient is not finite where chain {row} starts, at {shown(position[row])}; "
            "start elsewhere, or fix the density."
        )
    return value, gradient
