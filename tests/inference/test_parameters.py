"""Flat vectors and named parameters are two views of the same numbers."""

from __future__ import annotations

import torch
from torch import nn

from likely.inference.parameters import FlatParameters, OverMembers, stacked


def network():
    module = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3), nn.Linear(3, 1))
    module[0].weight.requires_grad_(False)
    return module


def test_named_undoes_flat_for_any_leading_axes():
    flat = FlatParameters.trainable(network())
    for lead in ((), (4,), (2, 5)):
        theta = torch.randn(*lead, flat.size)
        named = flat.named(theta)
        assert {name: value.shape[len(lead) :] for name, value in named.items()} == flat.shapes
        assert torch.equal(flat.flat(named), theta)


def test_the_order_is_the_modules_and_frozen_parameters_are_left_out():
    module = network()
    flat = FlatParameters.trainable(module)
    own = dict(module.named_parameters())
    assert list(flat.shapes) == [name for name in own if name != "0.weight"]
    expected = torch.cat([value.detach().flatten() for name, value in own.items() if name != "0.weight"])
    assert torch.equal(flat.flat(own), expected)
    assert flat.size == len(expected) == len(flat.labels())


def test_one_number_per_parameter_reaches_each_of_its_entries():
    flat = FlatParameters({"a": (2, 2), "b": ()})
    spread = flat.spread_out({"a": 3.0, "b": 7.0}.__getitem__, torch.zeros(1))
    assert spread.tolist() == [3.0, 3.0, 3.0, 3.0, 7.0]


def test_members_share_what_was_not_drawn():
    module = network()
    flat = FlatParameters.trainable(module)
    theta = torch.randn(4, flat.size)
    parameters, buffers = stacked(module, flat.named(theta), 4)
    assert list(parameters) == [name for name, _ in module.named_parameters()]
    assert torch.equal(flat.flat(parameters), theta)
    assert torch.equal(parameters["0.weight"], module[0].weight.expand(4, 3, 2))
    assert torch.equal(buffers["1.running_var"], torch.ones(4, 3))


def test_a_module_without_parameters_has_an_empty_vector():
    flat = FlatParameters.trainable(nn.ReLU())
    assert flat.size == 0
    assert flat.flat({}).shape == (0,)
    assert flat.named(torch.zeros(3, 0)) == {}


def test_what_cannot_be_vectorised_is_asked_member_by_member():
    over_members = OverMembers()
    parameters = {"bias": torch.arange(6.0).reshape(2, 3)}
    assert torch.equal(over_members(lambda own: own["bias"].sum(), parameters), torch.tensor([3.0, 12.0]))
    assert over_members.vectorised
    one_by_one = over_members(lambda own: own["bias"].max() * float(own["bias"][0]), parameters)  # needs a number
    assert torch.equal(one_by_one, torch.tensor([0.0, 15.0]))
    assert not over_members.vectorised
