"""Dual activations: what a layer of infinitely many units does to the covariance of its inputs.

    κ(q, q′, k) = E[φ(u) φ(u′)],    κ̇ = E[φ′(u) φ′(u′)],    (u, u′) ~ Normal(0, [[q, k], [k, q′]])

ReLU and erf have closed forms. Any other φ is expanded in Hermite polynomials, which diagonalise the Gaussian:
φ(√q·z) = Σⱼ aⱼ(q) hⱼ(z) gives κ = Σⱼ aⱼ(q) aⱼ(q′) cʲ with the correlation c = k / √(q q′).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache

import numpy as np
import torch
from scipy.special import roots_hermitenorm
from torch import Tensor

from ..networks.layers.activation import activation

__all__ = ["dual", "own_dual"]

TERMS = 80
"""Hermite polynomials that are kept."""
NODES = 400
"""Points of the Gauss-Hermite rule for their coefficients."""
ROUNDING = 1e-14
"""Coefficients that differ by less, relative to the largest, are the same."""
BLOCK = 1 << 15
"""Covariances that are computed together."""

Derivative = Callable[[], Tensor]
"""κ̇, made when it is called: not every recursion needs it."""


def dual(name: str, q: Tensor, other: Tensor, k: Tensor) -> tuple[Tensor, Derivative]:
    """κ of all pairs, and what gives their κ̇: variances q (n,) and other (m,), covariances k (n, m).

    >>> one = torch.ones(1, dtype=torch.float64)
    >>> value, derivative = dual("relu", one, one, torch.ones(1, 1, dtype=torch.float64))   # E[relu(u)²], P(u > 0)
    >>> round(value.item(), 6), round(derivative().item(), 6)
    (0.5, 0.5)
    """
    return CLOSED[name](q, other, k) if name in CLOSED else _by_series(name, q, other, k)


def own_dual(name: str, q: Tensor) -> tuple[Tensor, Derivative]:
    """κ(q, q, q) = E[φ(u)²] of each variance, and what gives κ̇: the diagonal of `dual` alone.

    >>> own_dual("identity", torch.tensor([1.0, 4.0]))[0]
    tensor([1., 4.])
    """
    if name in CLOSED:
        column = q.unsqueeze(-1)
        value, derivative = CLOSED[name](q, column, column)
        return value.squeeze(-1), lambda: derivative().squeeze(-1)
    values, derivatives = _coefficients(name, q)
    return values.square().sum(1), lambda: derivatives.square().sum(1)


def _identity(q: Tensor, other: Tensor, k: Tensor) -> tuple[Tensor, Derivative]:
    return k, lambda: torch.ones_like(k)


def _relu(q: Tensor, other: Tensor, k: Tensor) -> tuple[Tensor, Derivative]:
    """The arc-cosine kernels of order 1 and 0."""
    scale = _scale(q, other)
    correlation = (k / scale).clamp(-1.0, 1.0)
    beyond = math.pi - torch.arccos(correlation)
    value = scale * (torch.sqrt((1 - correlation.square()).clamp_min(0.0)) + beyond * correlation)
    return value / (2 * math.pi), lambda: beyond / (2 * math.pi)


def _erf(q: Tensor, other: Tensor, k: Tensor) -> tuple[Tensor, Derivative]:
    """The arc-sine kernel."""
    scale = torch.sqrt((1 + 2 * q).unsqueeze(-1) * (1 + 2 * other))
    ratio = (2 * k / scale).clamp(-1.0, 1.0)
    rest = (scale.square() - 4 * k.square()).clamp_min(1e-300)
    return 2 / math.pi * torch.asin(ratio), lambda: 4 / math.pi / torch.sqrt(rest)


CLOSED: dict[str, Callable[[Tensor, Tensor, Tensor], tuple[Tensor, Derivative]]] = {
    "identity": _identity,
    "relu": _relu,
    "erf": _erf,
}


def _by_series(name: str, q: Tensor, other: Tensor, k: Tensor) -> tuple[Tensor, Derivative]:
    correlation = (k / _scale(q, other)).clamp(-1.0, 1.0)
    (left, left_derivative), (right, right_derivative) = _coefficients(name, q), _coefficients(name, other)
    return _horner(correlation, left, right), lambda: _horner(correlation, left_derivative, right_derivative)


def _horner(correlation: Tensor, left: Tensor, right: Tensor) -> Tensor:
    """Σⱼ leftⱼ rightⱼ cʲ from the highest power down: one product and one sum of the matrix for each term.

    Where all rows have the same variance, as normalised ones do, each term is one number. As many rows are taken at a
    time as fit into a cache, through which they go once for each term.
    """
    rows = max(1, BLOCK // max(1, correlation.shape[1]))
    if len(correlation) > rows:
        parts = zip(correlation.split(rows), left.split(rows), strict=True)
        return torch.cat([_horner(part, own, right) for part, own in parts])
    total = torch.zeros_like(correlation)
    alike = all(bool(((own - own[:1]).abs() <= ROUNDING * own.abs().amax()).all()) for own in (left, right))
    for term in range(TERMS - 1, -1, -1):
        total.mul_(correlation)
        if alike:
            total.add_(float(left[0, term] * right[0, term]))
        else:
            total.addcmul_(left[:, term].unsqueeze(-1), right[:, term])
    return total


def _coefficients(name: str, q: Tensor) -> tuple[Tensor, Tensor]:
    """aⱼ of φ and of φ′ at each variance: (n, terms). Equal variances, as of normalised inputs, are looked up once."""
    unique, index = torch.unique(q, return_inverse=True)
    z, basis = _rule()
    with torch.enable_grad():
        points = (unique.sqrt().unsqueeze(-1) * z).requires_grad_()
        values = activation(name)(points)
        (derivatives,) = torch.autograd.grad(values.sum(), points)
    return (values.detach() @ basis)[index], (derivatives @ basis)[index]


@cache
def _rule() -> tuple[Tensor, Tensor]:
    """The points z of a Gauss-Hermite rule, and weight · hⱼ(z) with hⱼ orthonormal under the standard normal."""
    z, weight = roots_hermitenorm(NODES)
    weight = weight / weight.sum()
    basis = np.empty((NODES, TERMS))
    basis[:, 0], basis[:, 1] = 1.0, z
    for j in range(1, TERMS - 1):
        basis[:, j + 1] = (z * basis[:, j] - math.sqrt(j) * basis[:, j - 1]) / math.sqrt(j + 1)
    return torch.from_numpy(z), torch.from_numpy(basis * weight[:, None])


def _scale(q: Tensor, other: Tensor) -> Tensor:
    """√(q q′) of all pairs, kept off 0 for rows that are 0."""
    return torch.sqrt((q.unsqueeze(-1) * other).clamp_min(1e-300))
