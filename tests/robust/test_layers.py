"""Bounds of single layers, beside the Jacobian and a fine grid, also for the choices that few people make."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from likely.core.errors import SpecError
from likely.networks.layers.conv import ChannelNorm
from likely.robust import PGD, attack, certify_by_intervals, lipschitz
from likely.robust.layers import Bounded, chain_of, known

POOLS = [
    (nn.AvgPool2d(2, ceil_mode=True), (1, 3, 3)),
    (nn.AvgPool2d(3, 3, padding=1, count_include_pad=False), (1, 3, 3)),
    (nn.AvgPool2d(2, divisor_override=1), (2, 4, 4)),
    (nn.AvgPool2d(2, divisor_override=-3), (2, 4, 4)),
    (nn.AvgPool1d(3, 3, padding=1), (2, 7)),
]
OVERLAPPING = [(nn.AvgPool2d(3, 2), (2, 7, 7)), (nn.AvgPool1d(3, 1, padding=1), (2, 7))]
WITHOUT_CHANNELS = [(nn.AvgPool1d(3, 2), (7,)), (nn.MaxPool1d(2), (6,)), (nn.MaxPool2d((1, 2)), (4, 4))]
CONVOLUTIONS = [
    (nn.Conv2d(1, 1, 3, padding=3, padding_mode="circular"), (1, 4, 4)),
    (nn.Conv2d(2, 3, 5, padding=2, padding_mode="circular"), (2, 3, 3)),
    (nn.Conv1d(2, 3, 3, padding=3, dilation=2, padding_mode="circular"), (2, 4)),
    (nn.Conv2d(2, 3, 3, stride=2, padding=(1, 3), padding_mode="circular"), (2, 5, 4)),
    (nn.Conv2d(2, 3, 3, padding="same", padding_mode="circular"), (2, 5, 4)),
    (nn.Conv2d(2, 3, 3, padding=4), (2, 5, 4)),
]


def exact_length(layer, shape):
    """The largest singular value of the Jacobian."""
    whole = torch.autograd.functional.jacobian(layer, torch.zeros(1, *shape, dtype=torch.float64))
    return torch.linalg.matrix_norm(whole.reshape(-1, torch.Size(shape).numel()), 2).item()


def length(layer, shape):
    (own,) = chain_of(layer)
    return known(own).length(own, torch.Size(shape)), exact_length(own, shape)


@pytest.mark.parametrize(("layer", "shape"), POOLS, ids=str)
def test_mean_pools_without_overlap_have_their_exact_length(layer, shape):
    bound, exact = length(layer, shape)
    assert bound == pytest.approx(exact)


@pytest.mark.parametrize(("layer", "shape"), OVERLAPPING + WITHOUT_CHANNELS + CONVOLUTIONS, ids=str)
def test_no_length_is_below_the_largest_singular_value(layer, shape, seed):
    torch.manual_seed(seed % 2**31)
    for weight in layer.parameters():
        nn.init.normal_(weight)
    bound, exact = length(layer, shape)
    assert exact <= bound * (1 + 1e-9)
    assert bound < 2 * exact


def test_windows_that_the_edge_cuts_off_count_in_a_whole_network():
    """The corner of a 3 × 3 image is a window by itself: a change of it arrives unchanged at a weight of √2."""
    net = nn.Sequential(nn.AvgPool2d(2, ceil_mode=True), nn.Flatten(), nn.Linear(4, 2, bias=False))
    net[2].weight.data = torch.tensor([[0.0, 0.0, 0.0, 1.0], [0.0, 0.0, 0.0, -1.0]])
    assert lipschitz(net, (1, 3, 3)) == pytest.approx(2**0.5)


@pytest.mark.parametrize(
    "layer",
    [
        nn.LeakyReLU(-1.0),
        nn.LeakyReLU(-0.1, inplace=True),
        nn.LeakyReLU(2.0),
        nn.ELU(-1.5),
        nn.ELU(2.0, inplace=True),
        nn.GELU(approximate="tanh"),
        nn.SiLU(inplace=True),
    ],
    ids=str,
)
def test_intervals_hold_also_where_a_function_falls(layer):
    (own,) = chain_of(layer)
    starts = torch.linspace(-4, 3, 50, dtype=torch.float64)
    for width in (0.1, 1.0, 3.0):
        low, high = known(own).interval(own, Bounded(starts.clone(), starts + width))
        values = own(starts.unsqueeze(1) + width * torch.linspace(0, 1, 1001, dtype=torch.float64))
        assert bool((low <= values.amin(1) + 1e-12).all())
        assert bool((high >= values.amax(1) - 1e-12).all())
        torch.testing.assert_close(low, values.amin(1), rtol=0, atol=1e-2)  # the grid may miss the turn
        torch.testing.assert_close(high, values.amax(1), rtol=0, atol=1e-2)
    slopes = torch.diff(own(torch.linspace(-8, 8, 16_001, dtype=torch.float64))).abs() / 1e-3
    assert float(slopes.max()) <= known(own).length(own, torch.Size([1])) * (1 + 1e-9)


@pytest.mark.parametrize("activation", [nn.LeakyReLU(-1.0), nn.ELU(-1.0)], ids=str)
def test_no_attack_wins_inside_an_interval_of_a_falling_activation(activation, seed):
    torch.manual_seed(seed % 2**31)
    net = nn.Sequential(nn.Linear(3, 8), activation, nn.Linear(8, 2)).double().eval()
    x = np.random.default_rng(seed).normal(size=(20, 3))
    found = certify_by_intervals(net, x)
    for row, label, radius in zip(x, found.predicted, found.radius, strict=True):
        if radius > 0:
            assert not attack(net, row[None], [label], PGD(0.999 * radius, steps=10, restarts=3)).success.any()


def test_what_would_not_hold_is_refused_by_name():
    hooked = nn.Linear(2, 2)
    hooked.register_forward_hook(lambda module, args, output: 2 * output)
    for layer, shape, words in (
        (hooked, (2,), "Bounds of a Linear with hooks are not known"),
        (nn.Softplus(threshold=0), (2,), "it jumps"),
        (nn.BatchNorm1d(2, track_running_stats=False), (2,), "without running statistics"),
        (nn.MaxPool1d(3, 1), (2, 4), "its windows overlap"),
        (nn.MaxPool1d(3, 1), (4,), "its windows overlap"),  # torch takes such rows for the channels of one series
        (nn.MaxPool2d((2, 1), 1), (4, 4), "its windows overlap"),
        (ChannelNorm("layer", 2), (2, 2, 2), "Bounds of a network with a LayerNorm are not known"),
        (ChannelNorm("group", 2), (2, 2, 2), "Bounds of a network with a GroupNorm are not known"),
    ):
        with pytest.raises(SpecError, match=words):
            lipschitz(nn.Sequential(layer), shape)
