"""Maps that mix columns: permutations, and matrices whose determinant is known from their factors."""

from __future__ import annotations

import torch

from likely.core.random import isolated
from likely.models.generative.transforms import LinearMap, Permutation
from likely.models.generative.transforms.mixing import shuffled


def test_a_linear_map_has_the_determinant_of_its_matrix_at_every_pixel():
    with isolated(0):
        layer = LinearMap((2, 0, 1)).double()
        layer.factors.data.normal_()
        x = torch.randn(2, 4, 5, 3).double()
    with torch.no_grad():
        z, log_det = layer(x)
        matrix = layer(torch.eye(3, dtype=torch.float64))[0].mT
        torch.testing.assert_close(log_det, 20 * torch.linalg.slogdet(matrix).logabsdet)
        torch.testing.assert_close(layer.inverse(z), x)


def test_no_column_is_stretched_without_end():
    layer = LinearMap((0, 1)).double()
    layer.factors.data.fill_diagonal_(1e6)
    assert float(layer(torch.eye(2, dtype=torch.float64))[1].detach()) <= 2 * 5.0


def test_a_permutation_and_its_inverse():
    x = torch.arange(12.0).reshape(2, 6)
    order = shuffled(6, 3)
    assert order == shuffled(6, 3)
    layer = Permutation(order)
    assert torch.equal(layer.inverse(layer(x)[0]), x)
    assert torch.equal(layer(x)[0], x[:, list(order)])
