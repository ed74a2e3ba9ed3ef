"""Networks inside layers: what they see, and that they start small."""

from __future__ import annotations

import pytest
import torch

from likely.core.random import isolated
from likely.models.generative.transforms.conditioner import Constant, conditioner, start_small
from likely.networks import MLP


@pytest.mark.parametrize(("inputs", "condition"), [(0, None), (0, (3,)), (2, None), (2, (3,))])
def test_parameters_for_every_kind_of_input(inputs, condition):
    with isolated(0):
        module = conditioner(MLP((8,)), (inputs,), 6, condition)
        rows, told = torch.randn(5, inputs), None if condition is None else torch.randn(5, *condition)
    answer = module(rows) if told is None else module(rows, told)
    assert answer.shape == (1 if inputs == 0 and condition is None else 5, 6)
    assert isinstance(module, Constant) == (inputs == 0 and condition is None)
    assert float(answer.detach().abs().mean()) < 0.3  # a layer starts near the identity


def test_starting_small_scales_the_last_matrix_alone():
    with isolated(0):
        module = MLP((8,)).build((3,), 4)
    first, *_, last = [value.detach().clone() for value in module.parameters() if value.ndim > 1]
    start_small(module, 0.25)
    matrices = [value for value in module.parameters() if value.ndim > 1]
    torch.testing.assert_close(matrices[0], first)
    torch.testing.assert_close(matrices[-1], 0.25 * last)
