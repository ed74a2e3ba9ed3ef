"""Families of normal distributions whose parameters can be learned through their draws (reparametrised).

    mean-field   φ = ν + s ⊙ ε                 Cov = diag(s²)
    low-rank     φ = ν + s ⊙ ε + Vz            Cov = diag(s²) + VVᵀ
    full-rank    φ = ν + Tε                    Cov = TTᵀ, T lower triangular with a positive diagonal

ε and z are standard normal. Matrices are learned in units of 1/√d, so that an optimiser which moves every entry alike
moves a matrix no farther than a vector. Each family gives draws, log q and its gradient ∇_φ log q = −Cov⁻¹(φ − ν).
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
from torch import Tensor

from ..gaussian import Gaussian

__all__ = ["FullRank", "GaussianFamily", "LowRank", "MeanField"]

LOG_TAU = math.log(2 * math.pi)


class GaussianFamily:
    """Base: the parameters are tensors that require gradients; `noise` has as many columns as draws need."""

    columns: int
    """Standard normal numbers that one draw is made of."""

    def __init__(self, shift: Tensor, **parameters: Tensor) -> None:
        self.shift = shift.clone().requires_grad_()
        self.own = {name: value.clone().requires_grad_() for name, value in parameters.items()}
        self.columns = len(shift)

    def parameters(self) -> Iterator[Tensor]:
        """What is learned."""
        yield self.shift
        yield from self.own.values()

    def draw(self, noise: Tensor) -> Tensor:
        """φ of standard normal noise: (k, columns) → (k, d), differentiable in the parameters."""
        raise NotImplementedError

    def score(self, noise: Tensor) -> tuple[Tensor, Tensor]:
        """log q(φ) of those draws and its gradient in φ, with the parameters held fixed."""
        raise NotImplementedError

    def gaussian(self) -> Gaussian:
        """What has been learned."""
        raise NotImplementedError


class MeanField(GaussianFamily):
    """Independent coordinates."""

    def __init__(self, shift: Tensor) -> None:
        super().__init__(shift, log_scale=torch.zeros_like(shift))

    def draw(self, noise: Tensor) -> Tensor:
        return self.shift + self.own["log_scale"].exp() * noise

    @torch.no_grad()
    def score(self, noise: Tensor) -> tuple[Tensor, Tensor]:
        log_scale = self.own["log_scale"]
        log_q = -0.5 * (noise.square().sum(1) + noise.shape[1] * LOG_TAU) - log_scale.sum()
        return log_q, -noise * (-log_scale).exp()

    @torch.no_grad()
    def gaussian(self) -> Gaussian:
        return Gaussian(self.shift.clone(), scale=self.own["log_scale"].exp())


class LowRank(GaussianFamily):
    """Independent coordinates plus `rank` directions along which all of them move together."""

    def __init__(self, shift: Tensor, factor: Tensor) -> None:
        self.unit = len(shift) ** -0.5
        super().__init__(shift, log_scale=torch.zeros_like(shift), factor=factor / self.unit)
        self.columns = len(shift) + factor.shape[1]

    def draw(self, noise: Tensor) -> Tensor:
        d = len(self.shift)
        return self.shift + self.own["log_scale"].exp() * noise[:, :d] + noise[:, d:] @ self._factor().T

    def _factor(self) -> Tensor:
        return self.own["factor"] * self.unit

    @torch.no_grad()
    def score(self, noise: Tensor) -> tuple[Tensor, Tensor]:
        """By Woodbury: (D + VVᵀ)⁻¹ = D⁻¹ − D⁻¹V(I + VᵀD⁻¹V)⁻¹VᵀD⁻¹, so that only a rank × rank system is solved."""
        scale, factor = self.own["log_scale"].exp(), self._factor()
        moved = self.draw(noise) - self.shift
        thin = factor / scale.unsqueeze(-1)
        inner = torch.linalg.cholesky(torch.eye(thin.shape[1]).to(thin) + thin.T @ thin)
        plain = moved / scale
        push = (plain - torch.cholesky_solve((plain @ thin).T, inner).T @ thin.T) / scale
        log_det = scale.log().sum() + inner.diagonal().log().sum()
        log_q = -0.5 * ((moved * push).sum(1) + moved.shape[1] * LOG_TAU) - log_det
        return log_q, -push

    @torch.no_grad()
    def gaussian(self) -> Gaussian:
        return Gaussian(self.shift.clone(), self.own["log_scale"].exp(), self._factor())


class FullRank(GaussianFamily):
    """Any covariance."""

    def __init__(self, shift: Tensor) -> None:
        lower = shift.new_zeros(len(shift), len(shift))
        super().__init__(shift, log_scale=torch.zeros_like(shift), lower=lower)

    def draw(self, noise: Tensor) -> Tensor:
        return self.shift + noise @ self._factor().T

    def _factor(self) -> Tensor:
        return self.own["lower"].tril(-1) * len(self.shift) ** -0.5 + torch.diag(self.own["log_scale"].exp())

    @torch.no_grad()
    def score(self, noise: Tensor) -> tuple[Tensor, Tensor]:
        log_q = -0.5 * (noise.square().sum(1) + noise.shape[1] * LOG_TAU) - self.own["log_scale"].sum()
        return log_q, -torch.linalg.solve_triangular(self._factor().T, noise.T, upper=True).T

    @torch.no_grad()
    def gaussian(self) -> Gaussian:
        return Gaussian(self.shift.clone(), factor=self._factor())
