"""The kernel's numbers are torch's own, whichever parameters take a step."""

from __future__ import annotations

import copy

import pytest
import torch

from likely.optim.fused import FusedAdam

SHAPES = ((3, 2), (4,), ())


def parameters():
    generator = torch.Generator().manual_seed(0)
    return [torch.randn(shape, generator=generator).requires_grad_() for shape in SHAPES]


def torchs(given, decoupled):
    kind = torch.optim.AdamW if decoupled else torch.optim.Adam
    return kind(given, lr=0.1, weight_decay=0.01)


def step(optimizer, own, number, missing=()):
    for index, parameter in enumerate(own):
        grown = torch.Generator().manual_seed(10 * number + index)
        parameter.grad = None if index in missing else torch.randn(parameter.shape, generator=grown)
    optimizer.step()


@pytest.mark.parametrize("decoupled", [False, True])
@pytest.mark.parametrize(
    "missing", [{}, {0: (1,)}, {2: (0,)}, {1: (0, 2), 3: (1,)}, dict.fromkeys(range(8), (2,))], ids=str
)
def test_steps_are_torchs_where_some_parameters_have_no_gradient_at_times(decoupled, missing):
    ours, theirs = parameters(), parameters()
    pair = FusedAdam(ours, 0.1, weight_decay=0.01, decoupled=decoupled), torchs(theirs, decoupled)
    for number in range(8):
        for optimizer, own in zip(pair, (ours, theirs), strict=True):
            step(optimizer, own, number, missing.get(number, ()))
    for own, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(own, other, rtol=1e-6, atol=1e-6)
    for own, other in zip(ours, theirs, strict=True):
        assert float(pair[0].state[own].get("step", 0)) == float(pair[1].state[other].get("step", 0))


def test_a_state_is_taken_up_where_it_was_left():
    ours = parameters()
    first = FusedAdam(ours, 0.1)
    for number in range(3):
        step(first, ours, number)
    other = [parameter.detach().clone().requires_grad_() for parameter in ours]
    second = FusedAdam(other, 0.1)
    second.load_state_dict(copy.deepcopy(first.state_dict()))
    for number in range(3, 6):
        step(first, ours, number)
        step(second, other, number)
    for own, copied in zip(ours, other, strict=True):
        assert torch.equal(own, copied)
