"""The dual of a support vector machine: optimal by a general solver, by its conditions and by hand."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from likely.models.kernel.support_vector_dual import (
    calibrated,
    centred,
    classes_dual,
    intercept,
    numbers_dual,
    refine,
    solve,
    solve_hard,
)

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(16, 2))
KERNEL = np.exp(-((X[:, None] - X[None]) ** 2).sum(-1) / 2)
SIGN = np.where(X[:, 0] + 0.8 * RANDOM.normal(size=16) > 0, 1.0, -1.0)
WEIGHT = RANDOM.uniform(0.5, 2.0, 16)


def problem(kind):
    if kind == "classes":
        return classes_dual(SIGN, 1.5 * WEIGHT)
    return numbers_dual(np.sin(2 * X[:, 0]), 0.1, 1.5 * WEIGHT)


def objective(dual, beta):
    return 0.5 * beta @ KERNEL @ beta - beta @ dual.target + dual.corner * np.abs(beta).sum()


@pytest.mark.parametrize("kind", ["classes", "numbers"])
def test_the_solution_is_that_of_a_general_solver(kind):
    """β = a − b with a, b ≥ 0 makes ε‖β‖₁ smooth."""
    dual = problem(kind)
    solution = solve(KERNEL, dual, WEIGHT, 1.5, 1e-8)
    assert solution.residual < 1e-8
    assert abs(solution.beta.sum()) < 1e-9
    assert ((solution.beta >= dual.lower) & (solution.beta <= dual.upper)).all()
    bounds = [(0, max(0.0, high)) for high in dual.upper] + [(0, max(0.0, -low)) for low in dual.lower]

    def cost(both):
        beta = both[:16] - both[16:]
        gradient = KERNEL @ beta - dual.target
        value = 0.5 * beta @ KERNEL @ beta - beta @ dual.target + dual.corner * both.sum()
        return value, np.concatenate([gradient, -gradient]) + dual.corner

    even = {"type": "eq", "fun": lambda both: both[:16].sum() - both[16:].sum()}
    options = {"maxiter": 1000, "ftol": 1e-12}
    best = minimize(cost, np.zeros(32), jac=True, method="SLSQP", bounds=bounds, constraints=even, options=options)
    assert objective(dual, solution.beta) <= best.fun + 1e-7
    assert objective(dual, solution.beta) == pytest.approx(best.fun, rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("kind", ["classes", "numbers"])
def test_free_multipliers_are_on_the_margin(kind):
    dual = problem(kind)
    solution = solve(KERNEL, dual, WEIGHT, 1.5, 1e-8)
    beta, f = solution.beta, KERNEL @ solution.beta + solution.intercept
    free = (beta > dual.lower) & (beta < dual.upper) & (beta != 0)
    assert free.any()
    np.testing.assert_allclose(f[free], (dual.target - dual.corner * np.sign(beta))[free], atol=1e-7)
    assert intercept(KERNEL, dual, beta) == pytest.approx((solution.intercept, solution.residual), abs=1e-12)


@pytest.mark.parametrize("kind", ["classes", "numbers"])
def test_refinement_reaches_the_solution_from_a_rough_start(kind):
    dual = problem(kind)
    exact = solve(KERNEL, dual, WEIGHT, 1.5, 1e-8).beta
    start = np.clip(exact + 1e-2 * np.random.default_rng(1).normal(size=16), dual.lower, dual.upper)
    np.testing.assert_allclose(refine(KERNEL, dual, start, 1e-8), exact, atol=1e-6)


def test_two_points_have_their_margin_by_hand():
    """x = 0 and x = 2: w = 1, b = −1, so that β = ±½."""
    points = np.array([[0.0], [2.0]])
    solution = solve_hard(points @ points.T, np.array([-1.0, 1.0]), None, 1e-8)
    np.testing.assert_allclose(solution.beta, [-0.5, 0.5], rtol=1e-8)
    assert solution.intercept == pytest.approx(-1.0, rel=1e-8)


def test_classes_that_overlap_have_no_hard_margin():
    points = np.array([[0.0], [1.0], [2.0], [3.0]])
    assert solve_hard(points @ points.T, np.array([1.0, -1.0, 1.0, -1.0]), None, 1e-6) is None


def test_a_centred_matrix_is_that_of_centred_features():
    rows = np.array([0, 3, 5, 8])
    inner, mean = centred(X @ X.T, rows)
    away = X[rows] - X[rows].mean(0)
    np.testing.assert_allclose(inner, away @ away.T, atol=1e-12)
    np.testing.assert_allclose(mean, X[rows] @ X[rows].mean(0), atol=1e-12)


def test_a_class_of_one_row_is_not_calibrated():
    sign = np.where(np.arange(16) == 3, 1.0, -1.0)
    assert np.isnan(calibrated(KERNEL, sign, np.ones(16), 1.0, seed=0)).all()
    assert np.isfinite(calibrated(KERNEL, SIGN, np.ones(16), 1.0, seed=0)).all()
