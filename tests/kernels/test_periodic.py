"""The periodic kernel is its formula, repeats, and is the RBF of points on a circle."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from likely.kernels import RBF, Periodic

RNG = np.random.default_rng(0)
X, OTHER = RNG.normal(size=(6, 2)), RNG.normal(size=(4, 2))
LENGTH, PERIOD = 0.8, 1.7
KERNEL = Periodic(LENGTH, PERIOD)


def test_entries_are_the_formula():
    gap = X[:, None] - OTHER[None]
    expected = np.exp(-2 * (np.sin(math.pi * gap / PERIOD) ** 2).sum(-1) / LENGTH**2)
    np.testing.assert_allclose(KERNEL.matrix(X, OTHER), expected, rtol=1e-9)


def test_each_column_repeats_by_itself():
    np.testing.assert_allclose(
        KERNEL.matrix(X + np.array([PERIOD, -2 * PERIOD]), OTHER), KERNEL.matrix(X, OTHER), rtol=1e-9
    )


def test_it_is_the_rbf_of_points_on_circles():
    def circles(x):
        return np.column_stack([np.cos(2 * math.pi * x / PERIOD), np.sin(2 * math.pi * x / PERIOD)])

    np.testing.assert_allclose(KERNEL.matrix(X, OTHER), RBF(LENGTH).matrix(circles(X), circles(OTHER)), rtol=1e-9)


def test_eigenvalues_of_one_column_are_bessel_functions():
    """On an even grid over one period K is circulant: its eigenvalues / n tend to e^(−z) Iⱼ(z) with z = 1/ℓ²."""
    from scipy.special import ive

    n = 64
    grid = torch.arange(n, dtype=torch.float64)[:, None] * (PERIOD / n)
    eigenvalues = torch.linalg.eigvalsh(KERNEL.matrix(grid)).flip(0) / n
    orders = [ive(0, LENGTH**-2), *np.repeat(ive(np.arange(1, 5), LENGTH**-2), 2)]  # sine and cosine of each order
    np.testing.assert_allclose(eigenvalues[:9], orders, rtol=1e-6)


def test_both_hyperparameters_are_learned_and_return_to_the_spec():
    x = torch.from_numpy(X)
    module = KERNEL.build(x)
    module(x, torch.from_numpy(OTHER)).sum().backward()
    assert float(module.lengthscale.log.grad.abs()) > 0
    assert float(module.period.log.grad.abs()) > 0
    with torch.no_grad():
        module.period.log.fill_(math.log(2.5))
    assert module.spec().period == pytest.approx(2.5, rel=1e-12)
    assert module.spec().lengthscale == LENGTH
