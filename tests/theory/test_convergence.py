"""Measured curves stay below their bounds, and have the slopes that theory gives them."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from likely.core.errors import DataError, SpecError
from likely.theory.convergence import (
    convergence,
    gradient_descent_rate,
    gradient_variance,
    momentum_rate,
    quadratic_convergence,
)


def quadratic(*eigenvalues):
    values = torch.tensor(eigenvalues, dtype=torch.float64)
    return lambda theta: 0.5 * (values * theta.square()).sum()


def ones(size):
    return torch.ones(size, dtype=torch.float64)


# --- quadratics -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("condition", [1.0, 2.0, 50.0, 1e4])
@pytest.mark.parametrize("method", ["gradient", "momentum"])
def test_distances_stay_below_the_bound(method, condition):
    rng = np.random.default_rng(0)
    for _ in range(20):
        values = np.exp(rng.uniform(0, math.log(condition), size=6)) if condition > 1 else np.ones(6)
        values[:2] = 1.0, condition
        curve = quadratic_convergence(values, rng.normal(size=6), method, steps=300)
        assert curve.holds
        assert len(curve.measured) == 301


@pytest.mark.parametrize("condition", [4.0, 25.0, 100.0])
def test_measured_rates_are_those_of_the_condition_number(condition):
    plain = quadratic_convergence([1.0, condition], steps=200)
    assert plain.rate() == pytest.approx((condition - 1) / (condition + 1), rel=1e-9)
    assert plain.measured[-1] == pytest.approx(plain.bound[-1], rel=1e-9)  # nothing better can be said
    heavy = quadratic_convergence([1.0, condition], method="momentum", steps=400)
    root = math.sqrt(condition)
    assert heavy.rate() == pytest.approx((root - 1) / (root + 1), rel=0.02)  # and a factor t, which fades
    assert heavy.measured[100] < plain.measured[100]


def test_rates_are_the_best_of_all_steps():
    """max |1 − ηλ| over [μ, L], minimised on a grid; the spectral radius of the heavy ball, too."""
    low, high = 1.0, 20.0
    worst = [max(abs(1 - step * low), abs(1 - step * high)) for step in np.linspace(0.01, 0.12, 2000)]
    assert min(worst) == pytest.approx(gradient_descent_rate(20.0), abs=1e-3)

    def radius(step, beta):
        return max(abs(np.linalg.eigvals([[1 + beta - step * value, -beta], [1, 0]])).max() for value in (low, high))

    root = math.sqrt(20.0)
    best = radius(4 / (1 + root) ** 2, momentum_rate(20.0) ** 2)
    assert best == pytest.approx(momentum_rate(20.0), abs=1e-6)
    grid = [radius(step, beta) for step in np.linspace(0.02, 0.3, 30) for beta in np.linspace(0, 0.95, 30)]
    assert min(grid) >= best - 1e-6


# --- convex and strongly convex losses ------------------------------------------------------------------------------
def test_gradient_descent_is_linear_where_the_loss_is_strongly_convex():
    curve = convergence(quadratic(1.0, 0.02), ones(2), 0 * ones(2), smoothness=1.0, strength=0.02, steps=300)
    assert curve.holds
    assert curve.rate() == pytest.approx((1 - 0.02) ** 2, rel=1e-6)  # of the loss, a square


def test_the_condition_of_polyak_and_lojasiewicz_is_enough():
    """x² + 3 sin²x is not convex, has L = 8, and ½h'² ≥ μ(h − h*) with μ = 1/32."""

    def loss(theta):
        return (theta.square() + 3 * theta.sin().square()).sum()

    grid = torch.linspace(-8, 8, 4001, dtype=torch.float64)
    slope = 2 * grid + 3 * (2 * grid).sin()
    height = grid.square() + 3 * grid.sin().square()
    assert bool((0.5 * slope.square() >= height / 32 - 1e-12).all())
    assert float((2 + 6 * (2 * grid).cos()).min()) < 0
    for start in (-7.0, 2.2, 5.0):
        theta = torch.tensor([start], dtype=torch.float64)
        path = [float(loss(theta))]
        for _ in range(200):
            theta = theta - (2 * theta + 3 * (2 * theta).sin()) / 8
            path.append(float(loss(theta)))
        assert (np.array(path) <= (1 - 1 / 256) ** np.arange(201) * path[0] + 1e-12).all()


def many(size=400):
    """Eigenvalues down to 0, so that no rate but 1/t is left: λ = (i/n)⁸."""
    values = torch.arange(1, size + 1, dtype=torch.float64) / size
    return lambda theta: 0.5 * (values**8 * theta.square()).sum(), ones(size)


def test_gradient_descent_is_one_over_t_and_nesterov_one_over_t_squared():
    loss, start = many()
    plain, fast = (
        convergence(loss, start, 0 * start, smoothness=1.0, method=method, steps=400)
        for method in ("gradient", "nesterov")
    )
    assert plain.holds
    assert fast.holds
    assert -1.4 < plain.power() < -0.9
    assert fast.power() < -1.9
    assert fast.measured[-1] < plain.measured[-1] / 10


def test_nesterov_on_a_strongly_convex_loss():
    loss = quadratic(1.0, 0.3, 1e-3)
    options = {"smoothness": 1.0, "strength": 1e-3, "steps": 300}
    plain = convergence(loss, ones(3), 0 * ones(3), **options)
    fast = convergence(loss, ones(3), 0 * ones(3), method="nesterov", **options)
    assert plain.holds
    assert fast.holds
    assert fast.measured[-1] < 1e-3 * plain.measured[-1]


