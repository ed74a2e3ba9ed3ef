from __future__ import annotations

import pytest
import torch

from likely.core.errors import SpecError
from likely.decoding import Beam, Exhaustive, Greedy


@pytest.mark.parametrize("penalty", [0.0, 0.7])
@pytest.mark.parametrize("end", [None, 0])
def test_wide_enough_it_is_exhaustive(end, penalty, table):
    for length in (1, 2, 4):
        wide = Beam(3**length, penalty).decode(table.step, table.start(), table.first, length, end=end)
        every = Exhaustive(penalty).decode(table.step, table.start(), table.first, length, end=end)
        assert torch.equal(wide.tokens, every.tokens)
        assert torch.equal(wide.log_prob, every.log_prob)


@pytest.mark.parametrize("width", [1, 2, 3, 5])
@pytest.mark.parametrize("end", [None, 2])
def test_it_is_never_below_greedy(width, end, table):
    beam = Beam(width).decode(table.step, table.start(), table.first, 6, end=end)
    greedy = Greedy().decode(table.step, table.start(), table.first, 6, end=end)
    assert bool((beam.log_prob >= greedy.log_prob).all())


@pytest.mark.parametrize("width", [2, 3, 5])
@pytest.mark.parametrize("end", [None, 2])
def test_it_keeps_the_best_of_all_extensions_at_each_step(width, end, table):
    """Written out, from all that is kept to all that may follow; the greedy sequence is there beside them."""
    beam = Beam(width).decode(table.step, table.start(), table.first, 5, end=end)
    greedy = Greedy().decode(table.step, table.start(), table.first, 5, end=end)
    for row in range(len(table.first)):
        kept = [()]
        for _ in range(5):
            longer = [own if end in own else (*own, token) for own in kept for token in range(3)]
            kept = sorted(set(longer), key=lambda own: -table.score(row, own))[:width]
        best = max(table.score(row, kept[0]), greedy.log_prob[row].item())
        assert beam.log_prob[row].item() == pytest.approx(best, abs=1e-12)


def test_of_width_one_it_is_greedy(table):
    beam = Beam(1).decode(table.step, table.start(), table.first, 6)
    assert torch.equal(beam.tokens, Greedy().decode(table.step, table.start(), table.first, 6).tokens)


def test_a_penalty_compares_means():
    """One token of probability 0.4 that ends, or two of 0.6: 0.36 is less than 0.4, and its mean is more."""

    def step(state, tokens):
        return torch.tensor([[0.4, 0.6]]).log().expand(len(tokens), 2), state

    first = torch.zeros(1, dtype=torch.long)
    short, long = (Beam(2, a).decode(step, (), first, 2, end=0).tokens.tolist() for a in (0.0, 1.0))
    assert (short, long) == ([[0]], [[1, 1]])


@pytest.mark.parametrize("bad", [{"width": 0}, {"width": 1.5}, {"length_penalty": -0.1}])
def test_arguments_that_mean_nothing_are_named(bad):
    with pytest.raises(SpecError, match=next(iter(bad))):
        Beam(**bad)
