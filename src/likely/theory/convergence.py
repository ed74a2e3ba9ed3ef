"""How fast gradient methods converge: the bound that is proved beside the curve that is measured.

For a loss h with L-Lipschitz gradients (L-smooth) and minimum h* at θ*; μ is its strong convexity (for the second line
the Polyak-Łojasiewicz condition ½‖∇h‖² ≥ μ(h − h*) is enough), κ = L/μ, r = ‖θ₀ − θ*‖, and σ² = E‖g − ∇h‖² the
variance of a stochastic gradient g:

    gradient descent, step 1/L             h_t − h* ≤ L r² / 2t,   and   ≤ (1 − μ/L)ᵗ (h₀ − h*)
                      step 2/(L + μ)       ‖θ_t − θ*‖ ≤ ((κ − 1)/(κ + 1))ᵗ r
    heavy ball on quadratics               ‖θ_t − θ*‖ ≤ ρᵗ (1 + (1 + ρ)t) r,       ρ = (√κ − 1)/(√κ + 1)
    Nesterov, convex                       h_t − h* ≤ 2L r² / (t + 1)²
              strongly convex              h_t − h* ≤ (1 − 1/√κ)ᵗ (h₀ − h* + μr²/2)
    stochastic, constant step η ≤ 1/L      E h_t − h* ≤ (1 − ημ)ᵗ (h₀ − h*) + ηLσ²/2μ
                falling step 2/(μ(t + 2κ)) E h_t − h* ≤ max(2Lσ²/μ², 2κ(h₀ − h*)) / (t + 2κ)
                mean of iterates (μ = 0)   E h(θ̄_t) − h* ≤ r²/2ηt + ησ²
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor
from torch.func import grad, vmap

from ..core.errors import DataError, SpecError
from ..core.random import isolated

__all__ = [
    "Convergence",
    "convergence",
    "gradient_descent_rate",
    "gradient_variance",
    "momentum_rate",
    "quadratic_convergence",
]

Loss = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class Convergence:
    """What was measured after 0, 1, 2, … steps, and the bound on it."""

    method: str
    quantity: str
    measured: np.ndarray
    bound: np.ndarray

    @property
    def holds(self) -> bool:
        """Whether nothing measured exceeds its bound (but for rounding)."""
        return bool((self.measured <= self.bound * (1 + 1e-9) + 1e-12 * self.measured[0]).all())

    def rate(self, last: float = 0.5) -> float:
        """The factor by which a step shrinks the measured quantity, fitted to the `last` fraction of the steps."""
        steps, values = self._tail(last)
        return float(np.exp(np.polyfit(steps, np.log(values), 1)[0]))

    def power(self, last: float = 0.5) -> float:
        """p of measured ~ tᵖ, fitted to the `last` fraction of the steps: −1 for 1/t."""
        steps, values = self._tail(last)
        return float(np.polyfit(np.log(steps), np.log(values), 1)[0])

    def _tail(self, last: float) -> tuple[np.ndarray, np.ndarray]:
        steps = np.arange(len(self.measured))[-max(2, int(last * len(self.measured))) :]
        seen = steps[(self.measured[steps] > 0) & (steps > 0)]
        return seen, self.measured[seen]


def gradient_descent_rate(condition: float) -> float:
    """(κ − 1)/(κ + 1): what one step of gradient descent leaves of the distance, at the best step 2/(L + μ).

    >>> gradient_descent_rate(3.0)
    0.5
    """
    return (_condition(condition) - 1) / (condition + 1)


def momentum_rate(condition: float) -> float:
    """(√κ − 1)/(√κ + 1): the same for the heavy ball, at the best step 4/(√L + √μ)² and momentum ρ².

    >>> momentum_rate(9.0)
    0.5
    """
    return (math.sqrt(_condition(condition)) - 1) / (math.sqrt(condition) + 1)


def quadratic_convergence(
    eigenvalues: Any, start: Any = None, method: Literal["gradient", "momentum"] = "gradient", steps: int = 100
) -> Convergence:
    """‖θ_t‖ on ½ Σ λᵢθᵢ² by gradient descent or the heavy ball with their best steps; the bound is by κ alone.

    >>> curve = quadratic_convergence([1.0, 3.0], steps=20)
    >>> curve.holds, round(curve.rate(), 6)
    (True, 0.5)
    """
    values = np.asarray(eigenvalues, dtype=float).ravel()
    if len(values) == 0 or not (values > 0).all():
        raise DataError("eigenvalues must be positive numbers, one or more.")
    theta = np.ones_like(values) if start is None else np.asarray(start, dtype=float)
    if theta.shape != values.shape:
        raise DataError(f"start has shape {theta.shape}; there are {len(values)} eigenvalues.")
    low, high = float(values.min()), float(values.max())
    time = np.arange(_steps(steps) + 1)
    match method:
        case "gradient":
            step, beta, rate = 2 / (low + high), 0.0, gradient_descent_rate(high / low)
            factor = rate**time
        case "momentum":
            rate = momentum_rate(high / low)
            step, beta = 4 / (math.sqrt(low) + math.sqrt(high)) ** 2, rate**2
            factor = rate**time * (1 + (1 + rate) * time)
        case _:
            raise SpecError(f'method={method!r} must be "gradient" or "momentum".')
    measured, before = [np.linalg.norm(theta)], theta
    for _ in range(steps):
        theta, before = theta - step * values * theta + beta * (theta - before), theta
        measured.append(np.linalg.norm(theta))
    return Convergence(method, "distance to the minimum", np.array(measured), factor * measured[0])


def convergence(
    loss: Loss,
    start: Tensor,
    optimum: Tensor,
    *,
    smoothness: float,
    strength: float = 0.0,
    method: Literal["gradient", "nesterov", "sgd", "falling"] = "gradient",
    steps: int = 100,
    noise: float = 0.0,
    rate: float | None = None,
    runs: int = 200,
    random_state: int = 0,
) -> Convergence:
    """h(θ_t) − h* for a convex loss θ (d,) → h of which L (`smoothness`), μ (`strength`) and θ* are known.

    "gradient" and "nesterov" take steps 1/L. "sgd" takes a constant `rate` (1/L if not given), "falling" one that
    falls as 1/t; both add Gaussian `noise` (E‖g − ∇h‖² = noise²) to the gradient and average h over `runs`. Without
    strong convexity "sgd" is judged by h at the mean of the iterates.

    >>> def loss(theta): return 0.5 * (torch.tensor([1.0, 0.1]) * theta**2).sum()
    >>> curve = convergence(loss, torch.ones(2), torch.zeros(2), smoothness=1.0, strength=0.1, steps=30)
    >>> curve.holds, bool(curve.measured[-1] < 0.01)
    (True, True)
    """
    _checked(smoothness, strength, noise, method)
    time = np.arange(_steps(steps) + 1)
    least = float(loss(optimum))
    gap, reach = float(loss(start)) - least, float((start - optimum).square().sum())
    step = 1 / smoothness if rate is None else float(rate)
    if not 0 < step <= 1 / smoothness * (1 + 1e-12):
        raise SpecError(f"rate={rate!r} must be positive and at most 1/smoothness = {1 / smoothness:g}.")
    condition = smoothness / strength if strength else math.inf
    with np.errstate(divide="ignore"):
        match method:
            case "gradient":
                bound = np.minimum((1 - strength * step) ** time * gap, reach / (2 * step * time))
                path = _descent(loss, start[None], np.full(steps, step))
            case "nesterov":
                path = _accelerated(loss, start, step, steps, condition)
                bound = 2 * smoothness * reach / (time + 1.0) ** 2
                if strength:
                    bound = (1 - condition**-0.5) ** time * (gap + strength * reach / 2)
            case "sgd":
                path = _noisy_paths(loss, start, np.full(steps, step), noise, runs, random_state, mean=not strength)
                bound = reach / (2 * step * time) + step * noise**2
                if strength:
                    floor = step * smoothness * noise**2 / (2 * strength)
                    bound = (1 - step * strength) ** time * gap + floor
            case _:
                path = _noisy_paths(
                    loss, start, 2 / (strength * (time[:-1] + 2 * condition)), noise, runs, random_state
                )
                bound = max(2 * smoothness * noise**2 / strength**2, 2 * condition * gap) / (time + 2 * condition)
    bound[0] = max(float(bound[0]), gap) if math.isfinite(bound[0]) else gap
    values = torch.stack([vmap(loss)(points).mean() for points in path])
    return Convergence(method, "loss above its minimum", values.double().numpy() - least, bound)


def gradient_variance(losses: Callable[[Tensor], Tensor], theta: Tensor) -> Tensor:
    """V = 1/s Σᵢ ‖∇hᵢ − ∇h‖²: how much the gradients of s rows or batches differ from their mean, at θ.

    `losses(θ)` gives the s losses, (s,). The answer can be differentiated.

    >>> gradient_variance(lambda theta: torch.stack([theta.sum(), -theta.sum()]), torch.zeros(3))
    tensor(3.)
    """
    jacobian: Tensor = torch.func.jacrev(losses)(theta)  # type: ignore[assignment]
    flat = jacobian.flatten(1)
    return (flat - flat.mean(0)).square().sum(1).mean()


# --- the paths ------------------------------------------------------------------------------------------------------
def _descent(loss: Loss, theta: Tensor, rates: np.ndarray, noise: float = 0.0) -> list[Tensor]:
    """(runs, d) after each step."""
    gradient, path = vmap(grad(loss)), [theta]
    for rate in rates.tolist():
        g = gradient(theta)
        if noise:
            g = g + noise * theta.shape[1] ** -0.5 * torch.randn_like(theta)
        theta = theta - rate * g
        path.append(theta)
    return path


def _noisy_paths(
    loss: Loss, start: Tensor, rates: np.ndarray, noise: float, runs: int, seed: int, *, mean: bool = False
) -> list[Tensor]:
    with isolated(seed):
        path = _descent(loss, start.expand(runs, -1), rates, noise)
    if not mean:
        return path
    total, averages = torch.zeros_like(path[0]), [path[0]]
    for count, points in enumerate(path[1:], 1):
        total = total + points
        averages.append(total / count)
    return averages


def _accelerated(loss: Loss, theta: Tensor, step: float, steps: int, condition: float) -> list[Tensor]:
    """Nesterov's method: with constant momentum if κ is known, with momentum that grows to 1 if it is infinite."""
    gradient, before, path, weight = grad(loss), theta, [theta[None]], 1.0
    for _ in range(steps):
        following = (1 + math.sqrt(1 + 4 * weight**2)) / 2
        beta = (weight - 1) / following
        if math.isfinite(condition):
            beta = (math.sqrt(condition) - 1) / (math.sqrt(condition) + 1)
        ahead = theta + beta * (theta - before)
        theta, before, weight = ahead - step * gradient(ahead), theta, following
        path.append(theta[None])
    return path


def _condition(condition: float) -> float:
    if not 1 <= condition < math.inf:
        raise SpecError(f"condition={condition!r} must be L/μ: a number from 1 on.")
    return condition


def _steps(steps: int) -> int:
    if steps < 1 or steps != int(steps):
        raise SpecError(f"steps={steps!r} must be an integer, 1 or more.")
    return int(steps)


def _checked(smoothness: float, strength: float, noise: float, method: str) -> None:
    if not 0 <= strength <= smoothness or not 0 < smoothness < math.inf:
        raise SpecError(f"smoothness={smoothness!r} must be positive, and strength={strength!r} between 0 and that.")
    if method not in ("gradient", "nesterov", "sgd", "falling"):
        raise SpecError(f'method={method!r} must be "gradient", "nesterov", "sgd" or "falling".')
    if method == "falling" and not strength:
        raise SpecError("method='falling' needs strength above 0; its steps are 2/(strength·t).")
    if noise < 0 or (noise and method in ("gradient", "nesterov")):
        raise SpecError(f"noise={noise!r} must be 0 or more, and 0 for methods that are not stochastic.")
