"""What gradient descent prefers without being asked to.

Steps of finite size α do not follow dθ/dt = −∇L, but, one order in α closer, the flow of another loss:

    gradient descent                L̃ = L + α/4 ‖∇L‖²
    one epoch of B batches          L̃ = L + α/4 ‖∇L‖² + α/4B Σ_b ‖∇L_b − ∇L‖²        (mean over the batches' orders)

so steep regions, and regions where batches disagree, are avoided. On least squares from θ = 0, gradient descent ends at
the solution of the smallest norm, and t steps of size α do to each singular direction nearly what a ridge penalty of
1/αt does:

    θ_t = V diag((1 − (1 − αs²)ᵗ)/s) Uᵀy          θ_ridge = V diag(s/(s² + λ)) Uᵀy,   λ = 1/αt
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.func import grad

from ..core.errors import DataError, SpecError
from .convergence import gradient_variance

__all__ = [
    "ImplicitRegularisation",
    "descent_filter",
    "early_stopping",
    "flow",
    "implicit_regularisation",
    "minimum_norm",
    "modified_loss",
    "ridge_filter",
    "stochastic_modified_loss",
]

Loss = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class ImplicitRegularisation:
    """The discrete path (steps + 1, d), and both flows at the same times."""

    path: Tensor
    plain: Tensor
    modified: Tensor

    @property
    def plain_gap(self) -> float:
        """The largest distance of the path to the flow of L: of order α."""
        return float((self.path - self.plain).norm(dim=1).max())

    @property
    def modified_gap(self) -> float:
        """The largest distance of the path to the flow of L + α/4‖∇L‖²: of order α²."""
        return float((self.path - self.modified).norm(dim=1).max())


def modified_loss(loss: Loss, rate: float) -> Loss:
    """θ → L(θ) + α/4 ‖∇L(θ)‖²: whose flow gradient descent with steps α follows to second order.

    >>> modified_loss(lambda theta: theta.square().sum(), rate=0.1)(torch.tensor([1.0]))
    tensor(1.1000)
    """
    step = _rate(rate)
    return lambda theta: loss(theta) + step / 4 * grad(loss)(theta).square().sum()


def stochastic_modified_loss(losses: Callable[[Tensor], Tensor], rate: float) -> Loss:
    """The same for stochastic gradient descent: `losses(θ)` are those of the B batches, (B,), and L is their mean.

    >>> batches = lambda theta: torch.stack([theta.sum(), -theta.sum()])
    >>> stochastic_modified_loss(batches, rate=0.4)(torch.zeros(3))    # α/4 · the variance, which is 3
    tensor(0.3000)
    """
    step, whole = _rate(rate), modified_loss(lambda theta: losses(theta).mean(), rate)
    return lambda theta: whole(theta) + step / 4 * gradient_variance(losses, theta)


def flow(loss: Loss, start: Tensor, time: float, points: int, substeps: int = 4) -> Tensor:
    """dθ/dt = −∇L from `start`, at `points` + 1 times from 0 to `time`: (points + 1, d), by Runge-Kutta of order 4.

    >>> flow(lambda theta: 0.5 * theta.square().sum(), torch.ones(1), time=1.0, points=1)[-1]
    tensor([0.3679])
    """
    gradient, theta, path = grad(loss), start, [start]
    h = time / (points * substeps)
    for _ in range(points):
        for _ in range(substeps):
            one = -gradient(theta)
            two = -gradient(theta + h / 2 * one)
            three = -gradient(theta + h / 2 * two)
            four = -gradient(theta + h * three)
            theta = theta + h / 6 * (one + 2 * two + 2 * three + four)
        path.append(theta)
    return torch.stack(path)


def implicit_regularisation(loss: Loss, start: Tensor, rate: float, steps: int) -> ImplicitRegularisation:
    """Gradient descent on L from `start`, beside the flow of L and that of L + α/4‖∇L‖² at the times 0, α, 2α, ….

    >>> def loss(theta): return (theta[0] * theta[1] - 1) ** 2
    >>> flows = implicit_regularisation(loss, torch.tensor([2.0, 0.1]), rate=0.01, steps=20)
    >>> flows.modified_gap < 0.2 * flows.plain_gap
    True
    """
    if steps < 1 or steps != int(steps):
        raise SpecError(f"steps={steps!r} must be an integer, 1 or more.")
    gradient, theta, path = grad(loss), start, [start]
    for _ in range(int(steps)):
        theta = theta - _rate(rate) * gradient(theta)
        path.append(theta)
    objectives = (loss, modified_loss(loss, rate))
    plain, modified = (flow(objective, start, rate * steps, int(steps)) for objective in objectives)
    return ImplicitRegularisation(torch.stack(path), plain, modified)


def minimum_norm(X: Any, y: Any) -> np.ndarray:
    """The θ of smallest norm among those with the least ‖y − Xθ‖: where gradient descent from 0 ends.

    >>> minimum_norm([[1.0, 1.0]], [2.0]).round(6)
    array([1., 1.])
    """
    design, target = _least_squares(X, y)
    return np.linalg.lstsq(design, target, rcond=None)[0]


def early_stopping(X: Any, y: Any, rate: float, steps: float) -> np.ndarray:
    """θ after `steps` steps of gradient descent from 0 on ½‖y − Xθ‖², in closed form.

    >>> early_stopping([[1.0]], [8.0], rate=0.5, steps=3)
    array([7.])
    """
    design, target = _least_squares(X, y)
    left, values, right = np.linalg.svd(design, full_matrices=False)
    safe = np.where(values > 0, values, 1.0)
    return right.T @ ((descent_filter(values, rate, steps) / safe) * (left.T @ target).T).T


def descent_filter(singular_values: Any, rate: float, steps: float) -> np.ndarray:
    """1 − (1 − αs²)ᵗ: the fraction of each singular direction of y that t steps of gradient descent have fitted.

    >>> descent_filter([1.0, 0.0], rate=0.5, steps=2)
    array([0.75, 0.  ])
    """
    values = np.asarray(singular_values, dtype=float)
    if values.size and not _rate(rate) * values.max() ** 2 < 2:
        raise SpecError(f"rate={rate!r} must be below 2/s² = {2 / values.max() ** 2:g}, or gradient descent diverges.")
    if not steps >= 0:
        raise SpecError(f"steps={steps!r} must be 0 or more.")
    return 1 - (1 - rate * values**2) ** steps


def ridge_filter(singular_values: Any, penalty: float) -> np.ndarray:
    """s²/(s² + λ): the fraction that ridge regression with penalty λ‖θ‖²/2 fits.

    With λ = 1/αt gradient flow fits between once and 1.3 times as much, in every direction.

    >>> ridge_filter([1.0, 0.0], penalty=1.0)
    array([0.5, 0. ])
    """
    squares = np.asarray(singular_values, dtype=float) ** 2
    if not penalty > 0:
        raise SpecError(f"penalty={penalty!r} must be positive.")
    return squares / (squares + penalty)


def _rate(rate: float) -> float:
    if not rate > 0:
        raise SpecError(f"rate={rate!r} must be a positive step size.")
    return float(rate)


def _least_squares(X: Any, y: Any) -> tuple[np.ndarray, np.ndarray]:
    design, target = np.asarray(X, dtype=float), np.asarray(y, dtype=float)
    if design.ndim != 2 or len(design) != len(target):
        raise DataError(f"X must be (n, d) and y have n rows; found {design.shape} and {target.shape}.")
    return design, target
