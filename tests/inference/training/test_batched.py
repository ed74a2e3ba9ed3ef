"""Many members by batched products give what each member gives alone."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from likely.inference.predictor import Predictor
from likely.inference.training.batched import batched
from likely.networks.layers.standardise import Standardise

MEMBERS = 3


def draw(*shape, seed=0):
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def predictor(out=2, **options):
    return Predictor(nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, out)), **options).double()


def units():
    return Standardise(draw(3, seed=4), draw(3, seed=5).abs() + 0.5, None)


MODULES = {
    "plain": predictor,
    "offset, unit and shared": lambda: predictor(shared=draw(1), offset=draw(2), unit=draw(2, seed=1)),
    "positions": lambda: predictor(6, positions=(3,), shared=draw(3, 1)),
    "inputs": lambda: predictor(inputs=units()),
    "flattened": lambda: predictor(flatten=True),
    "linear": lambda: Predictor(nn.Linear(3, 2, bias=False)).double(),
}


@pytest.mark.parametrize("name", MODULES)
def test_members_together_are_members_alone(name):
    modules = []
    for seed in range(MEMBERS):
        torch.manual_seed(seed)
        modules.append(MODULES[name]())
    parameters, buffers = torch.func.stack_module_state(modules)
    x = draw(MEMBERS, 4, 3, 1) if name == "flattened" else draw(MEMBERS, 4, 3)
    together = batched(modules[0])({k: v.detach() for k, v in parameters.items()}, buffers, x)
    alone = torch.stack([module(rows) for module, rows in zip(modules, x, strict=True)])
    torch.testing.assert_close(together, alone.detach())


def test_rows_that_members_share_are_standardised_once():
    module = predictor(inputs=units())
    parameters, buffers = torch.func.stack_module_state([module] * MEMBERS)
    shared = {name: value[:1].expand_as(value) for name, value in buffers.items()}
    x = draw(1, 4, 3).expand(MEMBERS, 4, 3)
    torch.testing.assert_close(batched(module)(parameters, shared, x), batched(module)(parameters, buffers, x.clone()))


def test_other_networks_are_left_to_vmap():
    assert batched(Predictor(nn.Sequential(nn.Linear(3, 4), nn.LayerNorm(4)))) is None
    assert batched(nn.Linear(3, 2)) is None
