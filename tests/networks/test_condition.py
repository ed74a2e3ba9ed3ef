"""Networks of x and a condition: nothing changes without one, and with one it reaches every answer."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.func import functional_call, stack_module_state

from likely.core.errors import SpecError
from likely.data.graph import Graph, Graphs
from likely.data.rows import Ragged
from likely.networks import (
    GCN,
    GRU,
    LRU,
    LSTM,
    MLP,
    ConvNet,
    DeepSets,
    Linear,
    MessagePassing,
    ResNet,
    Transformer,
    UNet,
    ViT,
    as_network,
)

ROWS, WIDTH = 4, 3
CAUSAL = Transformer(8, 2, 1, causal=True, output="last")
NETWORKS = {
    "linear": (Linear(), (5,)),
    "mlp": (MLP((4,), activation="tanh"), (5,)),
    "steps of an mlp": (MLP((4,), activation="tanh"), (6, 2)),
    "conv": (ConvNet((2,), hidden=(), activation="tanh"), (1, 8, 8)),
    "conv of numbers": (ConvNet((2,), hidden=(), activation="tanh"), (8,)),
    "res": (ResNet((2,), blocks=1), (2, 8, 8)),
    "unet": (UNet((2, 4), output="mean"), (2, 8, 8)),
    "vit": (ViT(patch=4, width=8, heads=2, layers=1), (8, 8)),
    "gru": (GRU(4), (6, 2)),
    "gru of numbers": (GRU(4), (6,)),
    "lru": (LRU(4, 4, layers=1), (6, 2)),
    "transformer": (Transformer(8, 2, 1), (6, 2)),
    "sets": (DeepSets((4,), activation="tanh"), (6, 2)),
    "nodes": (GCN((4,), level="graph", activation="tanh"), (3,)),
}


def built(name, condition=(WIDTH,)):
    torch.manual_seed(0)
    network, shape = NETWORKS[name]
    return network.build(shape, 2, condition).eval(), torch.randn(ROWS, *shape)


@pytest.mark.parametrize("name", NETWORKS)
def test_gradients_reach_the_condition_of_each_row(name):
    module, x = built(name)
    for value in module.parameters():
        value.data += 0.1 * torch.randn_like(value)  # a linear network starts at 0
    condition = torch.randn(ROWS, WIDTH, requires_grad=True)
    out = module(x, condition)
    assert out.shape[0] == ROWS
    assert out.shape[-1] == 2
    (gradient,) = torch.autograd.grad(out[0].sum(), condition)
    assert bool(gradient[0].abs().sum() > 0)
    assert bool((gradient[1:] == 0).all())  # of no other row


@pytest.mark.parametrize("name", NETWORKS)
def test_without_a_condition_nothing_changes(name):
    network, shape = NETWORKS[name]
    torch.manual_seed(0)
    plain = network.build(shape, 2)
    torch.manual_seed(0)
    again = network.build(shape, 2, None)
    assert repr(plain) == repr(again)
    for one, other in zip(plain.parameters(), again.parameters(), strict=True):
        assert torch.equal(one, other)


@pytest.mark.parametrize("name", ["mlp", "conv", "gru", "transformer", "sets", "nodes"])
def test_members_are_one_program(name):
    modules = [built(name)[0] for _ in range(3)]
    x, condition = torch.randn(ROWS, *NETWORKS[name][1]), torch.randn(ROWS, WIDTH)
    parameters, buffers = stack_module_state(modules)
    out = torch.vmap(lambda p, b: functional_call(modules[0], (p, b), (x, condition)))(parameters, buffers)
    torch.testing.assert_close(out[1], modules[1](x, condition), rtol=1e-4, atol=1e-5)


def test_images_join_channel_by_channel():
    module, x = built("conv", (2, 8, 8))
    condition = torch.randn(ROWS, 2, 8, 8, requires_grad=True)
    (gradient,) = torch.autograd.grad(module(x, condition).sum(), condition)
    assert gradient.shape == condition.shape
    assert module.network.features[0].weight.shape[1] == 3


@pytest.mark.parametrize("network", [GRU(4), LSTM(4, layers=2), LRU(4, 4), CAUSAL])
@pytest.mark.parametrize("tokens", [None, 5])
@torch.no_grad()
def test_conditions_go_step_by_step(network, tokens):
    torch.manual_seed(0)
    network = network.replace(tokens=tokens)
    module = network.build((6,) if tokens else (6, 2), 2, (WIDTH,)).eval()
    x = torch.randint(5, (ROWS, 6)) if tokens else torch.randn(ROWS, 6, 2)
    condition, state = torch.randn(ROWS, WIDTH), module.start(ROWS)
    for step in x.unbind(1):
        eta, state = module.step(step, state, condition)
    torch.testing.assert_close(eta, module(x, condition), rtol=1e-5, atol=1e-5)
    assert not torch.allclose(eta, module(x, condition + 1))


@torch.no_grad()
def test_rows_of_any_length_have_a_condition_each():
    torch.manual_seed(0)
    condition = torch.randn(2, WIDTH)
    module = GRU(4).build((3, 2), 1, (WIDTH,))
    pieces = [torch.randn(3, 2), torch.randn(1, 2)]
    together = module(Ragged.of(pieces), condition)
    alone = torch.cat([module(piece.unsqueeze(0), condition[i : i + 1]) for i, piece in enumerate(pieces)])
    torch.testing.assert_close(together, alone, rtol=1e-5, atol=1e-6)
    graphs = [Graph(torch.randn(n, 2), [[0], [1]], torch.randn(1, 1)) for n in (2, 3)]
    module = MessagePassing((4,), level="graph").build((2, 1), 1, (WIDTH,)).eval()
    together = module(Graphs.of(graphs), condition)
    alone = torch.cat([module(Graphs.of([graph]), condition[i : i + 1]) for i, graph in enumerate(graphs)])
    torch.testing.assert_close(together, alone, rtol=1e-5, atol=1e-6)


class Sum(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(1))

    def forward(self, x, condition):
        return self.weight * (x.sum(1, keepdim=True) + condition.sum(1, keepdim=True))


def test_a_module_of_ones_own_takes_the_condition_itself():
    x, condition = torch.ones(2, 3), torch.ones(2, 4)
    for network in (Sum(), lambda in_shape, out_features, condition: Sum()):
        assert as_network(network).build((3,), 1, (4,))(x, condition).tolist() == [[7.0], [7.0]]
    with pytest.raises(SpecError, match="must take \\(in_shape, out_features, condition\\)"):
        as_network(lambda in_shape, out_features: Sum()).build((3,), 1, (4,))


def test_what_does_not_fit_is_said():
    with pytest.raises(SpecError, match="condition=10 must be the shape of one row's condition"):
        MLP().build((3,), 1, 10)
    with pytest.raises(ValueError, match="condition has 3 rows, but x has 2"):
        MLP((2,)).build((3,), 1, (1,))(torch.zeros(2, 3), torch.zeros(3, 1))
    with pytest.raises(SpecError, match="Sequential does not go step by step"):
        MLP((2,)).build((3,), 1, (1,)).start(2)
