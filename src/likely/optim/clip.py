"""Gradient clipping by norm: g ← g·min(1, θ/‖g‖). Long gradients get shorter, and keep their direction."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor

from ..core.errors import SpecError

__all__ = ["clip_norm_"]


def clip_norm_(gradients: Iterable[Tensor | None], max_norm: float, stacked: bool = False) -> Tensor:
    """Scale gradients in place until their norm, over all together, is at most `max_norm`; give the norm they had.

    With `stacked`, the first axis holds the members of an ensemble, each clipped by itself; the norms are (members,).

    >>> gradient = torch.tensor([3.0, 4.0])
    >>> clip_norm_([gradient], max_norm=1.0), gradient
    (tensor(5.), tensor([0.6000, 0.8000]))
    """
    if not max_norm > 0:
        raise SpecError(f"max_norm must be positive; found {max_norm!r}.")
    given = [gradient for gradient in gradients if gradient is not None]
    if not given:
        return torch.zeros(())
    norm = _norm(given, stacked)
    if not bool(norm.isfinite().all()):  # the squares of 1e20 have no float32: take the norm of g / max |g|
        return _clip_largest_(given, max_norm, stacked)
    _scale_(given, (max_norm / norm).clamp(max=1.0))
    return norm


def _norm(gradients: list[Tensor], stacked: bool) -> Tensor:
    """Over all gradients together; with `stacked`, of each member."""
    if not stacked:
        return torch.nn.utils.get_total_norm(gradients)
    parts = [torch.linalg.vector_norm(gradient.reshape(len(gradient), -1), dim=1) for gradient in gradients]
    return torch.linalg.vector_norm(torch.stack(parts), dim=0)


def _clip_largest_(gradients: list[Tensor], max_norm: float, stacked: bool) -> Tensor:
    """Clip what is too large to be squared. An entry that is itself infinite or NaN has no direction, and stays so."""
    sizes = [
        gradient.abs().reshape(len(gradient), -1).amax(1) if stacked else gradient.abs().max() for gradient in gradients
    ]
    largest = torch.stack(sizes).amax(0)
    unit = largest.clamp_min(torch.finfo(largest.dtype).tiny)
    _scale_(gradients, 1 / unit)
    relative = _norm(gradients, stacked)
    _scale_(gradients, torch.minimum(max_norm / relative, unit))
    return unit * relative


def _scale_(gradients: list[Tensor], scale: Tensor) -> None:
    """Multiply in place by a number, or by one for each member."""
    for gradient in gradients:
        gradient.mul_(scale.reshape(-1, *[1] * (gradient.ndim - 1)) if scale.ndim else scale)
