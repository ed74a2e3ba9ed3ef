"""The gated recurrent unit: states are averages, so they stay inside (−1, 1)."""

from __future__ import annotations

import torch

from likely.networks import GRU


def test_states_stay_between_minus_one_and_one():
    torch.manual_seed(0)
    layer = GRU(8).build((50, 2), 1).layers[0]
    assert layer(100 * torch.randn(4, 50, 2)).abs().max() <= 1


def test_a_closed_update_gate_keeps_the_state():
    """z = 1: what the first step wrote is what the last step holds."""
    torch.manual_seed(0)
    layer = GRU(8).build((50, 2), 1).layers[0]
    x = torch.zeros(4, 50, 2)
    x[:, 0] = torch.randn(4, 2)
    layer.ahead.input_weight.data[8:16] = 0
    layer.ahead.hidden_weight.data[8:16] = 0
    layer.ahead.bias.data[8:16] = 5.0
    kept = layer(x)
    first, last = kept[:, 0].norm(), kept[:, -1].norm()
    assert last > 0.5 * first
    layer.ahead.bias.data[8:16] = 100.0
    assert layer(x).abs().max() == 0  # nothing is written either