def test_bounds_hold_for_logistic_loss():
    """Smooth with L = ‖X‖²/4n; the optimum by Newton's method."""
    rng = np.random.default_rng(0)
    X, y = torch.tensor(rng.normal(size=(50, 3))), torch.tensor(rng.integers(2, size=50) * 2.0 - 1)

    def loss(theta):
        return torch.nn.functional.softplus(-y * (X @ theta)).mean() + 0.005 * theta.square().sum()

    theta = torch.zeros(3, dtype=torch.float64)
    for _ in range(20):
        theta = theta - torch.linalg.solve(torch.autograd.functional.hessian(loss, theta), torch.func.grad(loss)(theta))
    smoothness = float(torch.linalg.matrix_norm(X, 2) ** 2 / 200 + 0.01)
    for method in ("gradient", "nesterov"):
        for strength in (0.0, 0.01):
            options = {"smoothness": smoothness, "strength": strength, "method": method, "steps": 100}
            assert convergence(loss, 5 * ones(3), theta, **options).holds


# --- stochastic gradients -------------------------------------------------------------------------------------------
STOCHASTIC = {"smoothness": 1.0, "strength": 0.2, "noise": 0.5}


@pytest.mark.parametrize("rate", [1.0, 0.3])
def test_a_constant_step_ends_at_a_noise_floor(rate, seed):
    """On a quadratic the floor is known: Σ ηs²/(2(2 − ηλᵢ)) with s² the variance of one coordinate's noise.

    Means over 400 runs and the last 100 steps: within 10 %, several standard errors.
    """
    curve = convergence(
        quadratic(1.0, 0.2),
        3 * ones(2),
        0 * ones(2),
        method="sgd",
        rate=rate,
        steps=200,
        **STOCHASTIC,
        random_state=seed,
    )
    assert curve.holds
    expected = sum(rate * 0.125 / (2 * (2 - rate * value)) for value in (1.0, 0.2))
    assert curve.measured[-100:].mean() == pytest.approx(expected, rel=0.1)


def test_halving_the_step_halves_the_floor(seed):
    floors = [
        convergence(
            quadratic(1.0, 0.2),
            ones(2),
            0 * ones(2),
            method="sgd",
            rate=rate,
            steps=400,
            **STOCHASTIC,
            random_state=seed,
        )
        .measured[-150:]
        .mean()
        for rate in (0.2, 0.1)
    ]
    assert floors[0] / floors[1] == pytest.approx(2.0, rel=0.2)


def test_a_falling_step_has_no_floor(seed):
    """1/t, fitted from step 100 on: the power is −0.98 ± 0.05 over 60 seeds, so that ± 0.3 is 5 standard deviations."""
    curve = convergence(
        quadratic(1.0, 0.2), ones(2), 0 * ones(2), method="falling", steps=1000, **STOCHASTIC, random_state=seed
    )
    assert curve.holds
    assert -1.3 < curve.power(0.9) < -0.7


def test_the_mean_of_iterates_where_nothing_is_strongly_convex():
    loss, start = many(50)
    curve = convergence(loss, start, 0 * start, smoothness=1.0, method="sgd", rate=0.2, noise=2.0, steps=200)
    assert curve.holds


def test_without_noise_stochastic_descent_is_gradient_descent():
    arguments = (quadratic(1.0, 0.2), ones(2), 0 * ones(2))
    options = {"smoothness": 1.0, "strength": 0.2, "steps": 20}
    plain = convergence(*arguments, **options)
    same = convergence(*arguments, method="sgd", runs=2, **options)
    np.testing.assert_allclose(same.measured, plain.measured, rtol=1e-12)


def test_the_variance_of_gradients():
    """Σ‖∇hᵢ − ∇h‖²/s of least squares, written out."""
    rng = np.random.default_rng(0)
    X, y, theta = rng.normal(size=(7, 3)), rng.normal(size=7), rng.normal(size=3)
    variance = gradient_variance(lambda t: 0.5 * (torch.tensor(X) @ t - torch.tensor(y)) ** 2, torch.tensor(theta))
    slopes = (X @ theta - y)[:, None] * X
    assert float(variance) == pytest.approx(((slopes - slopes.mean(0)) ** 2).sum() / 7, rel=1e-12)


# --- bad input ------------------------------------------------------------------------------------------------------
def test_bad_arguments_are_named():
    loss, one = quadratic(1.0), ones(1)
    with pytest.raises(SpecError, match=r"condition=0.5 must be L/μ"):
        gradient_descent_rate(0.5)
    with pytest.raises(DataError, match="eigenvalues must be positive"):
        quadratic_convergence([1.0, 0.0])
    with pytest.raises(DataError, match="start has shape"):
        quadratic_convergence([1.0], [1.0, 2.0])
    with pytest.raises(SpecError, match='must be "gradient" or "momentum"'):
        quadratic_convergence([1.0], method="adam")
    for options, message in [
        ({"smoothness": 0.0}, "smoothness=0.0 must be positive"),
        ({"smoothness": 1.0, "strength": 2.0}, "strength=2.0 between 0 and that"),
        ({"smoothness": 1.0, "method": "adam"}, 'must be "gradient", "nesterov", "sgd" or "falling"'),
        ({"smoothness": 1.0, "method": "falling"}, "needs strength above 0"),
        ({"smoothness": 1.0, "noise": 1.0}, "0 for methods that are not stochastic"),
        ({"smoothness": 1.0, "method": "sgd", "rate": 2.0}, "at most 1/smoothness = 1"),
        ({"smoothness": 1.0, "steps": 0}, "steps=0 must be an integer"),
    ]:
        with pytest.raises(SpecError, match=message):
            convergence(loss, one, 0 * one, **options)
