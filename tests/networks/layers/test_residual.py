"""Skips: what is passed on, and what a layer of zeros does."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from likely.networks import MLP
from likely.networks.layers import ACTIVATIONS, Concatenate, Residual, ZeroResidual, activation


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(0)


def zeros(module: nn.Module) -> nn.Module:
    for parameter in module.parameters():
        nn.init.zeros_(parameter)
    return module


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_zero_residual_with_zero_weights_is_the_identity(name):
    """F[0, 0] = id, for every activation."""
    x = torch.randn(5, 4)
    layer = ZeroResidual(zeros(nn.Linear(4, 4)), activation(name), 4, 4)
    torch.testing.assert_close(layer(x), x, rtol=0, atol=1e-6)


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_zero_residual_is_its_equation(name):
    x, affine, phi = torch.randn(5, 4), nn.Linear(4, 4), activation(name)
    layer = ZeroResidual(affine, phi, 4, 4)
    torch.testing.assert_close(layer(x), x + phi(x @ affine.weight.T + affine.bias) - phi(torch.zeros(())))


@pytest.mark.parametrize("residual", ["add", "zero", "preactivation"])
def test_hidden_layers_of_zeros_pass_everything_on(residual):
    """Then only the last layer acts (after the first map and the activation, in a pre-activation network)."""
    net = MLP((4, 4, 4), activation="tanh", residual=residual).build((4,), 2)
    zeros(net[1 if residual == "preactivation" else 0 : 3])
    x = torch.randn(5, 4)
    expected = net[-1](net[0](x).tanh() if residual == "preactivation" else x)
    torch.testing.assert_close(net(x), expected)


def test_where_widths_differ_the_skip_is_a_projection():
    x, block = torch.randn(5, 3), Residual(nn.Linear(3, 4), 3, 4)
    torch.testing.assert_close(block(x), x @ block.skip.weight.T + block.branch(x))
    assert type(Residual(nn.Linear(3, 3), 3, 3).skip) is nn.Identity


def test_a_preactivation_layer_is_its_equation():
    net = MLP((4, 4), activation="relu", residual="preactivation").build((3,), 2)
    x = torch.randn(5, 3)
    first, second, last = net[0], net[1].branch[-1], net[-1]
    h = first(x)
    h = h + second(h.relu())
    torch.testing.assert_close(net(x), last(h.relu()))


def test_dense_layers_see_all_that_came_before():
    x, f = torch.randn(5, 3), nn.Linear(3, 2)
    torch.testing.assert_close(Concatenate(f)(x), torch.cat([x, f(x)], -1))
    net = MLP((4, 5), residual="dense").build((3,), 2)
    assert [net[0].branch[0].in_features, net[1].branch[0].in_features, net[2].in_features] == [3, 7, 12]


def test_dropout_acts_on_the_change_and_never_on_the_skip():
    x = torch.ones(1, 1000)
    layer = ZeroResidual(zeros(nn.Linear(1000, 1000)), nn.Sigmoid(), 1000, 1000, dropout=0.9)
    torch.testing.assert_close(layer(x), x)
