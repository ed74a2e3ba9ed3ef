"""Dual activations against two-dimensional Gauss-Hermite quadrature, and ReLU's against its value at known angles."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from likely.kernels.duals import dual, own_dual
from likely.networks.layers.activation import activation

Q, OTHER = torch.tensor([0.5, 1.3], dtype=torch.float64), torch.tensor([0.8], dtype=torch.float64)
K = torch.tensor([[0.3], [-0.6]], dtype=torch.float64)


def by_quadrature(function, q, p, k):
    """E[f(u) f(u′)] with u = √q z, u′ = (k/√q) z + √(p − k²/q) z′."""
    z, weight = np.polynomial.hermite_e.hermegauss(120)
    z, weight = torch.from_numpy(z), torch.from_numpy(weight / weight.sum())
    u = math.sqrt(q) * z[:, None]
    v = k / math.sqrt(q) * z[:, None] + math.sqrt(p - k * k / q) * z[None, :]
    return float(torch.einsum("i,j,ij->", weight, weight, function(u) * function(v)))


def derivative(name):
    def at(u):
        point = u.clone().requires_grad_()
        return torch.autograd.grad(activation(name)(point).sum(), point)[0]

    return at


@pytest.mark.parametrize("name", ["identity", "erf", "tanh", "sigmoid", "gelu", "silu"])
def test_values_and_derivatives_are_gaussian_expectations(name):
    value, derivative_value = dual(name, Q, OTHER, K)
    for row in range(2):
        moments = float(Q[row]), float(OTHER[0]), float(K[row, 0])
        assert value[row, 0].item() == pytest.approx(by_quadrature(activation(name), *moments), rel=1e-6)
        assert derivative_value()[row, 0].item() == pytest.approx(by_quadrature(derivative(name), *moments), rel=1e-6)


@pytest.mark.parametrize("angle", [0.0, math.pi / 3, math.pi / 2, math.pi])
def test_relu_is_the_arc_cosine_kernel(angle):
    """κ = (sin θ + (π − θ) cos θ) / 2π and κ̇ = P(u > 0, u′ > 0) = (π − θ) / 2π for variances 1."""
    one = torch.ones(1, dtype=torch.float64)
    value, derivative_value = dual("relu", one, one, torch.full((1, 1), math.cos(angle), dtype=torch.float64))
    expected = (math.sin(angle) + (math.pi - angle) * math.cos(angle)) / (2 * math.pi)
    assert value.item() == pytest.approx(expected, abs=1e-12)
    assert derivative_value().item() == pytest.approx((math.pi - angle) / (2 * math.pi), abs=1e-7)


@pytest.mark.parametrize("name", ["relu", "erf", "tanh"])
def test_own_dual_is_the_diagonal(name):
    value, derivative_value = own_dual(name, Q)
    full, full_derivative = dual(name, Q, Q, torch.sqrt(Q[:, None] * Q))
    torch.testing.assert_close(value, full.diagonal(), rtol=1e-7, atol=0, check_stride=False)
    torch.testing.assert_close(derivative_value(), full_derivative().diagonal(), rtol=1e-6, atol=0, check_stride=False)
