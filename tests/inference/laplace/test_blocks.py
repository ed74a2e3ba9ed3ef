"""Each block is a root of H⁻¹: J R Rᵀ Jᵀ = J H⁻¹ Jᵀ, with the log-determinant and rank of H, and draws have its law."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from likely.inference.laplace.blocks import dense, diagonal, layer

NAMES, SHAPES = ("weight", "bias"), {"weight": torch.Size([3, 2]), "bias": torch.Size([3])}


def draw(*shape, seed=0):
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def jacobian(rows=4):
    return {name: draw(rows, *shape, seed=7) for name, shape in SHAPES.items()}


def flat(parts):
    return torch.cat([parts[name].flatten(1) for name in NAMES], 1)


def spd(size, seed=0):
    half = draw(size, size + 2, seed=seed)
    return half @ half.T


def by_layer(matrix):
    """(A ⊗ G) of [W, b] (3, 3), row-major, in the order of the flat parameters: W (3, 2) and then b (3,)."""
    place = np.arange(9).reshape(3, 3)
    order = np.concatenate([place[:, :2].ravel(), place[:, 2]])
    return matrix[np.ix_(order, order)]


def test_a_dense_block_is_the_inverse():
    hessian = spd(9)
    block = dense(NAMES, hessian)
    root = block.times(jacobian())
    torch.testing.assert_close(root @ root.T, flat(jacobian()) @ torch.linalg.inv(hessian) @ flat(jacobian()).T)
    assert block.log_det == pytest.approx(float(torch.logdet(hessian)), rel=1e-9)
    assert (block.rank, block.size) == (9, 9)


def test_directions_without_curvature_are_left_out():
    """What is left is a generalised inverse, H Σ H = H, of the rank of H."""
    half = draw(9, 4)
    block = dense(NAMES, half @ half.T)
    hessian, root = half @ half.T, block.tensors["root"]
    torch.testing.assert_close(hessian @ root @ root.T @ hessian, hessian)
    assert root.shape == (9, 4)
    assert block.rank == 4


def test_a_diagonal_block_divides_by_the_curvature():
    curvature = draw(9).square()
    curvature[4] = 0.0
    block = diagonal(NAMES, curvature)
    root = block.times(jacobian())
    inverse = torch.where(curvature > 0, 1 / curvature, 0.0)
    torch.testing.assert_close(root @ root.T, (flat(jacobian()) * inverse) @ flat(jacobian()).T)
    assert block.rank == 8
    assert block.log_det == pytest.approx(float(curvature[curvature > 0].log().sum()), rel=1e-12)


def test_a_layer_is_the_inverse_of_its_kronecker_sum():
    """H = G ⊗ A + I ⊗ P over [W, b] row by row."""
    inputs, outputs, prior = spd(3, seed=1), spd(3, seed=2), torch.tensor([0.5, 0.5, 2.0], dtype=torch.float64)
    hessian = np.kron(outputs.numpy(), inputs.numpy()) + np.kron(np.eye(3), np.diag(prior))
    block = layer(NAMES, inputs, outputs, prior)
    root = block.times(jacobian())
    J = flat(jacobian()).numpy()
    np.testing.assert_allclose(root @ root.T, J @ np.linalg.inv(by_layer(hessian)) @ J.T, rtol=1e-8)
    assert block.log_det == pytest.approx(np.linalg.slogdet(hessian)[1], rel=1e-8)


@pytest.mark.parametrize("kind", ["dense", "diagonal", "layer"])
def test_draws_have_the_covariance_of_the_root(kind, seed):
    """20,000 draws: each entry of J Cov Jᵀ, in units of its deviations, is off by less than 6/√20,000."""
    blocks = {
        "dense": lambda: dense(NAMES, spd(9)),
        "diagonal": lambda: diagonal(NAMES, draw(9).square() + 0.1),
        "layer": lambda: layer(NAMES, spd(3, seed=1), spd(3, seed=2), torch.ones(3, dtype=torch.float64)),
    }
    block = blocks[kind]()
    assert block.fits(SHAPES)
    assert not block.fits({"weight": torch.Size([3, 3]), "bias": torch.Size([3])})
    moved = flat(block.moved(SHAPES, 20_000, torch.Generator().manual_seed(seed)))
    root = block.times(jacobian())
    expected, projected = root @ root.T, moved @ flat(jacobian()).T
    deviation = expected.diagonal().sqrt()
    error = (projected.T @ projected / 20_000 - expected) / torch.outer(deviation, deviation)
    assert float(error.abs().max()) < 6 * 2**0.5 / 20_000**0.5
