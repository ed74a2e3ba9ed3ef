"""The empirical tangent kernel is J Jᵀ / k of the Jacobian written out, by layers and by blocks."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from likely.kernels.tangent import tangent_kernel

X = torch.randn(5, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
OTHER = torch.randn(4, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(1))


def jacobian(module, x, scale=lambda name, value: 1.0):
    """(rows, outputs, parameters), one backward pass for each number."""
    names, parameters = zip(*module.named_parameters(), strict=True)
    roots = [scale(name, value) ** 0.5 for name, value in zip(names, parameters, strict=True)]
    rows = []
    for row in x:
        outputs = module(row[None]).reshape(-1)
        grads = [torch.autograd.grad(output, parameters, retain_graph=True) for output in outputs]
        rows.append(torch.stack([torch.cat([r * g.flatten() for r, g in zip(roots, gs, strict=True)]) for gs in grads]))
    return torch.stack(rows)


def expected(module, x, other, **options):
    left, right = jacobian(module, x, **options), jacobian(module, other, **options)
    return torch.einsum("nkp,mkp->nm", left, right) / left.shape[1]


MODULES = {
    "dense": lambda: nn.Sequential(nn.Linear(3, 7), nn.Tanh(), nn.Linear(7, 2)),
    "no bias": lambda: nn.Sequential(nn.Linear(3, 7, bias=False), nn.Tanh(), nn.Linear(7, 1)),
    "normalised": lambda: nn.Sequential(nn.Linear(3, 7), nn.LayerNorm(7), nn.Tanh(), nn.Linear(7, 2)),
}


@pytest.mark.parametrize("name", MODULES)
def test_it_is_the_product_of_jacobians(name):
    module = MODULES[name]().double()
    torch.testing.assert_close(tangent_kernel(module, X, OTHER), expected(module, X, OTHER))
    torch.testing.assert_close(tangent_kernel(module, X), expected(module, X, X))


@pytest.mark.parametrize("name", ["dense", "normalised"])
def test_a_scale_weighs_each_parameter(name):
    module = MODULES[name]().double()

    def scale(name, value):
        return 4.0 if name.endswith("bias") else 0.25

    torch.testing.assert_close(tangent_kernel(module, X, OTHER, scale), expected(module, X, OTHER, scale=scale))


def test_the_module_keeps_no_hooks_and_no_gradients():
    module = MODULES["dense"]().double()
    tangent_kernel(module, X)
    assert all(not layer._forward_hooks for layer in module.modules())
    assert all(parameter.grad is None for parameter in module.parameters())
