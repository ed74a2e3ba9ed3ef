"""Inducing points: Gaussian-process regression of many rows by way of the function at a few inducing points Z.

    log p(y) ≥ log Normal(y | m, Q + σ²I) − tr(K − Q)/2σ²,   Q = K_xz K_zz⁻¹ K_zx         (Titsias's bound)

It costs n·m² instead of n³, is what the hyperparameters maximise in place of the evidence, and equals the evidence
where Z holds all rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from ....core.errors import TrainingError
from ....core.gradients import following
from ....kernels import KernelModule
from ....kernels.cholesky import COARSE
from ....kernels.gram import gram
from .hyperparameters import free, read, write
from .regression import LOG_2PI, Regression

__all__ = ["InducingPosterior", "InducingRegression"]


@dataclass(frozen=True)
class InducingRegression:
    """Rows with normal noise, seen through the inducing points Z."""

    regression: Regression
    points: Tensor

    def __len__(self) -> int:
        return len(self.regression)

    def rows(self, index: Tensor) -> InducingRegression:
        """The same with some of the rows."""
        return replace(self, regression=self.regression.rows(index))

    def value_and_grad(self, hyperparameters: Tensor) -> tuple[float, Tensor]:
        """The bound, and its gradient in the hyperparameters of the kernel and log σ."""
        parameters = free(self.regression.kernel)
        own = read(parameters).numel()
        write(parameters, hyperparameters[:own])
        rest = hyperparameters[own:].clone().requires_grad_()
        with torch.enable_grad():
            solved = self.solve(rest)
        inputs: list[Tensor] = [*parameters, rest] if len(rest) else [*parameters]
        gradients = torch.autograd.grad(solved.bound, inputs) if inputs else ()
        return solved.log_evidence, torch.cat([*(part.reshape(-1) for part in gradients), hyperparameters.new_empty(0)])

    def solve(self, log_scale: Tensor) -> InducingPosterior:
        """The posterior at the hyperparameters that the kernel has now."""
        data = self.regression
        log_sigma = log_scale.sum() if data.scale is None else torch.tensor(math.log(data.scale), dtype=torch.float64)
        root, jitter = _root(data.kernel, self.points)
        half = torch.linalg.solve_triangular(root, data.kernel(self.points, data.x), upper=False)  # QQ = halfᵀ half
        noise = (2 * log_sigma).exp() / data.weight
        scaled = half / noise.sqrt()
        inner = torch.linalg.cholesky(torch.eye(len(root), dtype=root.dtype) + scaled @ scaled.mT)
        both = torch.stack([data.y, torch.ones_like(data.y)], 1) / noise.sqrt().unsqueeze(-1)
        projected = torch.linalg.solve_triangular(inner, scaled @ both, upper=False)
        products = both.mT @ both - projected.mT @ projected  # those of (y, 1) under (Q + noise)⁻¹
        mean = (products[0, 1] / products[1, 1]).detach() if data.constant else products.new_zeros(())
        misfit = products[0, 0] - 2 * mean * products[0, 1] + mean.square() * products[1, 1]
        unexplained = ((data.kernel.diagonal(data.x) - half.square().sum(0)) / noise).sum()
        volume = noise.log().sum() + 2 * inner.diagonal().log().sum() + len(data) * LOG_2PI
        repeats = ((1 - data.weight) * (LOG_2PI + 2 * log_sigma) - data.weight.log()).sum()
        bound = -0.5 * (misfit + volume + unexplained - repeats)
        weights = projected[:, 0] - mean * projected[:, 1]
        return InducingPosterior(
            data.kernel,
            self.points,
            root.detach(),
            inner.detach(),
            weights.detach(),
            float(mean),
            bound,
            float(bound.detach()),
            jitter,
        )


@dataclass(frozen=True)
class InducingPosterior:
    """f | y through Z: LLᵀ = K_zz, and RRᵀ = I + L⁻¹ K_zx K_xz L⁻ᵀ / σ²."""

    kernel: KernelModule
    points: Tensor
    root: Tensor
    inner: Tensor
    weights: Tensor
    mean: float
    bound: Tensor
    log_evidence: float
    jitter: float
    converged: bool = True

    def location(self, x: Tensor) -> Tensor:
        """The mean of f, (m, 1)."""
        with following(x):
            return (self.mean + self._halves(x)[1].mT @ self.weights).unsqueeze(-1)

    def marginal(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Mean (m, 1) and variance (m, 1, 1) of f at each row."""
        with following(x):
            prior, learned = self._halves(x)
            variance = self.kernel.diagonal(x) - prior.square().sum(0) + learned.square().sum(0)
            return (self.mean + learned.mT @ self.weights).unsqueeze(-1), variance.clamp_min(0.0).reshape(-1, 1, 1)

    @torch.no_grad()
    def joint(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Mean (m, 1) and covariance (m, m) of f at all rows together."""
        prior, learned = self._halves(x)
        covariance = gram(self.kernel, x) - prior.mT @ prior + learned.mT @ learned
        return (self.mean + learned.mT @ self.weights).unsqueeze(-1), covariance

    def _halves(self, x: Tensor) -> tuple[Tensor, Tensor]:
        prior = torch.linalg.solve_triangular(self.root, self.kernel(self.points, x), upper=False)
        return prior, torch.linalg.solve_triangular(self.inner, prior, upper=False)


def _root(kernel: KernelModule, points: Tensor) -> tuple[Tensor, float]:
    """L with LLᵀ = K_zz, with as little added to its diagonal as makes it work: the bound stays a bound.

    Z is given as other rows, so that noise of the rows themselves (`White`) is not part of the function there.
    """
    matrix = kernel(points, points)
    matrix = 0.5 * (matrix + matrix.mT)
    level = matrix.diagonal().mean()
    for jitter in COARSE:
        root, info = torch.linalg.cholesky_ex(matrix + jitter * level * torch.eye(len(points), dtype=matrix.dtype))
        if int(info) == 0:
            return root, jitter
    raise TrainingError(
        f"The kernel matrix of {len(points)} inducing points is not positive definite; take fewer (inducing=…), or a "
        "rougher kernel such as Matern()."
    )
