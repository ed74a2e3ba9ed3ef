"""A masked network column by column gives the outputs of one pass."""

from __future__ import annotations

import itertools

import pytest
import torch

from likely.networks.layers.masked import MaskedMLP
from likely.networks.layers.walk import Walk

INPUTS, OUTPUTS = [0, 0, 1, 2, 2, 2, 3], [3, 0, 1, 1, 2, 3, 2]
ORDERS = ((0, 1, 2, 3), (2, 0, 3, 1))
KINDS = list(itertools.product([(), (12,), (9, 9), (7, 12, 5)], [None, "add", "dense"], [0, 2]))


@pytest.mark.parametrize(("hidden", "residual", "condition"), KINDS)
def test_column_by_column_gives_the_outputs_of_one_pass(hidden, residual, condition):
    torch.manual_seed(0)
    options = {"activation": "tanh", "residual": residual}
    module = MaskedMLP(INPUTS, OUTPUTS, hidden, ORDERS, condition, **options).double()
    x = torch.randn(5, len(INPUTS)).double()
    given = torch.randn(5, condition).double() if condition else None
    for index, order in enumerate(ORDERS):
        whole = module(x, given, order=index)
        walk = Walk(module, 5, given, order=index)
        assert walk.columns == order
        for column in order:
            torch.testing.assert_close(walk.next(), whole[:, [o == column for o in OUTPUTS]])
            walk.tell(x[:, [i == column for i in INPUTS]])
