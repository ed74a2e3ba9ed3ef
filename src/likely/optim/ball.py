"""Norm balls {δ : ‖δ‖ₚ ≤ r}: sizes, nearest points, steepest directions, uniform draws; of many rows at once.

    ‖δ‖ₚ = (Σ |δⱼ|ᵖ)^(1/p),      max {gᵀδ : ‖δ‖ₚ ≤ r} = r ‖g‖_q   with   1/p + 1/q = 1

The maximum is reached at δ = r · sign(g) |g|^(q−1) / ‖g‖_q^(q−1): the sign of g for p = ∞, g itself for p = 2, the one
largest entry for p = 1. The first axis of a tensor counts rows; the norm of a row is over all others.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from ..core.random import current_generator, normal_like

__all__ = ["dual", "fill", "project", "sizes", "steepest", "uniform"]


def dual(norm: float) -> float:
    """q with 1/p + 1/q = 1.

    >>> dual(2.0), dual(1.0), dual(math.inf)
    (2.0, inf, 1.0)
    """
    if norm == 1:
        return math.inf
    return 1.0 if math.isinf(norm) else norm / (norm - 1)


def sizes(delta: Tensor, norm: float) -> Tensor:
    """‖δ‖ₚ of each row, (n,).

    >>> sizes(torch.tensor([[3.0, -4.0]]), 1), sizes(torch.tensor([[3.0, -4.0]]), 2)
    (tensor([7.]), tensor([5.]))
    """
    return torch.linalg.vector_norm(delta.flatten(1), norm, dim=1)


def steepest(gradient: Tensor, norm: float) -> Tensor:
    """The δ with ‖δ‖ₚ = 1 along which a function rises fastest, for each row; 0 where the gradient is 0.

    >>> steepest(torch.tensor([[3.0, -4.0]]), math.inf), steepest(torch.tensor([[3.0, -4.0]]), 1)
    (tensor([[ 1., -1.]]), tensor([[ 0., -1.]]))
    """
    if math.isinf(norm):
        return gradient.sign()
    flat = gradient.flatten(1)
    if norm == 1:
        place = flat.abs().argmax(1, keepdim=True)
        return torch.zeros_like(flat).scatter(1, place, flat.gather(1, place).sign()).view_as(gradient)
    largest = flat.abs().amax(1, keepdim=True).clamp_min(torch.finfo(flat.dtype).tiny)
    scaled = flat / largest  # powers of what is tiny or huge would vanish or overflow
    direction = scaled if norm == 2 else scaled.sign() * scaled.abs() ** (dual(norm) - 1)
    length = torch.linalg.vector_norm(direction, norm, dim=1, keepdim=True)
    return (direction / torch.where(length > 0, length, 1.0)).view_as(gradient)


def fill(gradient: Tensor, room: Tensor, radius: float) -> Tensor:
    """argmax {gᵀδ : ‖δ‖₁ ≤ r, |δⱼ| ≤ roomⱼ} of each row: the largest entries of g first, each as far as it has room.

    >>> fill(torch.tensor([[3.0, -4.0, 1.0]]), torch.tensor([[5.0, 0.5, 5.0]]), 2.0)
    tensor([[ 1.5000, -0.5000,  0.0000]])
    """
    flat = gradient.flatten(1)
    order = flat.abs().sort(dim=1, descending=True, stable=True).indices
    own = room.flatten(1).clamp_max(radius).gather(1, order)
    taken = torch.minimum(own, (radius - (own.cumsum(1) - own)).clamp_min(0))
    return torch.zeros_like(flat).scatter(1, order, taken * flat.gather(1, order).sign()).view_as(gradient)


def project(delta: Tensor, radius: float, norm: float) -> Tensor:
    """The nearest point of the ball, in Euclidean distance, of each row; p is 1, 2 or ∞.

    >>> project(torch.tensor([[3.0, -4.0]]), 1.0, 2), project(torch.tensor([[3.0, -4.0]]), 2.0, 1)
    (tensor([[ 0.6000, -0.8000]]), tensor([[ 0.5000, -1.5000]]))
    """
    if math.isinf(norm):
        return delta.clamp(-radius, radius)
    if norm == 2:
        size = sizes(delta, 2).clamp_min(torch.finfo(delta.dtype).tiny)
        return delta * (radius / size).clamp_max(1.0).reshape(-1, *[1] * (delta.ndim - 1))
    return _onto_cross(delta.flatten(1), radius).view_as(delta)


def _onto_cross(delta: Tensor, radius: float) -> Tensor:
    """δⱼ → sign(δⱼ) max(|δⱼ| − θ, 0), with the θ ≥ 0 that makes the sizes add up to the radius (or 0 inside)."""
    ordered = delta.abs().sort(1, descending=True).values
    excess = ordered.cumsum(1) - radius
    counts = torch.arange(1, delta.shape[1] + 1, dtype=delta.dtype, device=delta.device)
    kept = (ordered * counts > excess).sum(1, keepdim=True).clamp_min(1)  # entries that stay above 0
    threshold = (excess.gather(1, kept - 1) / kept).clamp_min(0)
    return delta.sign() * (delta.abs() - threshold).clamp_min(0)


def uniform(like: Tensor, radius: float, norm: float) -> Tensor:
    """A point drawn uniformly from the ball of p = 1, 2 or ∞, for each row, from the current generator.

    >>> bool((sizes(uniform(torch.zeros(5, 3), 2.0, 1), 1) <= 2.0).all())
    True
    """
    generator = current_generator(like.device)
    if math.isinf(norm):
        return torch.empty_like(like).uniform_(-radius, radius, generator=generator)
    flat = like.flatten(1)
    if norm == 2:
        direction = normal_like(flat)
        size = torch.linalg.vector_norm(direction, dim=1, keepdim=True).clamp_min(torch.finfo(flat.dtype).tiny)
        fill = torch.empty_like(flat[:, :1]).uniform_(generator=generator) ** (1 / flat.shape[1])
        return (radius * fill * direction / size).view_as(like)
    # the first d of d + 1 exponentials, divided by their sum, are uniform on {δ ≥ 0, Σδ ≤ 1}
    waits = torch.empty(len(flat), flat.shape[1] + 1, dtype=like.dtype, device=like.device)
    waits.exponential_(generator=generator)
    signs = torch.empty_like(flat).uniform_(-1, 1, generator=generator).sign()
    return (radius * signs * waits[:, :-1] / waits.sum(1, keepdim=True)).view_as(like)
