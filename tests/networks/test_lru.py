"""Linear recurrent units: the equation, the ring, that nothing explodes, and what is learned."""

from __future__ import annotations

import math

import pytest
import torch

from likely.core.errors import SpecError
from likely.networks import LRU
from likely.networks.lru import LRUBlock, LRULayer


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(0)


def complex_weights(layer):
    """λ, γ, B and C of the equation."""
    decay = torch.exp(-torch.exp(layer.log_rate) + 1j * layer.phase)
    scale = torch.sqrt(1 - decay.abs() ** 2)
    into = layer.input_weight[0::2] + 1j * layer.input_weight[1::2]
    out = layer.output_weight[:, 0::2] - 1j * layer.output_weight[:, 1::2]
    return decay, scale, into, out


@pytest.mark.parametrize("steps", [1, 7, 60])
def test_the_equation(steps):
    layer = LRULayer(5, 6).double()
    x = torch.randn(3, steps, 5).double()
    decay, scale, into, out = complex_weights(layer)
    h = torch.zeros(3, 3, dtype=torch.complex128)
    wanted = []
    for step in range(steps):
        h = decay * h + scale * (x[:, step].to(into.dtype) @ into.T)
        wanted.append((h @ out.T).real + layer.skip * x[:, step])
    torch.testing.assert_close(layer(x), torch.stack(wanted, 1), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize(("dtype", "near"), [(torch.float32, 1e-5), (torch.float64, 1e-10)])
def test_the_last_step_alone_is_the_last_of_all_and_so_are_its_gradients(dtype, near):
    block = LRUBlock(5, 6).to(dtype)
    x = torch.randn(3, 400, 5, dtype=dtype)
    lengths = torch.tensor([400, 7, 123])
    present = torch.arange(400) < lengths.unsqueeze(1)
    for there, place in ((None, torch.full((3,), 399)), (present, lengths - 1)):
        pair = block.last(x, there), block(x)[torch.arange(3), place]
        short, wanted = ((y, *torch.autograd.grad(y.square().sum(), list(block.parameters()))) for y in pair)
        for own, other in zip(short, wanted, strict=True):
            assert (own - other).abs().max() <= near * max(1, other.abs().max())


def test_a_block_is_a_gated_change_of_its_input():
    block = LRUBlock(5, 6).double()
    x = torch.randn(3, 7, 5).double()
    y = block.memory(torch.nn.functional.layer_norm(x, (5,)))
    torch.testing.assert_close(block(x), x + y * torch.sigmoid(y @ block.gate.weight.T + block.gate.bias))
    torch.testing.assert_close(block.last(x), block(x)[:, -1])


def test_eigenvalues_start_uniform_on_the_ring(seed):
    """|λ|² is uniform: its mean is within 5 standard errors of the middle (false alarm below 1 in 10⁶)."""
    torch.manual_seed(seed)
    least, most = 0.5, 0.9
    decay = LRULayer(2, 40_000, radius=(least, most), angle=1.0).double().decay().detach()
    squared, width = decay.abs() ** 2, most**2 - least**2
    assert bool(((decay.abs() >= least - 1e-6) & (decay.abs() <= most + 1e-6)).all())
    assert bool(((decay.angle() >= 0) & (decay.angle() <= 1)).all())
    error = width / math.sqrt(12 * len(decay))
    assert abs(squared.mean() - (least**2 + most**2) / 2) < 5 * error


@pytest.mark.parametrize("rate", [-200.0, -30.0, -3.0, 0.0, 3.0, 50.0])
def test_no_parameter_makes_it_explode(rate):
    """|λ| ≤ 1 for any ν, with γ the states of bounded inputs stay bounded by √T, and gradients are finite."""
    layer = LRULayer(2, 4)
    layer.log_rate.data.fill_(rate)
    assert layer.decay().abs().max() <= 1
    steps = 2000
    h = layer.states(torch.ones(1, steps, 2))
    assert h.isfinite().all()
    assert all(gradient.isfinite().all() for gradient in torch.autograd.grad(h.sum(), [layer.log_rate, layer.phase]))
    assert h.abs().max() <= layer.input_weight.abs().sum(1).max() * 2 * math.sqrt(steps)


def test_white_signals_keep_their_variance_however_slowly_states_fade():
    for radius in ((0.2, 0.3), (0.9, 0.91), (0.98, 0.985)):
        layer = LRULayer(64, 256, radius=radius)
        layer.skip.data.zero_()
        y = layer(torch.randn(16, 1000, 64))[:, 500:]
        assert 0.7 < y.var() < 1.4


def test_what_is_later_changes_nothing_before():
    net = LRU(6, 4, output="each").build((20, 3), 1).double()
    x = torch.randn(2, 20, 3).double()
    other = x.clone()
    other[:, 11:] = torch.randn(2, 9, 3).double()
    torch.testing.assert_close(net(x)[:, :11], net(other)[:, :11], rtol=0, atol=1e-12)
    assert not torch.equal(net(x)[:, 11], net(other)[:, 11])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"width": 0}, "width must be a positive integer"),
        ({"state": 5}, "state must be a positive even number"),
        ({"radius": (0.9, 1.0)}, r"radius must be two numbers between 0 and 1, the smaller first"),
        ({"radius": 0.9}, "radius must be two numbers"),
        ({"angle": 4.0}, "angle must be above 0 and at most π"),
    ],
)
def test_a_wrong_argument_is_named(arguments, message):
    with pytest.raises(SpecError, match=message):
        LRU(**arguments)


def test_absurd_sizes_are_refused():
    with pytest.raises(
        SpecError, match=r"LRU\(width=1000000\) would have [\d,]+ weights; it must keep them at 100,000,000 or fewer"
    ):
        LRU(10**6).build((5, 3), 1)
