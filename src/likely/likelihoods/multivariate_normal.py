"""Multivariate Normal: a vector of d numbers that vary together.

    −log p(y | x) = ½ ‖z‖² + Σᵢ log sᵢ + (d/2) log 2π,   z = U⁻¹ diag(s)⁻¹ (y − μ),   Σ = diag(s) U Uᵀ diag(s)

μ is the first d numbers of η, log s the next d, and the rest fills the unit lower triangle U row by row. So the
Cholesky factor of Σ is diag(s) U, and U has no dimension: it stays as it is when y changes its unit.
"""

from __future__ import annotations

import math
from typing import Any, Literal

import torch
from torch import Tensor, distributions
from torch.distributions import constraints

from ..core.errors import DataError
from ..core.spec import require
from . import weighted
from .base import Likelihood, Target
from .special import LOG_2PI, bounded_exp, bounded_log

__all__ = ["MultivariateNormal"]

JITTER = 1e-10
"""Added to the diagonal of an estimated correlation matrix, so that collinear columns have a Cholesky factor."""


class MultivariateNormal(Likelihood):
    """MultivariateNormal(covariance="learned" | "input", dim=None | d): d taken from the data unless given.

    `"learned"`: one Σ for all inputs. `"input"`: Σ is an output of the network, as μ is.

    >>> import torch
    >>> MultivariateNormal().distribution(torch.tensor([1.0, 2.0, 0.0, 0.0, 0.5])).covariance_matrix
    tensor([[1.0000, 0.5000],
            [0.5000, 1.2500]])
    """

    covariance: Literal["learned", "input"] = "learned"
    dim: int | None = None

    event_dim = 1
    link = "identity"
    needs = "vectors of real numbers"

    def validate(self) -> None:
        require(self.covariance in ("learned", "input"), self, "covariance", '"learned" or "input"')
        whole = isinstance(self.dim, int) and not isinstance(self.dim, bool)
        require(self.dim is None or (whole and self.dim >= 1), self, "dim", "an integer above 0, or None")

    @property
    def support(self) -> Any:
        return constraints.real_vector

    def known_target(self) -> Target | None:
        return Target(shape=(self.dim,)) if self.dim else None

    def example_target(self) -> Target:
        return Target(shape=(self.dim or 2,))

    def size(self, target: Target) -> int:
        (d,) = target.shape
        return d + d * (d + 1) // 2

    def shared(self, target: Target) -> int:
        return self.size(target) - target.shape[0] if self.covariance == "learned" else 0

    def offsets(self, target: Target) -> int:
        return target.shape[0]

    def target_of(self, size: int) -> Target:
        return Target(shape=((math.isqrt(9 + 8 * size) - 3) // 2,))

    def distribution(self, eta: Tensor) -> distributions.MultivariateNormal:
        mean, log_scale, triangle = self._parts(eta)
        factor = bounded_exp(log_scale).unsqueeze(-1) * triangle
        return distributions.MultivariateNormal(mean, scale_tril=factor, validate_args=False)

    def log_prob(self, eta: Tensor, y: Tensor) -> Tensor:
        mean, log_scale, triangle = self._parts(eta)
        scaled = ((y - mean) * (-log_scale).exp()).unsqueeze(-1)
        z = torch.linalg.solve_triangular(triangle, scaled, upper=False, unitriangular=True).squeeze(-1)
        return -0.5 * z.square().sum(-1) - log_scale.sum(-1) - 0.5 * mean.shape[-1] * LOG_2PI

    def value_and_grad(self, eta: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """With z = L⁻¹ D⁻¹ (y − μ) and w = L⁻ᵀ z: D⁻¹ w in μ, wᵢ dᵢ⁻¹ (yᵢ − μᵢ) − 1 in log dᵢ, wᵢ zⱼ in Lᵢⱼ."""
        mean, log_scale, triangle = self._parts(eta)
        d, inverse = mean.shape[-1], (-log_scale).exp()
        scaled = (y - mean) * inverse
        shape = scaled.shape[:-1]
        triangle = triangle.expand(*shape, d, d)
        z = torch.linalg.solve_triangular(triangle, scaled.unsqueeze(-1), upper=False, unitriangular=True)
        w = torch.linalg.solve_triangular(triangle.mT, z, upper=True, unitriangular=True).squeeze(-1)
        z = z.squeeze(-1)
        value = -0.5 * z.square().sum(-1) - log_scale.sum(-1) - 0.5 * d * LOG_2PI
        widening = torch.where(log_scale == eta[..., d : 2 * d], w * scaled - 1, 0.0)
        row, column = torch.tril_indices(d, d, -1, device=eta.device)
        return value, torch.cat([w * inverse, widening, w[..., row] * z[..., column]], -1)

    def each_log_prob(self, eta: Tensor, y: Tensor) -> Tensor:
        mean, log_scale, triangle = self._parts(eta)  # (k, d), (k, d), (k, d, d)
        eye = torch.eye(mean.shape[-1], dtype=eta.dtype, device=eta.device).expand_as(triangle)
        whiten = torch.linalg.solve_triangular(triangle, eye, upper=False, unitriangular=True)
        whiten = whiten * (-log_scale).exp().unsqueeze(-2)
        distance = [(((y - m) @ w.T).square()).sum(-1) for m, w in zip(mean, whiten, strict=True)]
        return -0.5 * torch.stack(distance, -1) - log_scale.sum(-1) - 0.5 * mean.shape[-1] * LOG_2PI

    def statistics(self, y: Tensor, origin: Tensor) -> Tensor:
        gap = y - origin
        return torch.cat([gap, (gap.unsqueeze(-1) * gap.unsqueeze(-2)).flatten(-2)], -1)

    def from_statistics(self, mean: Tensor, origin: Tensor) -> Tensor:
        d = origin.shape[-1]
        gap, second = mean[..., :d], mean[..., d:].unflatten(-1, (d, d))
        scale = weighted.from_moments(gap, second.diagonal(dim1=-2, dim2=-1), origin)
        covariance = second - gap.unsqueeze(-1) * gap.unsqueeze(-2)
        correlation = covariance / (scale.unsqueeze(-1) * scale.unsqueeze(-2))
        return _pack(gap + origin, scale, correlation)

    def estimate(self, y: Tensor, fraction: Tensor) -> Tensor:
        """The weighted mean and the Cholesky factor of the weighted covariance."""
        mean = fraction.T @ y  # (k, d)
        scale = torch.stack([weighted.spread(column, fraction) for column in y.T], -1)
        scaled = (y.unsqueeze(1) - mean) / scale  # (n, k, d)
        correlation = torch.einsum("nk,nkd,nke->kde", fraction, scaled, scaled)
        return _pack(mean, scale, correlation)

    def start(self, y: Tensor, fraction: Tensor) -> tuple[Tensor, Tensor]:
        """Medians and spreads, uncorrelated."""
        columns = y.T
        location = torch.stack([weighted.median(column, fraction) for column in columns], -1)
        log_scale = torch.stack([weighted.spread(column, fraction) for column in columns], -1).log()
        unit = torch.stack([weighted.spread(column, fraction) for column in columns], -1)
        rest = self.size(self.target(y)) - y.shape[-1]
        triangle = location.new_zeros(len(location), rest - y.shape[-1])
        return torch.cat([location, log_scale, triangle], -1), torch.cat([unit, unit.new_ones(len(unit), rest)], -1)

    def check(self, y: Tensor, name: str = "y") -> None:
        """As for every likelihood; y must also be vectors, of length `dim` where it is given."""
        shape = f"{name} has shape {tuple(y.shape)}"
        if y.ndim < 2:
            raise DataError(f"{shape}; MultivariateNormal needs vectors: an array of shape (n, d).")
        if self.dim is not None and y.shape[-1] != self.dim:
            raise DataError(f"{shape}; MultivariateNormal(dim={self.dim}) needs vectors of {self.dim} numbers.")
        super().check(y, name)

    def _parts(self, eta: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        (d,) = self.target_of(eta.shape[-1]).shape
        eye = torch.eye(d, dtype=eta.dtype, device=eta.device)
        below = eye.new_ones(d, d).tril(-1)
        # Entry (i, j) of the strict lower triangle is number i(i−1)/2 + j; an index of 0 elsewhere is masked out.
        i, j = torch.arange(d, device=eta.device).unsqueeze(-1), torch.arange(d, device=eta.device)
        index = torch.where(below > 0, 2 * d + i * (i - 1) // 2 + j, 0)
        return eta[..., :d], bounded_log(eta[..., d : 2 * d]), eta[..., index] * below + eye


def _pack(mean: Tensor, scale: Tensor, correlation: Tensor) -> Tensor:
    """η from means, standard deviations and correlations."""
    d = mean.shape[-1]
    eye = torch.eye(d, dtype=mean.dtype, device=mean.device)
    factor = _cholesky(correlation * (1 - eye) + eye, eye)
    diagonal = factor.diagonal(dim1=-2, dim2=-1)
    row, column = torch.tril_indices(d, d, -1, device=mean.device)
    return torch.cat([mean, scale.log() + diagonal.log(), (factor / diagonal.unsqueeze(-1))[..., row, column]], -1)


def _cholesky(correlation: Tensor, eye: Tensor) -> Tensor:
    """The factor, with as little added to the diagonal as rounding makes necessary."""
    jitter = JITTER
    while True:
        factor, failed = torch.linalg.cholesky_ex(correlation + jitter * eye)
        if not bool(failed.any()) or jitter > 1:
            return factor
        jitter *= 100
