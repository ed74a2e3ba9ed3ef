"""Layers in one operation are the layers one by one: in value, in gradient, in names, and for who watches them."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from likely.networks.layers import BatchNorm, ChannelNorm
from likely.networks.layers.fused import Fused


def layers():
    return [ChannelNorm("batch", 4), nn.ReLU(), nn.Conv2d(4, 4, 3), ChannelNorm("layer", 4), nn.ReLU(), nn.ReLU()]


@pytest.mark.parametrize("training", [True, False])
def test_fused_layers_are_the_layers_one_by_one(training, seed):
    torch.manual_seed(seed)
    fused, plain = Fused(*layers()).train(training), nn.Sequential(*layers()).train(training)
    plain.load_state_dict(fused.state_dict())
    x = torch.randn(3, 4, 6, 6)
    parts = [
        (out, *torch.autograd.grad(out.square().sum(), net.parameters())) for net in (fused, plain) for out in [net(x)]
    ]
    for own, other in zip(*parts, strict=True):
        assert torch.equal(own, other)
    assert all(torch.equal(own, other) for own, other in zip(fused.buffers(), plain.buffers(), strict=True))


def test_a_norm_and_the_relu_behind_it_are_one_call(monkeypatch):
    called = []
    monkeypatch.setattr(BatchNorm, "forward", lambda layer, x: called.append("norm") or x)
    monkeypatch.setattr(BatchNorm, "rectified", lambda layer, x: called.append("both") or x)
    monkeypatch.setattr(nn.ReLU, "forward", lambda layer, x: called.append("relu") or x)
    Fused(BatchNorm(2), nn.ReLU(), BatchNorm(2), nn.Identity(), nn.ReLU(), BatchNorm(2))(torch.zeros(3, 2))
    assert called == ["both", "norm", "relu", "norm"]


@pytest.mark.parametrize("watched", [0, 1])
def test_who_watches_a_layer_sees_it(watched):
    norm = ChannelNorm("batch", 2)
    net, seen = Fused(norm, nn.ReLU()), []
    (norm.norm, net[1])[watched].register_forward_hook(lambda layer, inputs, out: seen.append(bool((out < 0).any())))
    net(torch.randn(4, 2, 3, 3))
    assert seen == [watched == 0]


def test_an_empty_chain_gives_back_what_it_gets():
    x = torch.randn(2)
    assert Fused()(x) is x
