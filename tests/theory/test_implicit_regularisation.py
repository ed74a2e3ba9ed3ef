"""Orders of error in the step, the limit of gradient descent, and early stopping beside ridge."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from scipy.linalg import expm

from likely.core.errors import DataError, SpecError
from likely.theory.implicit_regularisation import (
    descent_filter,
    early_stopping,
    flow,
    implicit_regularisation,
    minimum_norm,
    modified_loss,
    ridge_filter,
    stochastic_modified_loss,
)


def curved(theta):
    """A loss with curvature of every kind."""
    return (theta[0] * theta[1] - 1) ** 2 + 0.1 * theta[0] ** 4 + torch.sin(theta[1])


START = torch.tensor([1.5, -0.5], dtype=torch.float64)


def order(gaps):
    """p of gap ~ αᵖ, from steps that halve."""
    return np.log2(np.array(gaps[:-1]) / np.array(gaps[1:]))


def test_the_path_is_one_order_closer_to_the_modified_flow():
    runs = [implicit_regularisation(curved, START, 0.04 / 2**k, 6 * 2**k) for k in range(3)]
    np.testing.assert_allclose(order([run.plain_gap for run in runs])[-1], 1, atol=0.1)
    np.testing.assert_allclose(order([run.modified_gap for run in runs])[-1], 2, atol=0.1)
    assert all(run.modified_gap < 0.3 * run.plain_gap for run in runs)
    assert runs[0].path.shape == runs[0].plain.shape == (7, 2)


def test_the_modified_loss_is_its_formula():
    slope = torch.func.grad(curved)(START)
    torch.testing.assert_close(modified_loss(curved, 0.3)(START), curved(START) + 0.3 / 4 * slope @ slope)
    change = torch.func.grad(modified_loss(curved, 0.3))(START)
    torch.testing.assert_close(change, slope + 0.15 * torch.autograd.functional.hessian(curved, START) @ slope)


def test_on_a_quadratic_the_modified_rates_are_those_of_a_series():
    """(1 − αλ)ᵗ = e^{t log(1 − αλ)} and log(1 − αλ) = −αλ − α²λ²/2 − …: the flow of λ + αλ²/2."""
    rate, value = 0.1, 2.0
    run = implicit_regularisation(lambda t: value / 2 * t.square().sum(), torch.ones(1).double(), rate, 5)
    np.testing.assert_allclose(run.path[:, 0], (1 - rate * value) ** np.arange(6), rtol=1e-12)
    time = rate * np.arange(6)
    np.testing.assert_allclose(run.modified[:, 0], np.exp(-(value + rate * value**2 / 2) * time), rtol=1e-6)


def test_the_flow_is_the_matrix_exponential():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(3, 3))
    H, start = A @ A.T, rng.normal(size=3)
    path = flow(lambda t: 0.5 * t @ torch.tensor(H) @ t, torch.tensor(start), time=0.7, points=2, substeps=50)
    np.testing.assert_allclose(path[-1], expm(-0.7 * H) @ start, atol=1e-7)
    np.testing.assert_allclose(path[1], expm(-0.35 * H) @ start, atol=1e-7)


def batches(theta):
    return torch.stack([curved(theta), (theta[0] - 2 * theta[1]) ** 2, (theta[0] ** 2 + theta[1] - 1) ** 2])


def after_one_epoch(rate):
    """The mean over all orders of the batches."""
    ends = []
    for turn in itertools.permutations(range(3)):
        theta = START
        for batch in turn:
            theta = theta - rate * torch.func.grad(lambda t, b=batch: batches(t)[b])(theta)
        ends.append(theta)
    return torch.stack(ends).mean(0)


def test_an_epoch_of_batches_follows_the_stochastic_modified_loss():
    """Error of order α³ after one epoch; without the variance between batches it is α²."""
    own, without = [], []
    for rate in (0.01, 0.005, 0.0025):
        end = after_one_epoch(rate)
        for gaps, loss in (
            (own, stochastic_modified_loss(batches, rate)),
            (without, modified_loss(lambda t: batches(t).mean(), rate)),
        ):
            gaps.append(float((flow(loss, START, 3 * rate, 1)[-1] - end).norm()))
    assert order(own)[-1] == pytest.approx(3, abs=0.15)
    assert order(without)[-1] == pytest.approx(2, abs=0.15)
    assert own[-1] < 0.1 * without[-1]


def test_the_stochastic_loss_is_the_mean_of_squared_slopes():
    """L + α/4‖∇L‖² + α/4B Σ‖∇L_b − ∇L‖² = L + α/4B Σ‖∇L_b‖²."""
    slopes = torch.func.jacrev(batches)(START)
    expected = batches(START).mean() + 0.2 / 4 * slopes.square().sum(1).mean()
    torch.testing.assert_close(stochastic_modified_loss(batches, 0.2)(START), expected)


# --- least squares --------------------------------------------------------------------------------------------------
@pytest.fixture
def wide():
    rng = np.random.default_rng(0)
    return rng.normal(size=(5, 12)), rng.normal(size=5)


def descended(X, y, rate, steps):
    theta = np.zeros((X.shape[1], *y.shape[1:]))
    for _ in range(steps):
        theta = theta - rate * X.T @ (X @ theta - y)
    return theta


def test_gradient_descent_from_zero_ends_at_the_smallest_solution(wide):
    X, y = wide
    descent, smallest = descended(X, y, 0.02, 20_000), minimum_norm(X, y)
    np.testing.assert_allclose(descent, smallest, atol=1e-8)
    np.testing.assert_allclose(smallest, X.T @ np.linalg.solve(X @ X.T, y), atol=1e-10)
    null = np.eye(12) - np.linalg.pinv(X) @ X
    other = smallest + null @ np.ones(12)
    np.testing.assert_allclose(X @ other, y, atol=1e-10)
    assert np.linalg.norm(other) > np.linalg.norm(smallest)


@pytest.mark.parametrize("steps", [0, 1, 7, 100])
def test_early_stopping_is_gradient_descent_in_closed_form(wide, steps):
    X, y = wide
    np.testing.assert_allclose(early_stopping(X, y, 0.02, steps), descended(X, y, 0.02, steps), atol=1e-10)
    two = np.column_stack([y, -y])
    np.testing.assert_allclose(
        early_stopping(X.T[:5], two, 0.02, steps), descended(X.T[:5], two, 0.02, steps), atol=1e-10
    )


def test_early_stopping_is_nearly_ridge():
    """Gradient flow fits each direction between 1 and 1.2985 times as much as ridge with λ = 1/αt."""
    s, rate = np.logspace(-3, 0, 400), 0.01
    for steps in (1, 10, 100, 10_000):
        ratio = -np.expm1(-rate * steps * s**2) / ridge_filter(s, 1 / (rate * steps))
        assert ratio.min() >= 1 - 1e-9
        assert ratio.max() <= 1.2985
    few = descent_filter(s, rate, 100) / ridge_filter(s, 1.0)
    assert few.min() >= 1 - 1e-9
    assert few.max() < 1.31  # steps instead of the flow


def test_early_stopping_beside_the_ridge_solution(wide):
    X, y = wide
    stopped = early_stopping(X, y, 0.001, 200)
    ridge = np.linalg.solve(X.T @ X + np.eye(12) / 0.2, X.T @ y)
    cosine = stopped @ ridge / np.linalg.norm(stopped) / np.linalg.norm(ridge)
    assert cosine > 0.99
    assert 1 <= np.linalg.norm(stopped) / np.linalg.norm(ridge) < 1.31
    assert np.linalg.norm(stopped) < np.linalg.norm(minimum_norm(X, y))


def test_bad_arguments_are_named(wide):
    X, y = wide
    with pytest.raises(SpecError, match="rate=0 must be a positive step size"):
        modified_loss(curved, 0)
    with pytest.raises(SpecError, match="or gradient descent diverges"):
        early_stopping(X, y, 10.0, 3)
    with pytest.raises(SpecError, match="steps=-1 must be 0 or more"):
        descent_filter([1.0], 0.1, -1)
    with pytest.raises(SpecError, match="steps=0 must be an integer"):
        implicit_regularisation(curved, START, 0.1, 0)
    with pytest.raises(SpecError, match="penalty=0 must be positive"):
        ridge_filter([1.0], 0)
    with pytest.raises(DataError, match=r"X must be \(n, d\)"):
        minimum_norm(X, y[:2])
