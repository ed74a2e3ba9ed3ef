from __future__ import annotations

import numpy as np
import pytest
import torch

from likely.models.markov.chains import TOGETHER, chains_log_prob, smooth_chains
from likely.probability.chains import chain_log_prob

LENGTHS = [4, 1, 7]
OFFSETS = torch.tensor([0, 4, 5, 12])


def chains(members=3, states=2):
    generator = torch.Generator().manual_seed(0)
    shapes = ((members, states), (members, states, states), (sum(LENGTHS), members, states))
    parts = [torch.randn(shape, generator=generator, dtype=torch.float64) for shape in shapes]
    return [parts[0].log_softmax(-1), parts[1].log_softmax(-1), parts[2]]


def test_it_is_the_log_probability_of_each_model_alone():
    parts = chains()
    alone = torch.stack(
        [chain_log_prob(*(part[s] for part in parts[:2]), parts[2][:, s], LENGTHS) for s in range(3)], 1
    )
    torch.testing.assert_close(chains_log_prob(*parts, OFFSETS), alone, rtol=1e-12, atol=0)


def test_derivatives_are_those_of_each_model_alone():
    weight = torch.tensor([[1.0, 2.0, 0.5], [0.0, 1.0, 3.0], [2.0, 0.1, 1.0]], dtype=torch.float64)
    together = [part.requires_grad_() for part in chains()]
    (weight * chains_log_prob(*together, OFFSETS)).sum().backward()
    apart = [part.requires_grad_() for part in chains()]
    for s in range(3):
        value = chain_log_prob(apart[0][s], apart[1][s], apart[2][:, s], LENGTHS)
        (weight[:, s] * value).sum().backward()
    for one, other in zip(together, apart, strict=True):
        torch.testing.assert_close(one.grad, other.grad, rtol=1e-10, atol=1e-12)


def test_a_sequence_that_cannot_be_has_no_probability_and_no_gradient():
    first, move, emission = chains(1)
    emission[4] = -torch.inf
    emission.requires_grad_()
    value = chains_log_prob(first, move, emission, OFFSETS)
    assert value[1, 0] == -np.inf
    value[[0, 2]].sum().backward()
    assert not emission.grad[4].any()
    assert emission.grad[0].sum() == pytest.approx(1.0)


def test_more_models_than_go_together_and_long_sequences():
    members, steps = TOGETHER + 5, 4000  # the product of the scales alone would underflow many times
    generator = torch.Generator().manual_seed(0)
    shapes = ((members, 3), (members, 3, 3), (steps, members, 3))
    first, move, emission = (torch.randn(shape, generator=generator, dtype=torch.float64) for shape in shapes)
    first, move, emission = first.log_softmax(-1), move.log_softmax(-1), 20 * emission
    value, start, pairs, posterior = smooth_chains(first, move, emission, torch.tensor([0, steps]))
    for s in (0, TOGETHER - 1, TOGETHER, members - 1):
        alone = chain_log_prob(first[s], move[s], emission[:, s])
        torch.testing.assert_close(value[:, s], alone, rtol=1e-12, atol=0)
    one = torch.ones(1, members, dtype=torch.float64)
    torch.testing.assert_close(posterior.sum(-1), one.expand(steps, members), rtol=1e-10, atol=0)
    torch.testing.assert_close(pairs.sum((-2, -1)), (steps - 1) * one, rtol=1e-10, atol=0)
    torch.testing.assert_close(start[0], posterior[0], rtol=1e-12, atol=0)


@pytest.mark.parametrize("strange", [-np.inf, np.nan, np.inf])
def test_what_cannot_be_seen_by_one_model_leaves_the_others_alone(strange):
    first, move, emission = chains(3)
    others = smooth_chains(first, move, emission, OFFSETS)
    emission[2, 1] = strange
    value, start, pairs, posterior = smooth_chains(first, move, emission, OFFSETS)
    assert value[0, 1] == -np.inf
    assert value[1:, 1].isfinite().all()
    assert not start[0, 1].any()
    assert not pairs[0, 1].any()
    assert not posterior[:4, 1].any()
    for own, other in zip((value, start, pairs), others, strict=False):
        torch.testing.assert_close(own[:, [0, 2]], other[:, [0, 2]], rtol=1e-12, atol=0)
