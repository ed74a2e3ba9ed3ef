"""The kernels of infinitely wide networks by their closed forms: linear networks, arc-cosine networks, and Mercer."""

from __future__ import annotations

import math

import pytest
import torch

from likely.core.errors import SpecError
from likely.kernels import NNGP
from likely.kernels.infinite import Recursion, dense_layers
from likely.networks import MLP

X = torch.randn(6, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
OTHER = torch.randn(4, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("depth", [0, 1, 3])
def test_a_linear_network_has_a_linear_kernel_and_tangent(depth):
    """With w = 0.7 and no bias K = w^(L+1) x·x′/d, and each of the L + 1 layers adds the same to Θ."""
    recursion = Recursion(depth, "identity", 0.7, 0.0)
    expected = 0.7 ** (depth + 1) * X @ OTHER.T / 3
    torch.testing.assert_close(recursion.covariance(X, OTHER), expected)
    torch.testing.assert_close(recursion.tangent(X, OTHER), (depth + 1) * expected)


def test_one_relu_layer_is_the_arc_cosine_kernel():
    """He's variance 2 keeps the norm: K(x, x′) = 2·‖x‖‖x′‖/(πd)·(sin θ + (π − θ) cos θ)."""
    norms, others = X.norm(dim=1)[:, None], OTHER.norm(dim=1)
    angle = torch.arccos(X @ OTHER.T / (norms * others))
    expected = 2 * norms * others / 3 / math.pi * (angle.sin() + (math.pi - angle) * angle.cos())
    torch.testing.assert_close(Recursion(1, "relu", 2.0, 0.0).covariance(X, OTHER), expected)


@pytest.mark.parametrize("activation", ["relu", "erf", "tanh"])
def test_matrices_are_symmetric_positive_with_the_diagonal_of_each_row(activation):
    recursion = Recursion(2, activation, 1.5, 0.1)
    for tangent in (False, True):
        matrix = recursion.tangent(X) if tangent else recursion.covariance(X)
        assert torch.equal(matrix, matrix.T)
        assert float(torch.linalg.eigvalsh(matrix)[0]) > -1e-10
        torch.testing.assert_close(matrix.diagonal(), recursion.diagonal(X, tangent=tangent), check_stride=False)
        blocks = recursion.tangent(X[:2], X[2:]) if tangent else recursion.covariance(X[:2], X[2:])
        torch.testing.assert_close(matrix[:2, 2:], blocks, rtol=1e-9, atol=1e-12)


def test_only_plain_dense_networks_have_a_known_limit():
    assert dense_layers(NNGP(), MLP(hidden=(8, 8), activation="tanh")) == (2, "tanh")
    with pytest.raises(SpecError, match=r"NNGP: the limit of infinite width .* has dropout; use width=\"finite\""):
        dense_layers(NNGP(), MLP(hidden=(8,), dropout=0.1))
