"""The distribution of the labels of whole rows: an average of fields, against all paths."""

from __future__ import annotations

import itertools

import pytest
import torch
from scipy import stats

from likely.probability.chains import LabelPaths

STATES, LENGTHS = 3, (4, 1, 3)
OFFSETS = torch.tensor([0, 4, 5, 8])


def fields(members, scale=1.0):
    generator = torch.Generator().manual_seed(members)
    shapes = ((STATES,), (STATES,), (STATES, STATES), (sum(LENGTHS), STATES))
    return [scale * torch.randn(members, *shape, generator=generator, dtype=torch.float64) for shape in shapes]


def weights_of(members):
    return torch.arange(1, members + 1, dtype=torch.float64) / sum(range(1, members + 1))


def enumerated(given, weights, row):
    """All paths of a row and the probability of each."""
    first, last, transition, emission = given
    own = emission.split(LENGTHS, 1)[row]
    paths = torch.tensor(list(itertools.product(range(STATES), repeat=own.shape[1])))
    inside = own[:, torch.arange(own.shape[1]), paths].sum(-1) + transition[:, paths[:, :-1], paths[:, 1:]].sum(-1)
    score = first[:, paths[:, 0]] + inside + last[:, paths[:, -1]]
    return paths, weights @ score.softmax(-1)


@pytest.mark.parametrize("members", [1, 3])
def test_marginals_and_probabilities_are_sums_over_paths(members):
    given, weights = fields(members), weights_of(members)
    rows = LabelPaths(*given, OFFSETS, weights)
    assert rows.batch_shape == (3,)
    marginals = rows.probs.split(LENGTHS)
    for row, marginal in enumerate(marginals):
        paths, chance = enumerated(given, weights, row)
        one_hot = torch.nn.functional.one_hot(paths, STATES).double()
        torch.testing.assert_close(marginal, torch.einsum("p,ptk->tk", chance, one_hot))
    torch.testing.assert_close(rows.logits, rows.probs.log())
    paths, chance = enumerated(given, weights, 0)
    value = torch.zeros(len(paths), sum(LENGTHS))
    value[:, :4] = paths
    torch.testing.assert_close(rows.log_prob(value)[:, 0].exp(), chance)
    assert rows.log_prob(value).shape == (len(paths), 3)


def test_the_mode_of_one_field_is_the_best_path():
    given, weights = fields(1), weights_of(1)
    mode = LabelPaths(*given, OFFSETS).mode.split(LENGTHS)
    for row, own in enumerate(mode):
        paths, chance = enumerated(given, weights, row)
        assert own.tolist() == paths[chance.argmax()].tolist()


def test_the_mode_of_several_is_the_best_path_of_the_nearest_markov_chain():
    given, weights = fields(3), weights_of(3)
    mode = LabelPaths(*given, OFFSETS, weights).mode.split(LENGTHS)
    for row, own in enumerate(mode):
        paths, chance = enumerated(given, weights, row)
        one_hot = torch.nn.functional.one_hot(paths, STATES).double()
        marginal = torch.einsum("p,ptk->tk", chance, one_hot)
        pairs = torch.einsum("p,pti,ptj->tij", chance, one_hot[:, :-1], one_hot[:, 1:])
        nearest = marginal[0].log()[paths[:, 0]]
        for t in range(len(marginal) - 1):
            nearest = nearest + (pairs[t] / marginal[t].unsqueeze(1)).log()[paths[:, t], paths[:, t + 1]]
        assert own.tolist() == paths[nearest.argmax()].tolist()


def test_several_that_are_alike_are_one():
    given = fields(1)
    one, two = (LabelPaths(*(part.expand(n, *part.shape[1:]) for part in given), OFFSETS) for n in (1, 2))
    assert one.mode.tolist() == two.mode.tolist()
    torch.testing.assert_close(one.probs, two.probs)


@pytest.mark.parametrize("members", [1, 3])
def test_draws_come_as_often_as_they_are_probable(members, seed):
    """Chi-squared over the 81 paths of a row: a false alarm in 1 of 10,000."""
    given, weights = fields(members, 0.5), weights_of(members)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        draws = LabelPaths(*given, OFFSETS, weights).sample((20_000,))
    assert draws.shape == (20_000, 8)
    paths, chance = enumerated(given, weights, 0)
    code = STATES ** torch.arange(3, -1, -1)
    counts = torch.bincount((draws[:, :4] * code).sum(1), minlength=len(paths)).double()
    assert stats.chisquare(counts.numpy(), (chance * 20_000).numpy()).pvalue > 1e-4


def test_rows_of_one_length_are_an_array():
    first, last, transition, emission = fields(2)
    rows = LabelPaths(first, last, transition, emission, torch.tensor([0, 4, 8]), length=4)
    assert (rows.batch_shape, rows.event_shape) == ((2,), (4,))
    assert rows.probs.shape == (2, 4, STATES)
    assert rows.mode.shape == (2, 4)
    assert rows.sample((5,)).shape == (5, 2, 4)
    assert rows.log_prob(rows.sample((5,))).shape == (5, 2)
