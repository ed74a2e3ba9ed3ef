"""Linear is W x + b on the last axis, and starts at zero."""

from __future__ import annotations

import pytest
import torch

from likely.networks import Linear


@pytest.mark.parametrize("bias", [True, False])
def test_it_starts_at_zero_and_is_an_affine_map(bias):
    layer = Linear(bias=bias).build((3,), 2)
    assert all(float(value.detach().abs().max()) == 0.0 for value in layer.parameters())
    assert sum(value.numel() for value in layer.parameters()) == 6 + 2 * bias
    torch.nn.init.normal_(layer.weight)
    x = torch.randn(5, 3)
    expected = x @ layer.weight.T + (layer.bias if bias else 0.0)
    torch.testing.assert_close(layer(x), expected)


def test_positions_share_the_weights():
    layer = Linear().build((4, 3), 2)
    torch.nn.init.normal_(layer.weight)
    x = torch.randn(5, 4, 3)
    torch.testing.assert_close(layer(x), torch.stack([layer(x[:, t]) for t in range(4)], 1))


def test_a_condition_has_weights_of_its_own():
    """W [x, c] + b = Wₓ x + W_c c + b."""
    module = Linear().build((3,), 1, (2,))
    (weight,) = (value for name, value in module.named_parameters() if name.endswith("weight"))
    torch.nn.init.normal_(weight)
    x, condition = torch.randn(5, 3), torch.randn(5, 2)
    expected = x @ weight[:, :3].T + condition @ weight[:, 3:].T
    torch.testing.assert_close(module(x, condition), expected)
