"""Networks that answer for whole rows, whatever the shape of rows they read."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from likely.core.errors import SpecError
from likely.models.generative.whole_rows import WholeRows
from likely.networks import MLP, ConvNet, UNet


@pytest.mark.parametrize("network", [MLP((8,)), ConvNet((4,)), lambda in_shape, out: nn.Linear(in_shape[-1], out)])
def test_rows_of_images_get_one_answer_each(network):
    module = WholeRows(network, (1, 8, 8), 3)
    assert module(torch.zeros(5, 1, 8, 8)).shape == (5, 3)
    assert module.training


def test_a_condition_joins_the_row():
    module = WholeRows(MLP((8,)), (4,), 3, condition=(2,))
    x = torch.randn(5, 4)
    assert module(x, torch.ones(5, 2)).shape == (5, 3)
    assert not torch.equal(module(x, torch.ones(5, 2)), module(x, torch.zeros(5, 2)))


def test_a_network_that_answers_otherwise_is_named():
    with pytest.raises(SpecError, match=r"gives outputs of shape .* where \(3,\) is needed"):
        WholeRows(lambda in_shape, out: nn.Identity(), (4,), 3)


def test_an_answer_per_pixel_is_no_answer_for_the_row():
    with pytest.raises(SpecError):
        WholeRows(UNet((2,)), (1, 8, 8), 3)
