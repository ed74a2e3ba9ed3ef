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
    found = [gradient for gradient in gradients if gradient is not None]
    if not found:
        return torch.zeros(())
    if not stacked:
        norm = torch.nn.utils.get_total_norm(found)
        scale = (max_norm / norm).clamp(max=1.0)
        for gradient in found:
            gradient.mul_(scale)
        return norm
    parts = [torch.linalg.vector_norm(gradient.reshape(len(gradient), -1), dim=1) for gradient in found]
    norms = torch.linalg.vector_norm(torch.stack(parts), dim=0)
    scale = (max_norm / norms).clamp(max=1.0)
    for gradient in found:
        gradient.mul_(scale.reshape(-1, *[1] * (gradient.ndim - 1)))
    return norms
