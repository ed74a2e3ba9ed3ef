"""Normalisation: what is normalised over what, in training and after."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from likely.core.errors import SpecError
from likely.networks.layers import BatchNorm, ReferenceBatch, VirtualBatchNorm, WeightNorm, norm

EPS = 1e-5


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(0)
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def test_batch_norm_standardises_each_feature_over_all_rows_and_positions():
    x = 3 + 2 * torch.randn(10, 4, 5)
    out = BatchNorm(5)(x)
    mean, variance = x.mean((0, 1)), x.var((0, 1), correction=0)
    torch.testing.assert_close(out, (x - mean) / (variance + EPS).sqrt())


def test_batch_norm_equals_torch_on_its_layout():
    """(n, positions, features) here is (n, features, positions) there."""
    x = torch.randn(10, 4, 5)
    ours, theirs = BatchNorm(5), nn.BatchNorm1d(5)
    torch.testing.assert_close(ours(x), theirs(x.transpose(1, 2)).transpose(1, 2))
    torch.testing.assert_close(ours.running_var, theirs.running_var)


def test_batch_norm_evaluates_with_running_averages():
    layer = BatchNorm(3)
    mean, variance = torch.zeros(3), torch.ones(3)
    for _ in range(5):
        x = 2 + torch.randn(20, 3)
        layer(x)
        mean = 0.9 * mean + 0.1 * x.mean(0)
        variance = 0.9 * variance + 0.1 * x.var(0)
    x = torch.randn(7, 3)
    expected = (x - mean) / (variance + EPS).sqrt()
    layer.eval()
    torch.testing.assert_close(layer(x), expected)
    torch.testing.assert_close(layer(x[:1]), expected[:1])  # a row does not depend on its neighbours
    assert not torch.allclose(layer.train()(x), expected)


def test_a_single_row_is_normalised_by_the_running_averages():
    layer = BatchNorm(3)
    layer(torch.randn(20, 3))
    before = layer.running_mean.clone()
    x = torch.randn(1, 3)
    torch.testing.assert_close(layer(x), (x - before) / (layer.running_var + EPS).sqrt())
    assert torch.equal(layer.running_mean, before)


def test_layer_norm_standardises_each_row_by_itself_in_training_and_after():
    layer = norm("layer", 6)
    x = 3 + 2 * torch.randn(10, 6)
    expected = (x - x.mean(1, keepdim=True)) / (x.var(1, correction=0, keepdim=True) + EPS).sqrt()
    torch.testing.assert_close(layer(x), expected)
    torch.testing.assert_close(layer(x[3:4]), expected[3:4])
    torch.testing.assert_close(layer.eval()(x), expected)


def test_weight_norm_gradients():
    """∂E/∂g = ∇_w E·v/‖v‖ and ∇_v E = g/‖v‖ (I − ww^T/‖w‖²) ∇_w E."""
    layer = WeightNorm(4, 3)
    with torch.no_grad():
        layer.gain.mul_(1.7)
    x, y = torch.randn(10, 4), torch.randn(10, 3)
    (layer(x).tanh() - y).square().sum().backward()

    w = layer.weight.detach().requires_grad_()
    ((x @ w.T + layer.bias.detach()).tanh() - y).square().sum().backward()
    for unit in range(3):
        v, g, by_w = layer.direction[unit].detach(), layer.gain[unit].detach(), w.grad[unit]
        direction = v / v.norm()
        torch.testing.assert_close(layer.gain.grad[unit], by_w @ direction)
        row = w[unit].detach()
        projection = torch.eye(4) - torch.outer(row, row) / row.square().sum()
        torch.testing.assert_close(layer.direction.grad[unit], g / v.norm() * projection @ by_w)


def test_weight_norm_lengths_are_the_gains_alone():
    layer = WeightNorm(4, 3)
    x = torch.randn(5, 4)
    before = layer(x)
    torch.testing.assert_close(layer.weight.norm(dim=1), layer.gain)
    with torch.no_grad():
        layer.direction.mul_(7)
    torch.testing.assert_close(layer(x), before)


def test_weight_norm_starts_at_a_given_weight():
    layer, weight = WeightNorm(4, 3, bias=False), torch.randn(3, 4)
    layer.start_at(weight)
    torch.testing.assert_close(layer.weight, weight)
    before = layer.weight.detach()
    layer.reset_parameters()
    assert not torch.allclose(layer.weight, before)


def test_virtual_batch_norm_uses_the_reference_and_the_row_itself():
    reference, x = 2 + torch.randn(8, 3), torch.randn(5, 3)
    out = VirtualBatchNorm(3, reference_rows=8)(torch.cat([reference, x]))
    standard = (reference - reference.mean(0)) / (reference.var(0, correction=0) + EPS).sqrt()
    torch.testing.assert_close(out[:8], standard)
    for index, row in enumerate(x):
        among = torch.cat([reference, row.unsqueeze(0)])
        expected = (row - among.mean(0)) / (among.var(0, correction=0) + EPS).sqrt()
        torch.testing.assert_close(out[8 + index], expected)


def test_virtual_batch_norm_is_the_same_in_training_and_after():
    network = nn.Sequential(nn.Linear(3, 4), VirtualBatchNorm(4, 8), nn.Tanh(), nn.Linear(4, 2))
    net = ReferenceBatch(network, 3, rows=8)
    net(torch.randn(20, 3))
    x = torch.randn(6, 3)
    in_training = net(x)
    torch.testing.assert_close(net.eval()(x), in_training)
    torch.testing.assert_close(net(x[2:3]), in_training[2:3])


def test_the_reference_is_chosen_once_and_repeats_a_small_batch():
    net = ReferenceBatch(nn.Identity(), 2, rows=5).eval()
    drawn = net.reference.clone()
    net(torch.randn(4, 2))
    assert torch.equal(net.reference, drawn)  # evaluation does not choose
    first = torch.randn(3, 2)
    net.train()(first)
    assert torch.equal(net.reference, first[[0, 1, 2, 0, 1]])
    net(torch.randn(9, 2))
    assert torch.equal(net.reference, first[[0, 1, 2, 0, 1]])
    net.reset_parameters()
    assert not net.chosen


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(SpecError, match="Unknown norm of signals 'group'; known: batch, layer, virtual"):
        norm("group", 3)
