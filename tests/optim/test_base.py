"""What all optimisers share: a rate, its reach, and fused kernels only where they give the right numbers."""

from __future__ import annotations

import math

import pytest
import torch

from likely.core.errors import SpecError
from likely.optim import SGD, Adam, Optimizer
from likely.optim.base import build_fused, fusable, is_count, is_fraction, is_number
from likely.optim.eager import eager


@pytest.mark.parametrize("lr", [0.0, -1.0, math.inf, math.nan, True, "fast"])
def test_the_rate_is_a_positive_number(lr):
    with pytest.raises(SpecError, match="lr must be a positive number"):
        SGD(lr=lr)


def test_kinds_of_numbers():
    assert [is_number(value) for value in (0, -1.5, math.inf, math.nan, True, "1")] == [True, True] + [False] * 4
    assert [is_fraction(value) for value in (0, 0.999, 1, -0.1)] == [True, True, False, False]
    assert [is_count(value) for value in (1, 7, 0, 1.0, True)] == [True, True, False, False, False]


def test_reach_is_the_rate_of_the_group_that_holds_the_parameter():
    one, two = torch.zeros(1, requires_grad=True), torch.zeros(1, requires_grad=True)
    optimizer = eager(torch.optim.SGD)([{"params": [one], "lr": 0.5}, {"params": [two], "lr": 0.25}])
    assert Optimizer.reach(SGD(), optimizer, one) == 0.5
    assert Optimizer.reach(SGD(), optimizer, two) == 0.25
    with pytest.raises(KeyError, match="does not hold this parameter"):
        SGD().reach(optimizer, torch.zeros(1))


def test_only_contiguous_real_parameters_are_fused():
    assert fusable([torch.zeros(2, 3), torch.zeros(4)])
    assert not fusable([torch.zeros(2, 3), torch.zeros(2, 3).T])
    assert not fusable([torch.zeros(2, dtype=torch.int64)])


@pytest.mark.parametrize("build", [lambda p: build_fused(torch.optim.SGD, p, lr=0.1), Adam(lr=0.1).build])
def test_transposed_parameters_and_gradients_step_as_contiguous_ones(build):
    """Fused kernels read memory in order, which is wrong for both unless they are watched."""
    gradient = torch.arange(6.0).reshape(2, 3) - 2.0
    ends = []
    for transposed, given in ((False, gradient), (True, gradient), (False, gradient.T.contiguous().T)):
        start = torch.ones(3, 2).T if transposed else torch.ones(2, 3)
        theta = start.clone(memory_format=torch.preserve_format).requires_grad_()
        optimizer = build([theta])
        for _ in range(3):
            theta.grad = given.clone(memory_format=torch.preserve_format)
            optimizer.step()
        ends.append(theta.detach())
    torch.testing.assert_close(ends[1], ends[0], check_stride=False)
    torch.testing.assert_close(ends[2], ends[0], check_stride=False)
