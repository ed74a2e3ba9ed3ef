"""log p of the labels of rows under a random field along a chain: its sum over paths, its gradient, long rows."""

from __future__ import annotations

import itertools

import pytest
import torch

from likely.core.errors import DataError
from likely.probability.chains import label_log_prob

STATES, LENGTHS = 3, (4, 1, 3)
OFFSETS = torch.tensor([0, 4, 5, 8])
LABELS = torch.tensor([0, 2, 2, 1, 1, 0, 1, 2]).double()


def scores(scale=1.0):
    generator = torch.Generator().manual_seed(0)
    shapes = ((STATES,), (STATES,), (STATES, STATES), (len(LABELS), STATES))
    return [scale * torch.randn(*shape, generator=generator, dtype=torch.float64) for shape in shapes]


def score(path, first, last, transition, emission):
    inside = emission[torch.arange(len(path)), path].sum() + transition[path[:-1], path[1:]].sum()
    return first[path[0]] + inside + last[path[-1]]


def enumerated(given, labels):
    """log Σ over the paths that agree with the labels − log Σ over all, as a plain tensor program."""
    *constants, emission = given
    values = []
    for own, seen in zip(emission.split(LENGTHS), labels.split(LENGTHS), strict=True):
        paths = torch.tensor(list(itertools.product(range(STATES), repeat=len(own))))
        all_scores = torch.stack([score(path, *constants, own) for path in paths])
        agrees = (seen.isnan() | (paths == seen)).all(1)
        values.append(all_scores[agrees].logsumexp(0) - all_scores.logsumexp(0))
    return torch.stack(values)


def with_gaps():
    gaps = LABELS.clone()
    gaps[[1, 3, 4]] = torch.nan
    return gaps


@pytest.mark.parametrize("scale", [1.0, 30.0, 800.0])
@pytest.mark.parametrize("labels", [LABELS, with_gaps()], ids=["known", "gaps"])
@pytest.mark.parametrize("weight", [(1.0, 1.0, 1.0), (1.0, -2.0, 0.5)], ids=["alike", "weighted"])
def test_value_and_gradient_are_those_of_the_sum_over_paths(scale, labels, weight):
    given = [part.requires_grad_() for part in scores(scale)]
    value, oracle = label_log_prob(*given, labels, OFFSETS), enumerated(given, labels)
    torch.testing.assert_close(value, oracle, rtol=1e-10, atol=1e-12 * scale)
    row = torch.tensor(weight, dtype=torch.float64)
    mine = torch.autograd.grad((row * value).sum(), given)
    theirs = torch.autograd.grad((row * oracle).sum(), given)
    for own, other in zip(mine, theirs, strict=True):
        torch.testing.assert_close(own, other, rtol=1e-8, atol=1e-10)


def test_the_gradient_is_that_of_differences():
    given = [part.requires_grad_() for part in scores()]
    assert torch.autograd.gradcheck(lambda *parts: label_log_prob(*parts, with_gaps(), OFFSETS), given)


def test_labels_may_be_integers():
    given = scores()
    for integers in (LABELS.long(), LABELS.int()):
        torch.testing.assert_close(*(label_log_prob(*given, labels, OFFSETS) for labels in (LABELS, integers)))


def test_the_value_is_the_same_without_a_gradient():
    given = scores()
    with_gradient = label_log_prob(*(part.clone().requires_grad_() for part in given), with_gaps(), OFFSETS)
    torch.testing.assert_close(label_log_prob(*given, with_gaps(), OFFSETS), with_gradient.detach(), rtol=1e-12, atol=0)


def test_labels_that_nothing_couples_are_independent():
    _, _, _, emission = scores()
    nothing = torch.zeros(STATES).double()
    value = label_log_prob(nothing, nothing, torch.zeros(STATES, STATES).double(), emission, LABELS, OFFSETS)
    alone = emission.log_softmax(1).gather(1, LABELS.long().unsqueeze(1))[:, 0]
    torch.testing.assert_close(value, torch.stack([part.sum() for part in alone.split(LENGTHS)]))


def test_a_row_without_a_known_label_has_probability_1():
    given = [part.requires_grad_() for part in scores()]
    value = label_log_prob(*given, torch.full((8,), torch.nan), OFFSETS)
    torch.testing.assert_close(value, torch.zeros(3).double(), atol=1e-12, rtol=0)
    for gradient in torch.autograd.grad(value.sum(), given):
        torch.testing.assert_close(gradient, torch.zeros_like(gradient), atol=1e-10, rtol=0)


def test_long_rows_neither_overflow_nor_lose_digits():
    """A scale on which exp(score) of ten steps cannot be written, in single precision."""
    steps = 200_000
    emission = torch.zeros(steps, 2)
    emission[:, 0] = 80.0
    emission.requires_grad_()
    nothing = torch.zeros(2)
    value = label_log_prob(nothing, nothing, torch.zeros(2, 2), emission, torch.ones(steps), torch.tensor([0, steps]))
    assert value.item() == pytest.approx(-80.0 * steps, rel=1e-6)
    (gradient,) = torch.autograd.grad(value.sum(), emission)
    torch.testing.assert_close(gradient, torch.tensor([-1.0, 1.0]).expand(steps, 2))


def test_a_row_needs_a_position():
    with pytest.raises(DataError, match="row 1 is empty"):
        label_log_prob(*scores(), LABELS, torch.tensor([0, 4, 4, 8]))


def test_labels_that_are_none_of_the_classes_are_refused_at_the_door():
    nothing, starts = torch.zeros(2), torch.tensor([0, 2])
    for labels, message in (([0, 2], "labels from -1 to 1; found 0 to 2"), ([0], r"emission \(T, K\) and y \(T\)")):
        with pytest.raises(DataError, match=message):
            label_log_prob(nothing, nothing, torch.zeros(2, 2), torch.zeros(2, 2), torch.tensor(labels), starts)
