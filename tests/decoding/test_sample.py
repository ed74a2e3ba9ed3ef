from __future__ import annotations

import pytest
import torch
from scipy import stats

from likely.core.errors import SpecError
from likely.core.random import drawing
from likely.decoding import Greedy, Sample


def test_of_one_candidate_it_is_greedy(table):
    greedy = Greedy().decode(table.step, table.start(), table.first, 6)
    for way in (Sample(top_k=1), Sample(top_p=1e-9), Sample(temperature=1e-9)):
        with drawing(0):
            drawn = way.decode(table.step, table.start(), table.first, 6)
        assert torch.equal(drawn.tokens, greedy.tokens)
        assert torch.equal(drawn.log_prob, greedy.log_prob)


def test_the_nucleus_is_the_smallest_set_with_the_mass(seed):
    random = torch.Generator().manual_seed(seed)
    log_probs = (2 * torch.randn(50, 12, generator=random, dtype=torch.float64)).log_softmax(1)
    for p in (0.1, 0.5, 0.9, 1.0):
        kept = Sample(top_p=p).probabilities(log_probs)
        for own, new in zip(log_probs.exp(), kept, strict=True):
            size = int((new > 0).sum())
            ordered = own.sort(descending=True).values
            assert float(ordered[:size].sum()) >= p - 1e-12
            assert float(ordered[: size - 1].sum()) < p
            assert float(own[new > 0].min()) == float(ordered[size - 1])
            assert torch.allclose(new[new > 0], own[new > 0] / own[new > 0].sum())


def test_the_k_most_probable_are_kept_in_proportion(seed):
    random = torch.Generator().manual_seed(seed)
    log_probs = torch.randn(20, 9, generator=random, dtype=torch.float64).log_softmax(1)
    kept = Sample(top_k=4).probabilities(log_probs)
    assert (kept > 0).sum(1).eq(4).all()
    assert torch.equal(kept.topk(4, 1).indices, log_probs.topk(4, 1).indices)
    assert torch.allclose(Sample(top_k=100).probabilities(log_probs), log_probs.exp())


def test_temperature_is_a_power(seed):
    random = torch.Generator().manual_seed(seed)
    probs = torch.rand(5, 4, generator=random, dtype=torch.float64)
    probs = probs / probs.sum(1, keepdim=True)
    powers = probs ** (1 / 0.7)
    assert torch.allclose(Sample(0.7).probabilities(probs.log()), powers / powers.sum(1, keepdim=True))


def test_draws_have_the_probabilities_of_the_model(table, seed):
    """χ² of the 9 sequences of two tokens, 4,000 draws of one row; a false alarm has probability 1e-4."""
    rows, first = torch.zeros(4_000, dtype=torch.long), torch.zeros(4_000, dtype=torch.long)
    with drawing(seed):
        drawn = Sample().decode(table.step, (rows, rows - 1), first, 2).tokens
    counts = torch.bincount(drawn[:, 0] * 3 + drawn[:, 1], minlength=9)
    expected = torch.tensor([table.score(0, (a, b)) for a in range(3) for b in range(3)]).exp() * 4_000
    often = expected >= 5  # the others are too few for χ²
    observed, wanted = counts[often].double(), expected[often].double()
    wanted = wanted * observed.sum() / wanted.sum()
    statistic = float(((observed - wanted) ** 2 / wanted).sum())
    assert stats.chi2.sf(statistic, len(wanted) - 1) > 1e-4


def test_draws_come_from_the_generator_of_the_call(table):
    before = torch.get_rng_state()
    drawn = []
    for seed in (0, 0, 1):
        with drawing(seed):
            drawn.append(Sample().decode(table.step, table.start(), table.first, 6).tokens)
    assert torch.equal(drawn[0], drawn[1])
    assert not torch.equal(drawn[0], drawn[2])
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("bad", [{"temperature": 0.0}, {"top_k": 0}, {"top_p": 0.0}, {"top_p": 1.5}])
def test_arguments_that_mean_nothing_are_named(bad):
    with pytest.raises(SpecError, match=next(iter(bad))):
        Sample(**bad)
