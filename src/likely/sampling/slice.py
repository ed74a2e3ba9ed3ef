"""Slice sampling along one coordinate: a uniform draw from where the density is above a random height.

    log h = log p(x) + log U,    x′ ~ Uniform{x′ : log p(x′) > log h}

The slice is found by stepping out from x and shrinking towards it (Neal, 2003), so that any log-density will do: no
gradient, no normaliser, and no step size that must be right.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

__all__ = ["slice_step"]

_LIMIT = 1000  # widths that an interval may step out to in all


def slice_step(
    along: Callable[[Tensor], Tensor], x: Tensor, log_prob: Tensor, width: Tensor, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """The next x (chains,) and its log-density; `along` gives that of x (chains,) with all else held."""

    def uniform() -> Tensor:
        return torch.rand(x.shape, generator=generator, dtype=x.dtype, device=x.device)

    height = log_prob + torch.log1p(-uniform())  # 1 − U is never 0
    left = x - width * uniform()
    right = left + width
    # How far each side may go is split at random: only so does a limit keep the target invariant.
    steps_left = (uniform() * _LIMIT).floor()
    steps_right = _LIMIT - 1 - steps_left
    left = _step_out(along, left, -width, steps_left, height)
    right = _step_out(along, right, width, steps_right, height)
    new, new_log_prob = x, log_prob
    open_ = torch.ones_like(x, dtype=torch.bool)
    while bool(open_.any()):
        tried = torch.where(open_, left + uniform() * (right - left), new)
        log_probs = along(tried)
        # an interval that has shrunk to nothing holds x itself, which is above its own height
        inside = open_ & ((log_probs > height) | (tried == x))
        new, new_log_prob = torch.where(inside, tried, new), torch.where(inside, log_probs, new_log_prob)
        open_ = open_ & ~inside
        left = torch.where(open_ & (tried < x), tried, left)
        right = torch.where(open_ & (tried > x), tried, right)
    return new, new_log_prob


def _step_out(along: Callable[[Tensor], Tensor], end: Tensor, by: Tensor, steps: Tensor, height: Tensor) -> Tensor:
    """The end of each interval moved outwards until it leaves the slice or has no steps left."""
    going = steps > 0
    while bool(going.any()):
        going = going & (along(end) > height)
        end = torch.where(going, end + by, end)
        steps = steps - going.to(steps.dtype)
        going = going & (steps > 0)
    return end
