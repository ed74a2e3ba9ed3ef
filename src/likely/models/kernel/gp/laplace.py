"""Laplace's approximation for targets of any likelihood: a normal around the most probable latent functions.

    ψ(f) = Σ log p(yᵢ | fᵢ) − ½ (f − m)ᵀ K⁻¹ (f − m),   f̂ = argmax ψ by Newton's method
    f | y ≈ Normal(f̂, (K⁻¹ + W)⁻¹),   log p(y) ≈ ψ(f̂) − ½ log|I + W½ K W½|

W is the likelihood's information. A likelihood of k numbers has k latent functions with one kernel (one for each class,
say), and its learned constants (a scale, a dispersion) are hyperparameters of the evidence, like the constant means m.

The gradient of the evidence has a direct part and one by way of f̂ = m + K ∂log p(y | f̂), whose gradient is implicit:

    ∂f̂ = (I + KH)⁻¹ (∂K a + ∂m + K ∂²log p/∂f∂φ ∂φ),   a = K⁻¹ (f̂ − m),   H = −∂² log p/∂f²
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import ClassVar

import torch
from torch import Tensor, nn

from ....core.errors import TrainingError
from ....core.gradients import following
from ....kernels import KernelModule
from ....kernels.gram import gram, gram_gradient
from ....likelihoods import Likelihood
from .curvature import Curvature, curvature_of
from .hyperparameters import free, read, write

__all__ = ["Laplace", "LaplacePosterior"]

MAX_NEWTON = 100
LABELS = 10.0
"""The largest standard deviation of logits that a search goes to."""
WIDTH = 1e-5
"""Of the differences that third derivatives of log p are found by."""


@dataclass(frozen=True)
class Laplace:
    """Rows, targets and weights (all ones where none were given); the mean is learned or 0."""

    kernel: KernelModule
    likelihood: Likelihood
    x: Tensor
    y: Tensor
    weight: Tensor
    constant: bool
    offset: Tensor  # η of the targets without x, (size,): where means and shared numbers begin
    latent: int  # how many of those numbers are functions of x
    unit: float = 1.0  # the standard deviation of f that suits the targets: 1 unless f lives on their scale
    warm: dict[str, Tensor] = field(default_factory=dict)  # the last a: where the next search begins
    # By what factor the kernel's hyperparameters may leave where they began: functions that vary by far more than links
    # tell apart (logits of ±30) have posteriors of another shape than a normal's, and more "evidence" than there is.
    reach: ClassVar[float] = 1e3

    @property
    def widest(self) -> float:
        """The variance over the rows up to which functions are searched for.

        Where functions tell all classes apart, the evidence rises with their variance without end, and the posterior's
        means fall behind its deviations: with logits of standard deviation 100 it says ½ of rows that are plain.
        """
        return LABELS**2 if self.likelihood.labels else math.inf

    def __len__(self) -> int:
        return len(self.x)

    def names(self) -> list[str]:
        """Of the hyperparameters beside the kernel's."""
        return ["mean"] * (self.latent if self.constant else 0) + ["shared"] * (len(self.offset) - self.latent)

    def rows(self, index: Tensor) -> Laplace:
        """The same with some of the rows."""
        return replace(self, x=self.x[index], y=self.y[index], weight=self.weight[index], warm={})

    def start(self) -> tuple[Tensor, list[tuple[float | None, float | None]]]:
        """Means (in units of f, so that a search sees numbers of order 1) and shared numbers, and their bounds."""
        means = self.offset[: self.latent] / self.unit if self.constant else self.offset[:0]
        shared = self.offset[self.latent :]
        free_means: list[tuple[float | None, float | None]] = [(None, None)] * len(means)
        return torch.cat([means, shared]), free_means + [(float(v) - 10, float(v) + 10) for v in shared]

    def split(self, hyperparameters: Tensor) -> tuple[Tensor, Tensor]:
        """The means of the k functions, and the shared numbers."""
        count = self.latent if self.constant else 0
        means = hyperparameters[:count] * self.unit if self.constant else hyperparameters.new_zeros(self.latent)
        return means, hyperparameters[count:]

    def value_and_grad(self, hyperparameters: Tensor) -> tuple[float, Tensor]:
        """log p(y) ≈, and its gradient in the hyperparameters: of the kernel, the means, the shared ones."""
        parameters = free(self.kernel)
        own = read(parameters).numel()
        write(parameters, hyperparameters[:own])
        posterior = self.solve(hyperparameters[own:])
        if not posterior.converged:
            self.warm.clear()
            raise TrainingError(
                "Newton's method does not converge to a mode for these hyperparameters of kernel and likelihood; "
                "begin with others (a longer lengthscale, a smaller variance), and standardise X."
            )
        return posterior.log_evidence, self._gradient(posterior, parameters)

    def solve(self, rest: Tensor, start: Tensor | None = None) -> LaplacePosterior:
        """The approximation at the hyperparameters that the kernel has now."""
        means, shared = self.split(rest)
        matrix = gram(self.kernel, self.x)
        begin = self.warm.get("weights") if start is None else start
        begin = matrix.new_zeros(len(self), self.latent) if begin is None else begin
        weights, here, converged = _mode(self, matrix, means, shared, begin)
        if here.log_concave:  # else there may be several tops, and the one that is found should not depend on the last
            self.warm["weights"] = weights
        curvature = here.curvature(matrix)
        log_prob = (self.weight * self.likelihood.log_prob(here.eta, self.y)).sum()
        value = log_prob - 0.5 * (weights * (here.latent - means)).sum() - 0.5 * curvature.log_det
        return LaplacePosterior(
            self.kernel, self.x, matrix, means, shared, weights, here, curvature, float(value), converged
        )

    def _gradient(self, posterior: LaplacePosterior, parameters: list[nn.Parameter]) -> Tensor:
        k, matrix, here = self.latent, posterior.matrix, posterior.here
        spread = torch.diag_embed(matrix.diagonal().unsqueeze(-1).expand(-1, k)) - posterior.curvature.blocks(matrix)
        bend = -0.5 * torch.einsum("ncd,ncds->ns", spread, here.change_of_information)  # of −½ log|B|, in η
        if here.log_concave:
            through = bend[:, :k] - posterior.curvature.apply(matrix @ bend[:, :k])  # (I + HK)⁻¹ s, with H = W
        else:
            through = _solve(matrix, here.hessian, bend[:, :k])
        weight = -0.5 * posterior.curvature.trace()
        cross = through @ posterior.weights.mT
        weight += 0.5 * (posterior.weights @ posterior.weights.mT + cross + cross.mT)
        gradients = [gradient.reshape(-1) for gradient in gram_gradient(self.kernel, self.x, weight, parameters)]
        if self.constant:
            gradients.append((posterior.weights + through).sum(0) * self.unit)
        if len(posterior.shared):
            implicit = torch.einsum("nk,nks->s", matrix @ through, here.change_of_score[:, :, k:])
            gradients.append(here.full_score[:, k:].sum(0) + bend[:, k:].sum(0) + implicit)
        return torch.cat(gradients) if gradients else matrix.new_empty(0)


