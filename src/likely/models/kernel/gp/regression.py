"""Gaussian-process regression in closed form: y = f(x) + σ·ε with f ~ GP(m, k).

    log p(y) = −½ (y − m)ᵀ C⁻¹ (y − m) − ½ log|C| − n/2 log 2π,   C = K + σ²I
    ∂ log p(y) = ½ tr((ααᵀ − C⁻¹) ∂C),   α = C⁻¹ (y − m)

A weight w is a power of the row's density: noise of variance σ²/w, as w repeats of the row have. The constant mean is
the best one for the other hyperparameters, m = 1ᵀC⁻¹y / 1ᵀC⁻¹1, so that its gradient is 0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import torch
from torch import Tensor

from ....core.gradients import following
from ....kernels import KernelModule
from ....kernels.cholesky import COARSE, ROUGHER, cholesky, inverse_of
from ....kernels.gram import gram, gram_gradient
from .hyperparameters import free, read, write

__all__ = ["ExactPosterior", "Regression"]

LOG_2PI = math.log(2 * math.pi)
QUIET = 1e-5
"""The least noise that is looked for, in standard deviations of y."""


@dataclass(frozen=True)
class Regression:
    """Rows, targets and weights (all ones where none were given), and what is known: σ (or None), the mean 0."""

    kernel: KernelModule
    x: Tensor
    y: Tensor
    weight: Tensor
    scale: float | None
    constant: bool
    last: dict[str, Any] = field(default_factory=dict)  # what was solved last, and for which hyperparameters
    reach: ClassVar[float] = 1e5  # by what factor the kernel's hyperparameters may leave where they began
    widest: ClassVar[float] = float("inf")  # the variance over the rows up to which functions are searched for

    def __len__(self) -> int:
        return len(self.x)

    @property
    def unit(self) -> float:
        """The standard deviation of f that suits the targets."""
        return spread(self.y, self.weight)

    def names(self) -> list[str]:
        """Of the hyperparameters beside the kernel's."""
        return [] if self.scale is not None else ["noise"]

    def rows(self, index: Tensor) -> Regression:
        """The same with some of the rows."""
        return replace(self, x=self.x[index], y=self.y[index], weight=self.weight[index], last={})

    def start(self) -> tuple[Tensor, list[tuple[float | None, float | None]]]:
        """Where log σ begins if it is learned (a tenth of the variance of y is noise), and its bounds."""
        if self.scale is not None:
            return torch.empty(0, dtype=torch.float64), []
        level = math.log(self.unit)
        first = level + 0.5 * math.log(0.1)
        return torch.tensor([first], dtype=torch.float64), [(level + math.log(QUIET), level + 5.0)]

    def value_and_grad(self, hyperparameters: Tensor) -> tuple[float, Tensor]:
        """log p(y), and its gradient in the hyperparameters of the kernel and log σ."""
        parameters = free(self.kernel)
        own = read(parameters).numel()
        write(parameters, hyperparameters[:own])
        solved = self.solve(hyperparameters[own:])
        value = solved.log_evidence
        weight = inverse_of(solved.factor).mul_(-0.5).addr_(solved.alpha, solved.alpha, alpha=0.5)
        gradients = [gradient.reshape(-1) for gradient in gram_gradient(self.kernel, self.x, weight, parameters)]
        if self.scale is None:
            noise = 2 * (weight.diagonal() * solved.noise).sum() + (1 - self.weight).sum()
            gradients.append(noise.reshape(1))
        return value, torch.cat(gradients) if gradients else hyperparameters.new_empty(0)

    def solve(self, log_scale: Tensor) -> ExactPosterior:
        """The posterior of f at the hyperparameters that the kernel has now."""
        key = torch.cat([read(list(self.kernel.parameters())), log_scale])
        if "key" not in self.last or not torch.equal(key, self.last["key"]):
            self.last.clear()  # first, so that no two factors are held
            self.last.update(key=key, solved=self._solve(log_scale))
        return self.last["solved"]

    def _solve(self, log_scale: Tensor) -> ExactPosterior:
        log_sigma = float(log_scale) if self.scale is None else math.log(self.scale)
        noise = math.exp(2 * log_sigma) / self.weight
        matrix = gram(self.kernel, self.x)
        matrix.diagonal().add_(noise)
        factor, jitter = cholesky(matrix, ROUGHER, COARSE, zeros=True)
        both = torch.cholesky_solve(torch.stack([self.y, torch.ones_like(self.y)], 1), factor)
        mean = float(both[:, 0].sum() / both[:, 1].sum()) if self.constant else 0.0
        alpha = both[:, 0] - mean * both[:, 1]
        repeats = 0.5 * ((1 - self.weight) * (LOG_2PI + 2 * log_sigma) - self.weight.log()).sum()
        fit = -0.5 * ((self.y - mean) * alpha).sum() - factor.diagonal().log().sum() - 0.5 * len(self) * LOG_2PI
        return ExactPosterior(self.kernel, self.x, factor, alpha, mean, noise, float(fit + repeats), jitter)


@dataclass(frozen=True)
class ExactPosterior:
    """f | y ~ GP(m + k(·, X) α, k − k(·, X) C⁻¹ k(X, ·)) with LLᵀ = C."""

    kernel: KernelModule
    x: Tensor
    factor: Tensor
    alpha: Tensor
    mean: float
    noise: Tensor
    log_evidence: float
    jitter: float
    converged: bool = True

    def location(self, x: Tensor) -> Tensor:
        """The mean of f, (m, 1)."""
        with following(x):
            return (self.mean + self.kernel(x, self.x) @ self.alpha).unsqueeze(-1)

    def marginal(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Mean (m, 1) and variance (m, 1, 1) of f at each row."""
        with following(x):
            cross = self.kernel(self.x, x)
            explained = torch.linalg.solve_triangular(self.factor, cross, upper=False).square().sum(0)
            variance = (self.kernel.diagonal(x) - explained).clamp_min(0.0)
            return (self.mean + self.alpha @ cross).unsqueeze(-1), variance.reshape(-1, 1, 1)

    @torch.no_grad()
    def joint(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Mean (m, 1) and covariance (m, m) of f at all rows together."""
        cross = self.kernel(self.x, x)
        half = torch.linalg.solve_triangular(self.factor, cross, upper=False)
        return (self.mean + self.alpha @ cross).unsqueeze(-1), gram(self.kernel, x) - half.mT @ half


def spread(y: Tensor, weight: Tensor) -> float:
    """The standard deviation of y, or of a constant y what can be told from it."""
    mean = (weight * y).sum() / weight.sum()
    deviation = float(((weight * (y - mean).square()).sum() / weight.sum()).sqrt())
    return deviation if deviation > 1e-12 * float(y.abs().max()) else max(1e-3 * float(y.abs().max()), 1e-3)
