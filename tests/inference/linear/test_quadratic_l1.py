from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression

from likely import Classifier
from likely.inference.linear import quadratic_l1 as module
from likely.inference.linear.quadratic_l1 import quadratic_l1
from likely.priors import Laplace


def quadratic(seed, size, rank, strength):
    """A random convex quadratic ½θᵀHθ − bᵀθ with b in the range of H, and L1 rates of which some are 0."""
    rng = np.random.default_rng(seed)
    design = rng.normal(size=(rank, size)) * np.exp(rng.normal(size=size))
    matrix = torch.from_numpy(design.T @ design)
    linear = torch.from_numpy(design.T @ rng.normal(size=rank))
    rates = strength * linear.abs().max() * torch.from_numpy(rng.uniform(0.1, 1, size=size) * (rng.random(size) < 0.8))
    return matrix, linear, rates


def distance_from_rest(matrix, linear, rates, theta):
    """How far the subgradient of the whole is from holding 0."""
    slope = matrix @ theta - linear
    moving = (slope + rates * theta.sign()).abs()
    resting = (slope.abs() - rates).clamp_min(0)
    return torch.where(theta != 0, moving, resting).max().item()


@settings(max_examples=60, deadline=None, derandomize=True)
@given(seed=st.integers(0, 2**31), size=st.integers(1, 12), strength=st.floats(0.001, 1.5))
def test_the_quadratic_with_l1_meets_its_optimality_conditions(seed, size, strength):
    matrix, linear, rates = quadratic(seed, size, 2 * size + 1, strength)
    solution = quadratic_l1(matrix, linear, rates, torch.zeros(size, dtype=torch.float64))
    assert distance_from_rest(matrix, linear, rates, solution) <= 1e-10 * (1 + float(linear.abs().max()))


@settings(max_examples=25, deadline=None, derandomize=True)
@given(seed=st.integers(0, 2**31), size=st.integers(2, 8), strength=st.floats(0.01, 0.9))
def test_the_start_does_not_matter(seed, size, strength):
    matrix, linear, rates = quadratic(seed, size, 2 * size + 1, strength)
    starts = torch.zeros(size, dtype=torch.float64), torch.full((size,), 5.0, dtype=torch.float64)
    near, far = (quadratic_l1(matrix, linear, rates, start) for start in starts)
    torch.testing.assert_close(near, far, rtol=1e-8, atol=1e-10)


def test_a_singular_quadratic_is_solved_too():
    matrix, linear, rates = quadratic(0, 10, 4, 0.1)
    solution = quadratic_l1(matrix, linear, rates, torch.zeros(10, dtype=torch.float64))
    assert distance_from_rest(matrix, linear, rates, solution) <= 1e-7 * float(linear.abs().max())


def test_soft_thresholding_is_the_diagonal_case():
    linear = torch.tensor([3.0, -2.0, 0.5, -0.1], dtype=torch.float64)
    solution = quadratic_l1(torch.eye(4, dtype=torch.float64) * 2, linear, torch.ones(4, dtype=torch.float64), linear)
    torch.testing.assert_close(solution, torch.tensor([1.0, -0.5, 0.0, 0.0], dtype=torch.float64))


@settings(max_examples=60, deadline=None, derandomize=True)
@given(seed=st.integers(0, 2**31), size=st.integers(2, 12), strength=st.floats(0.001, 1.5))
def test_singular_quadratics_meet_their_optimality_conditions(seed, size, strength):
    matrix, linear, rates = quadratic(seed, size, size // 2, strength)
    theta = quadratic_l1(matrix, linear, rates, torch.zeros(size, dtype=torch.float64))
    assert distance_from_rest(matrix, linear, rates, theta) <= 1e-8 * (1 + float(linear.abs().max()))


def one_hot(rows, levels, seed):
    """Columns of 0 and 1, one of each group: with an intercept, every group is collinear with it."""
    rng = np.random.default_rng(seed)
    X = np.concatenate([np.eye(count)[rng.integers(0, count, rows)] for count in levels], 1)
    weight = rng.normal(size=X.shape[1]) * (rng.random(X.shape[1]) < 0.5)
    return X, (rng.random(rows) < 1 / (1 + np.exp(-X @ weight))).astype(int)


def objective(X, y, weight, bias, C):
    return np.logaddexp(0, -(2 * y - 1) * (X @ weight + bias)).sum() + np.abs(weight).sum() / C


@pytest.mark.parametrize("C", [0.1, 1.0, 10.0])
@pytest.mark.parametrize(("levels", "seed"), [((3, 4), 0), ((3, 4), 1), ((5, 6, 7), 0), ((10, 10, 5, 2), 0)])
def test_one_hot_columns_take_few_linear_systems(levels, seed, C, monkeypatch):
    """The optimum is scikit-learn's, after a few systems for each of a few Newton steps (there were 4,000)."""
    X, y = one_hot(400, levels, seed)
    systems = []
    solve = module._correction
    monkeypatch.setattr(module, "_correction", lambda *given: systems.append(1) or solve(*given))
    model = Classifier(prior=Laplace(C)).fit(X, y)
    peer = LogisticRegression(C=C, l1_ratio=1.0, solver="saga", tol=1e-9, max_iter=20_000).fit(X, y)
    ours = objective(X, y, model.coef_.reshape(-1), float(np.ravel(model.intercept_)[0]), C)
    theirs = objective(X, y, peer.coef_[0], peer.intercept_[0], C)
    assert ours <= theirs + 1e-7 * abs(theirs)
    assert len(systems) <= 10 * X.shape[1]


def test_from_a_near_start_the_search_alone_finds_the_optimum(monkeypatch):
    matrix, linear, rates = quadratic(3, 12, 25, 0.1)
    near = quadratic_l1(matrix, linear, rates, torch.zeros(12, dtype=torch.float64))
    monkeypatch.setattr(module, "MOST", 0)  # no proximal steps
    solution = quadratic_l1(1.01 * matrix, linear, rates, near)
    assert not torch.equal(solution, near)
    assert distance_from_rest(1.01 * matrix, linear, rates, solution) <= 1e-10 * (1 + float(linear.abs().max()))
