"""Coordinates in which a log-density is about as wide in every direction: θ = centre + Wφ.

    W Wᵀ ≈ (−∇² log p)⁻¹,   so that   log p(centre + w) ≈ log p(centre) − ½   for every column w of W

The curvature comes from differences of gradients. Where the density is not quadratic, each axis is then lengthened or
shortened until log p really falls by about a half. In such coordinates one step size fits all directions.
"""

from __future__ import annotations

import torch
from torch import Tensor

from .coordinates import Coordinates, ValueAndGrad

__all__ = ["hessian", "lengths", "precondition", "stiffness", "within"]

SMALL = 500
"""Dimensions up to which every axis is measured by itself."""
TOGETHER = 64
"""Points at which gradients are asked for at once."""
PROBES = 32
"""Random directions whose curvature stands for all, beyond that."""


def precondition(log_p: ValueAndGrad, centre: Tensor, seed: int, *, dense: bool) -> Coordinates:
    """Measure the axes around `centre`: of the Hessian if `dense`, else those of the coordinates.

    >>> precision = torch.tensor([[4.0, 1.0], [1.0, 1.0]], dtype=torch.float64)
    >>> def log_p(theta):
    ...     return -0.5 * (theta @ precision * theta).sum(1), -theta @ precision
    >>> W = precondition(log_p, torch.zeros(2, dtype=torch.float64), 0, dense=True).factor
    >>> torch.allclose(W @ W.T, torch.linalg.inv(precision))
    True
    """
    if dense or len(centre) <= SMALL:
        curvature = hessian(log_p, centre)
        size = curvature.diagonal().abs()
        unit = size.clamp_min(1e-12 * float(size.max()) + 1e-300).rsqrt()
        axes = torch.diag(unit)
        if dense:
            values, vectors = torch.linalg.eigh(curvature * torch.outer(unit, unit))
            axes = unit.unsqueeze(-1) * vectors * values.abs().clamp_min(1e-10).rsqrt()
        axes = axes * lengths(log_p, centre, axes)
        factor = axes if dense else axes.diagonal().clone()
    else:
        factor = _row_norms(log_p, centre, seed).rsqrt().clamp_max(reach_of(centre))
    factor = factor * within(log_p, centre, factor, seed)
    return Coordinates(centre, factor.contiguous())  # as a checkpoint gives it back: BLAS sums otherwise by columns


def stiffness(log_p: ValueAndGrad, coordinates: Coordinates, points: Tensor, seed: int, iterations: int = 12) -> Tensor:
    """The largest curvature of log p in these coordinates at each point θ: (k, d) → (k,). By power iteration."""
    size = _difference(coordinates.centre)
    around = _random(tuple(points.shape), seed, points)
    for _ in range(iterations):
        direction = coordinates.spread(around / around.norm(dim=1, keepdim=True).clamp_min(1e-300))
        length = size / direction.norm(dim=1, keepdim=True).clamp_min(1e-300)
        up, down = (log_p(points + sign * length * direction)[1] for sign in (1, -1))
        around = coordinates.pull(down - up) / (2 * length)
    return around.norm(dim=1)


def hessian(log_p: ValueAndGrad, centre: Tensor) -> Tensor:
    """−∇² log p at the centre, by central differences of the gradient along each coordinate."""
    steps = torch.finfo(centre.dtype).eps ** (1 / 3) * centre.abs().clamp_min(1e-2)
    rows = []
    for part in torch.diag(steps).split(TOGETHER):
        up, down = (log_p(centre + sign * part)[1] for sign in (1, -1))
        rows.append((down - up) / (2 * part.sum(1, keepdim=True)))
    matrix = torch.cat(rows)
    return (matrix + matrix.T) / 2


def _row_norms(log_p: ValueAndGrad, centre: Tensor, seed: int) -> Tensor:
    """√Σⱼ Hᵢⱼ² of each row, from random signs z: E (Hz)ᵢ². Never below the curvature of the coordinate itself."""
    size = _difference(centre)
    signs = _random((PROBES, len(centre)), seed, centre).sign() * size
    up, down = (log_p(centre + sign * signs)[1] for sign in (1, -1))
    norms = ((down - up) / (2 * size)).square().mean(0).sqrt()
    return norms.clamp_min(1e-12 * float(norms.max()) + 1e-30)


def reach_of(centre: Tensor) -> float:
    """The longest that an axis may be, for flat directions that have no width of their own."""
    return 10 * max(1.0, float(centre.abs().max()))


def lengths(log_p: ValueAndGrad, centre: Tensor, axes: Tensor) -> Tensor:
    """By how much to lengthen each axis (column) for log p to fall by a half: between ¼ and 1 will do."""
    limit = reach_of(centre) / axes.abs().amax(0).clamp_min(1e-300)
    length = limit.clamp_max(1)
    top = log_p(centre.unsqueeze(0))[0]
    open_ = torch.arange(len(length), device=axes.device)
    shrunk = torch.zeros(len(length), dtype=torch.bool, device=axes.device)
    for _ in range(40):
        kept = []
        for part in open_.split(TOGETHER):
            moved = (axes[:, part] * length[part]).T
            falls = torch.stack([top - log_p(centre + sign * moved)[0] for sign in (1, -1)]).mean(0)
            long = ~(falls <= 1)  # an overflow is too long, too
            short = (falls < 0.25) & (2 * length[part] <= limit[part]) & ~shrunk[part]
            length[part] = torch.where(long, length[part] / 2, torch.where(short, length[part] * 2, length[part]))
            shrunk[part] |= long
            kept.append(part[long | short])
        open_ = torch.cat(kept)
        if not len(open_):
            break
    return length


def within(log_p: ValueAndGrad, centre: Tensor, factor: Tensor, seed: int) -> float:
    """By how much to shorten W = `factor` for draws to fall by no more than twice what normal ones would: d/2."""
    phi = _random((16, factor.shape[-1]), seed, centre)
    moves = phi * factor if factor.ndim == 1 else phi @ factor.T
    top = log_p(centre.unsqueeze(0))[0]
    length = 1.0
    for _ in range(40):
        fall = (top - log_p(centre + length * moves)[0]).mean()
        if bool(fall <= factor.shape[-1] + 3):
            break
        length /= 2**0.5
    return length


def _difference(centre: Tensor) -> float:
    """A step for differences of gradients that rounding does not drown."""
    return float(torch.finfo(centre.dtype).eps) ** (1 / 3) * max(1e-2, float(centre.square().mean().sqrt()))


def _random(shape: tuple[int, ...], seed: int, like: Tensor) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, dtype=like.dtype).to(like.device)
