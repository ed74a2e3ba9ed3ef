"""Masked networks: what each output may depend on, and the same outputs column by column."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

from likely.core.errors import SpecError
from likely.networks import MLP, Linear
from likely.networks.layers.masked import MaskedMLP, hidden_degrees, random_orders
from likely.networks.layers.walk import Walk
from likely.networks.masked import masked_network

INPUTS, OUTPUTS = [0, 0, 1, 2, 2, 2, 3], [3, 0, 1, 1, 2, 3, 2]
ORDERS = ((0, 1, 2, 3), (2, 0, 3, 1))
KINDS = list(itertools.product([(), (12,), (9, 9), (7, 12, 5)], [None, "add", "dense"], [0, 2]))


def network(hidden, residual, condition, orders=ORDERS):
    torch.manual_seed(0)
    built = MaskedMLP(INPUTS, OUTPUTS, hidden, orders, condition, activation="tanh", residual=residual)
    return built.double()


@pytest.mark.parametrize(("hidden", "residual", "condition"), KINDS)
def test_outputs_depend_on_earlier_columns_and_on_those_alone(hidden, residual, condition):
    module = network(hidden, residual, condition)
    x, given = torch.randn(len(INPUTS)).double(), torch.randn(condition).double()
    for index, order in enumerate(ORDERS):
        place = np.argsort(order)

        def outputs(x, given, index=index):
            return module(x, given if condition else None, order=index)

        by_x, by_condition = torch.autograd.functional.jacobian(outputs, (x, given))
        earlier = torch.tensor([[bool(place[i] < place[o]) for i in INPUTS] for o in OUTPUTS])
        assert torch.equal(by_x != 0, earlier)  # wide enough that each earlier column gets through
        assert bool((by_condition != 0).all())


@pytest.mark.parametrize(("hidden", "residual", "condition"), KINDS)
def test_column_by_column_gives_the_outputs_of_one_pass(hidden, residual, condition):
    module = network(hidden, residual, condition)
    x = torch.randn(5, len(INPUTS)).double()
    given = torch.randn(5, condition).double() if condition else None
    for index, order in enumerate(ORDERS):
        whole = module(x, given, order=index)
        walk = Walk(module, 5, given, order=index)
        assert walk.columns == order
        for column in order:
            torch.testing.assert_close(walk.next(), whole[:, [o == column for o in OUTPUTS]])
            walk.tell(x[:, [i == column for i in INPUTS]])


def test_signals_keep_their_size_whatever_the_masks_leave():
    torch.manual_seed(0)
    module = MaskedMLP(range(40), range(40), (800, 800))
    deviations = module(torch.randn(500, 40)).detach()[:, 1:].std(0)
    assert 0.3 < float(deviations.min()) < float(deviations.max()) < 3


def test_degrees_are_spread_evenly_and_end_before_the_last_column():
    counts = np.bincount(hidden_degrees(100, 11))
    assert counts.tolist() == [10] * 10
    assert hidden_degrees(3, 1).tolist() == [-1, -1, -1]
    assert random_orders(3, 6) == random_orders(3, 6)
    assert all(sorted(order) == list(range(6)) for order in random_orders(5, 6))


def test_a_masked_linear_network_starts_at_zero():
    module = masked_network(Linear(), INPUTS, OUTPUTS)
    assert not module(torch.randn(3, len(INPUTS))).any()


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: masked_network("conv_net()", [0], [0]), "has no masked form, in which columns see earlier ones"),
        (lambda: masked_network(MLP((4,), norm="layer"), [0], [0]), "norm='layer' has no masked form"),
        (lambda: masked_network(MLP((4,), residual="zero"), [0], [0]), "residual='zero' has no masked form"),
        (lambda: MaskedMLP([0, 1], [0, 1], orders=[(0, 0)]), r"order \(0, 0\) is not a permutation"),
        (lambda: MaskedMLP([0, 1], [0, 1], residual="zero"), "has None, 'add' or 'dense'"),
    ],
)
def test_what_has_no_masked_form_is_refused(build, message):
    with pytest.raises(SpecError, match=message):
        build()
