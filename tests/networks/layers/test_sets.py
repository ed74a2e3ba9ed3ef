"""Equivariant layers: the elements' order is followed, and elements that are not there have no part."""

from __future__ import annotations

import pytest
import torch

from likely.networks.layers.sets import POOLS, EquivariantLinear

X = torch.randn(2, 4, 3, generator=torch.Generator().manual_seed(0))
PRESENT = torch.tensor([[True, True, True, True], [True, True, False, False]])


@pytest.mark.parametrize("pool", POOLS)
def test_it_is_the_formula(pool):
    """xₘ W + pool(x) V + b."""
    layer = EquivariantLinear(3, 5, pool)
    together = {"sum": X.sum(1), "mean": X.mean(1), "max": X.amax(1)}[pool]
    expected = X @ layer.own.weight.T + layer.own.bias + (together @ layer.others.weight.T)[:, None]
    torch.testing.assert_close(layer(X), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("pool", POOLS)
def test_the_order_of_elements_is_followed(pool):
    layer, order = EquivariantLinear(3, 5, pool), torch.tensor([2, 0, 3, 1])
    torch.testing.assert_close(layer(X[:, order]), layer(X)[:, order], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("pool", POOLS)
def test_elements_that_are_not_there_have_no_part(pool):
    layer = EquivariantLinear(3, 5, pool)
    changed = torch.where(PRESENT[..., None], X, 1e6)
    torch.testing.assert_close(layer(changed, PRESENT)[1, :2], layer(X[1:, :2])[0], rtol=1e-4, atol=1e-5)
