"""Long short-term memory: open forget gates keep cells for ever, and gradients with them."""

from __future__ import annotations

import torch

from likely.networks import LSTM


def test_cells_start_by_keeping_about_three_quarters_a_step():
    net = LSTM(8).build((50, 2), 1)
    forget = net.layers[0].ahead.bias.split(8)[1]
    torch.testing.assert_close(torch.sigmoid(forget), torch.full((8,), torch.sigmoid(torch.tensor(1.0)).item()))


def test_an_open_forget_gate_carries_gradients_over_two_hundred_steps():
    """With f = 1 and no way through h, ∂c_T/∂c_1 = 1; with f = ½ it is 2^−T."""
    torch.manual_seed(0)
    sizes = []
    for bias in (30.0, 0.0):
        net = LSTM(8).build((200, 2), 1).double()
        ahead = net.layers[0].ahead
        ahead.hidden_weight.data.zero_()
        ahead.input_weight.data[8:16] = 0
        ahead.bias.data[8:16] = bias
        x = (0.1 * torch.randn(4, 200, 2).double()).requires_grad_()
        sizes.append(torch.autograd.grad(net(x).sum(), x)[0].abs().mean((0, 2)))
    kept, lost = sizes
    assert kept[0] > 0.02 * kept[-1]
    assert lost[0] < 1e-30 * lost[-1]