class _Here:
    """What the likelihood says at one f: log p, its score and information, and how these change with η."""

    def __init__(self, problem: Laplace, latent: Tensor, shared: Tensor) -> None:
        self.problem, self.latent = problem, latent
        self.eta = torch.cat([latent, shared.expand(len(latent), -1)], 1) if len(shared) else latent
        log_prob, score, information = self._ask(self.eta)
        self.log_prob = float(log_prob.sum())
        self.full_score, self.score = score, score[:, : problem.latent]
        self.information = information

    def _ask(self, eta: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Of each row, times its weight; the information is that about the latent numbers."""
        k, weight = self.problem.latent, self.problem.weight
        log_prob, score, information = self.problem.likelihood.derivatives_in(k, eta, self.problem.y)
        return weight * log_prob, weight.unsqueeze(-1) * score, weight.reshape(-1, 1, 1) * information

    def curvature(self, matrix: Tensor) -> Curvature:
        """M, for a kernel matrix."""
        likelihood = self.problem.likelihood
        several = likelihood.labels and self.latent.shape[1] > 1
        probability = likelihood.probabilities(self.eta) if several else None
        return curvature_of(matrix, self.information, probability, self.problem.weight)

    @cached_property
    def change_of_score(self) -> Tensor:
        """∂score/∂η (n, k, size)."""
        gradient, weight, k = (
            self.problem.likelihood.smooth_value_and_grad,
            self.problem.weight.unsqueeze(-1),
            self.problem.latent,
        )
        return self._differences(lambda eta: weight * gradient(eta, self.problem.y)[1][:, :k])

    @cached_property
    def change_of_information(self) -> Tensor:
        """∂W/∂η (n, k, k, size)."""
        return self._differences(lambda eta: self._ask(eta)[2])

    def _differences(self, function: Callable[[Tensor], Tensor]) -> Tensor:
        """The derivative of a function of η in each of its numbers, as a new last axis."""
        quotients = []
        for column in range(self.eta.shape[1]):
            least = self.problem.unit if column < self.problem.latent else 1.0
            width = WIDTH * self.eta[:, column].abs().clamp_min(least)
            step = torch.zeros_like(self.eta)
            step[:, column] = width
            change = function(self.eta + step) - function(self.eta - step)
            quotients.append(change / (2 * width).reshape(-1, *(1 for _ in change.shape[1:])))
        return torch.stack(quotients, -1)

    @property
    def hessian(self) -> Tensor:
        """−∂² log p/∂f² (n, k, k), which may be indefinite."""
        return -self.change_of_score[:, :, : self.problem.latent]

    @cached_property
    def log_concave(self) -> bool:
        """Whether the information is the Hessian, and not something positive in its place."""
        size = float(self.information.abs().max())  # 1/y² has the units of y
        return torch.allclose(self.hessian, self.information, rtol=1e-5, atol=1e-7 * size)


def _mode(
    problem: Laplace, matrix: Tensor, means: Tensor, shared: Tensor, weights: Tensor
) -> tuple[Tensor, _Here, bool]:
    """a = K⁻¹(f̂ − m) by Newton's method, what is known at f̂, and whether it is the top.

    The information leads upwards from anywhere. Where it is not the Hessian (log p is not concave), that leads faster
    once the top is close. Near the top ψ is too flat to be compared, and full steps are taken for as long as they
    become shorter. Where ψ has an edge (the likelihood Laplace), no step may be upwards, and that is the top.
    """
    weights, here = _better(problem, matrix, means, shared, weights)
    last, concave = torch.inf, here.log_concave
    for _ in range(MAX_NEWTON):
        height = _height(here, weights, means)
        unit = 1 + abs(height)
        step, gain = _step(matrix, means, weights, here, informed=True)
        near = gain < 1e-9 * unit
        if gain < 1e-22 * unit or (near and gain > 0.5 * last):
            return weights, here, near
        risen = None
        if not concave and gain < 1e-2 * unit:
            faster, worth = _step(matrix, means, weights, here, informed=False)
            if worth > 0:
                risen = _rise(problem, matrix, means, shared, weights, faster, height, near)
        risen = risen or _rise(problem, matrix, means, shared, weights, step, height, near)
        if not risen:
            return weights, here, gain < 0.05 * unit
        (weights, here), last = risen, gain
    return weights, here, False


def _better(problem: Laplace, matrix: Tensor, means: Tensor, shared: Tensor, weights: Tensor) -> tuple[Tensor, _Here]:
    """These weights, or none where those are more probable.

    The mode under one kernel may be absurd under the next: a rate of e⁶⁰, from where no step of Newton's leads back.
    """
    zero = torch.zeros_like(weights)
    here, plain = (_Here(problem, means + matrix @ start, shared) for start in (weights, zero))
    return (weights, here) if _height(here, weights, means) >= _height(plain, zero, means) else (zero, plain)


def _rise(
    problem: Laplace,
    matrix: Tensor,
    means: Tensor,
    shared: Tensor,
    weights: Tensor,
    step: Tensor,
    height: float,
    near: bool,
) -> tuple[Tensor, _Here] | None:
    """As much of a step as makes ψ rise; all of it near the top; None where no part of it does."""
    length = 1.0
    while length > 1e-6:
        trial = weights + length * step
        there = _Here(problem, means + matrix @ trial, shared)
        if near or _height(there, trial, means) > height:
            return trial, there
        length /= 2
    return None


def _height(here: _Here, weights: Tensor, means: Tensor) -> float:
    """ψ."""
    return here.log_prob - 0.5 * float((weights * (here.latent - means)).sum())


def _step(matrix: Tensor, means: Tensor, weights: Tensor, here: _Here, *, informed: bool) -> tuple[Tensor, float]:
    """(I + HK)⁻¹ (H(f − m) + score) − a, with the information or the Hessian for H; and twice what it should win."""
    curve = here.information if informed else here.hessian
    pull = (curve @ (here.latent - means).unsqueeze(-1)).squeeze(-1) + here.score
    solved = pull - here.curvature(matrix).apply(matrix @ pull) if informed else _solve(matrix, curve, pull)
    step = solved - weights
    return step, float(((here.score - weights) * (matrix @ step)).sum())


def _solve(matrix: Tensor, hessian: Tensor, right: Tensor) -> Tensor:
    """(I + HK)⁻¹ of a right-hand side (n, k)."""
    n, k = right.shape
    system = torch.einsum("icd,ij->icjd", hessian, matrix).reshape(n * k, n * k)
    system.diagonal().add_(1.0)
    return torch.linalg.solve_ex(system, right.reshape(-1))[0].reshape(n, k)


@dataclass(frozen=True)
class LaplacePosterior:
    """f | y ≈ Normal(m + k(·, X) a, k − k(·, X) M k(X, ·)) for each of k functions."""

    kernel: KernelModule
    x: Tensor
    matrix: Tensor
    means: Tensor
    shared: Tensor
    weights: Tensor
    here: _Here
    curvature: Curvature
    log_evidence: float
    converged: bool
    jitter: float = 0.0  # B = I + … is never singular

    def location(self, x: Tensor) -> Tensor:
        """The mean of f, (m, k)."""
        with following(x):
            return self.means + self.kernel(x, self.x) @ self.weights

    def marginal(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Mean (m, k) and covariance (m, k, k) of the functions at each row."""
        with following(x):
            cross = self.kernel(self.x, x)
            prior = self.kernel.diagonal(x).reshape(-1, 1, 1) * torch.eye(len(self.means), dtype=x.dtype)
            return self.means + cross.mT @ self.weights, prior - self.curvature.blocks(cross)

    @torch.no_grad()
    def joint(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Mean (m, k) and covariance (m·k, m·k) of the functions at all rows together."""
        cross = self.kernel(self.x, x)
        prior = torch.kron(gram(self.kernel, x), torch.eye(len(self.means), dtype=x.dtype))
        return self.means + cross.mT @ self.weights, prior - self.curvature.joint(cross)
