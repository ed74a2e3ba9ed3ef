"""Gradients come back in the order of memory that the layers before went forward in, with their values untouched."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from likely.networks import ConvNet, ResNet
from likely.networks.layers.memory_order import Flatten, OrderedGradient


def images(last, generator, shape=(2, 3, 4, 5)):
    x = torch.randn(shape, generator=generator, dtype=torch.float64)
    return x.contiguous(memory_format=torch.channels_last) if last else x


@pytest.mark.parametrize("last", [True, False])
@pytest.mark.parametrize("given", [True, False])
def test_the_gradient_has_the_order_that_was_asked_for(last, given, seed):
    generator = torch.Generator().manual_seed(seed)
    x, score = images(False, generator).requires_grad_(), images(given, generator)
    (gradient,) = torch.autograd.grad((OrderedGradient.apply(x, last) * score).sum(), x)
    assert torch.equal(gradient, score)
    assert gradient.is_contiguous(memory_format=torch.channels_last if last else torch.contiguous_format)


@pytest.mark.parametrize("last", [True, False])
def test_flattening_gives_gradients_the_order_of_its_input(last, seed):
    generator = torch.Generator().manual_seed(seed)
    x = images(last, generator).requires_grad_()
    out = Flatten()(x)
    assert torch.equal(out, x.flatten(1))
    (gradient,) = torch.autograd.grad((out * out.detach()).sum(), x)
    assert torch.equal(gradient, x)
    assert gradient.stride() == x.stride()


@pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated")
def test_series_and_stacked_members_are_flattened_too(seed):
    """Derivatives forward, backward, and of many members at once are those of torch's own layer."""
    generator = torch.Generator().manual_seed(seed)
    ours, theirs = Flatten(), nn.Flatten()
    series = torch.randn(2, 3, 4, generator=generator)
    assert torch.equal(ours(series), theirs(series))
    for last in (True, False):
        x, tangent = images(last, generator), images(last, generator)
        for layer in (ours, theirs):
            torch.testing.assert_close(torch.func.jvp(layer, (x,), (tangent,))[1], tangent.flatten(1))
        members = torch.stack([x, 2 * x])
        gradients = [
            torch.vmap(torch.func.grad(lambda x, of=of: of(x).square().sum()))(members) for of in (ours, theirs)
        ]
        torch.testing.assert_close(*gradients)
        assert torch.autograd.gradgradcheck(ours, (x[:1].requires_grad_(),))


@pytest.mark.parametrize("spec", [ConvNet((16, 32)), ConvNet((16,), pool="mean"), ResNet((16, 32), 1)], ids=repr)
def test_no_layer_of_a_convolutional_network_meets_two_orders(spec, seed):
    """The gradient of each activation's output lies in memory as the output does."""
    generator = torch.Generator().manual_seed(seed)
    network = spec.build((1, 12, 12), 3)
    met = []

    def look(layer, _, out):
        strides = out.stride()
        out.register_hook(lambda gradient: met.append(gradient.stride() == strides))

    for layer in network.features:
        layer.register_forward_hook(look)
    network(torch.randn(4, 1, 12, 12, generator=generator)).square().sum().backward()
    assert met == [True] * len(network.features)
