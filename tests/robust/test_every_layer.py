"""No layer whose bounds are known leaves them: random options and weights, corners of the box, and ascent inside it."""

from __future__ import annotations

import random

import pytest
import torch
from torch import nn

from likely.networks.layers.activation import Erf
from likely.networks.layers.conv import ChannelNorm, Conv
from likely.networks.layers.dropout import Dropout
from likely.networks.layers.memory_order import Flatten
from likely.networks.layers.norm import BatchNorm, WeightNorm
from likely.networks.layers.resample import Downsample, PositionMean
from likely.networks.layers.standardise import Standardise
from likely.robust.layers import LAYERS, Bounded, Scaled, chain_of, known

SERIES, IMAGE = (2, 7), (2, 5, 6)


def limited(pick):
    ends = {"low": -torch.rand(4) - 0.2, "high": torch.rand(4) + 0.2} if pick([0, 1]) else {}
    bend = (torch.rand(4) < 0.5) / 3 if pick([0, 1]) else None
    return Standardise(torch.randn(4), 0.1 + 2 * torch.rand(4), bend, **ends)


def convolution(pick, cls, dims):
    ends = {"padding": pick([0, 1, 3]), "stride": pick([1, 2]), "dilation": pick([1, 2])}
    return cls(2, pick([1, 3]), pick([1, 2, 3]), padding_mode=pick(["zeros", "circular"]), **ends)


MADE = {
    nn.Linear: lambda pick: (nn.Linear(4, pick([1, 3]), bias=pick([True, False])), (4,)),
    WeightNorm: lambda pick: (WeightNorm(4, pick([1, 3])), (4,)),
    Conv: lambda pick: (
        Conv(2, 3, pick([1, 2, 3]), stride=pick([1, 2]), padding=pick(["zero", "valid", "circular"])),
        IMAGE,
    ),
    nn.Conv1d: lambda pick: (convolution(pick, nn.Conv1d, 1), SERIES),
    nn.Conv2d: lambda pick: (convolution(pick, nn.Conv2d, 2), IMAGE),
    nn.LeakyReLU: lambda pick: (nn.LeakyReLU(pick([-2.0, -0.3, 0.1, 1.7])), (4,)),
    nn.ELU: lambda pick: (nn.ELU(pick([-2.0, -0.5, 0.5, 3.0])), (4,)),
    nn.Softplus: lambda pick: (nn.Softplus(pick([0.3, 1.0, 5.0])), (4,)),
    nn.GELU: lambda pick: (nn.GELU(pick(["none", "tanh"])), (4,)),
    nn.Flatten: lambda pick: (nn.Flatten(pick([1, 2])), IMAGE),
    Flatten: lambda pick: (Flatten(), IMAGE),
    nn.Unflatten: lambda pick: (nn.Unflatten(1, (2, 2)), (4,)),
    nn.MaxPool1d: lambda pick: (nn.MaxPool1d(2, pick([2, 3]), pick([0, 1])), pick([SERIES, (7,)])),
    nn.MaxPool2d: lambda pick: (nn.MaxPool2d(pick([2, (1, 2)]), 2, ceil_mode=pick([True, False])), IMAGE),
    nn.AvgPool1d: lambda pick: (nn.AvgPool1d(3, pick([1, 2, 3]), pick([0, 1])), pick([SERIES, (7,)])),
    nn.AvgPool2d: lambda pick: (nn.AvgPool2d(2, pick([1, 2]), divisor_override=pick([None, 1, -3])), IMAGE),
    Downsample: lambda pick: (Downsample(pick(["max", "mean", "stride"]), pick([1, 2, 3])), pick([SERIES, IMAGE])),
    PositionMean: lambda pick: (PositionMean(), pick([SERIES, IMAGE])),
    Standardise: lambda pick: (limited(pick), (4,)),
    BatchNorm: lambda pick: (BatchNorm(4), (4,)),
    nn.BatchNorm1d: lambda pick: (nn.BatchNorm1d(2, affine=pick([True, False])), pick([SERIES, (2,)])),
    nn.BatchNorm2d: lambda pick: (nn.BatchNorm2d(2, affine=pick([True, False])), IMAGE),
    ChannelNorm: lambda pick: (ChannelNorm("batch", 2), IMAGE),
    Scaled: lambda pick: (Scaled(torch.randn(4), torch.randn(4)), (4,)),
}
PLAIN = (nn.Identity, nn.ReLU, nn.SELU, nn.Sigmoid, nn.Tanh, nn.Softsign, Erf, nn.SiLU, nn.Mish, nn.Dropout, Dropout)
MADE |= {cls: lambda pick, cls=cls: (cls(), (4,)) for cls in PLAIN}


def made(cls, pick):
    """A layer with random options and weights, alone or between others, and the shape of its rows."""
    layer, shape = MADE[cls](pick)
    for name, number in (*layer.named_parameters(), *layer.named_buffers()):
        if name.endswith("running_var"):
            number.data.uniform_(0.05, 4)
        elif not isinstance(layer, Standardise) and number.is_floating_point():
            number.data.normal_()
    if pick([True, False]):
        layer = nn.Sequential(layer, nn.LeakyReLU(-0.5), nn.Flatten())
        layer.append(nn.Linear(layer.eval()(torch.randn(2, *shape)).shape[1], 3))
    return nn.Sequential(*chain_of(layer)), shape


def points(net, x, reach):
    """Points of the box around x: random ones, corners, and where ascent and descent of each output lead."""
    yield from (x + reach * (2 * torch.rand_like(x) - 1) for _ in range(10))
    yield from (x + reach * torch.randn_like(x).sign() for _ in range(10))
    for output in range(min(3, net(x).flatten(1).shape[1])):
        for sign in (-1, 1):
            point = x.clone().requires_grad_()
            (gradient,) = torch.autograd.grad(sign * net(point).flatten(1)[:, output].sum(), point)
            yield x + reach * gradient.sign()


def test_every_layer_is_made():
    assert set(MADE) == set(LAYERS)


@pytest.mark.parametrize("cls", MADE, ids=lambda cls: f"{cls.__module__.split('.')[0]} {cls.__name__}")
def test_no_layer_leaves_its_intervals_or_is_longer_than_its_length(cls, seed):
    """A bound holds for every draw: there are no false alarms."""
    pick = random.Random(seed).choice
    torch.manual_seed(seed % 2**31)
    for _ in range(6):
        net, shape = made(cls, pick)
        x, reach = pick([0.5, 3.0]) * torch.randn(2, *shape, dtype=torch.float64), pick([0.01, 0.5, 3.0])
        bounded, length, row = Bounded(x - reach, x + reach), 1.0, x
        for layer in net:
            bounded = known(layer).interval(layer, bounded)
            length *= known(layer).length(layer, row.shape[1:])
            row = layer(row)
        slack = 1e-9 * (1 + max(float(end.abs().max()) for end in bounded))
        for point in points(net, x, reach):
            given = net(point)
            assert bool((given >= bounded.low - slack).all())
            assert bool((given <= bounded.high + slack).all())
            jacobian = torch.autograd.functional.jacobian(net, point[:1])
            steepest = torch.linalg.matrix_norm(jacobian.reshape(-1, point[0].numel()), 2)
            assert float(steepest) <= length * (1 + 1e-9) + 1e-12
