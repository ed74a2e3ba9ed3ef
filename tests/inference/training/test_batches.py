"""The rows of each step: each once an epoch, or drawn anew; a state that goes on where it was."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from likely import Regressor
from likely.core.errors import SpecError
from likely.inference import MAP
from likely.inference.dataset import Dataset
from likely.inference.training.batches import Batches
from likely.optim import SGD


def data_of(rows):
    return Dataset(torch.arange(rows, dtype=torch.float32).unsqueeze(-1), torch.zeros(rows), None, torch.float32)


def epoch(batches):
    return torch.cat([batches.next() for _ in range(batches.count)], -1)


def test_an_epoch_has_each_row_once_and_the_next_another_order():
    batches = Batches(data_of(11), 4, [0])
    first, second = epoch(batches), epoch(batches)
    assert sorted(first.tolist()) == sorted(second.tolist()) == list(range(11))
    assert first.tolist() != second.tolist()


def test_members_have_orders_of_their_own_that_do_not_depend_on_the_others():
    together = epoch(Batches(data_of(9), 4, [3, 5]))
    assert together.shape == (2, 9)
    for seed, rows in zip((3, 5), together, strict=True):
        assert torch.equal(rows, epoch(Batches(data_of(9), 4, [seed])))


def test_fractions_of_an_epoch_add_up_to_one():
    batches = Batches(data_of(10), 4, [0])
    fractions = []
    for _ in range(batches.count):
        batches.next()
        fractions.append(batches.fraction)
    assert sum(fractions) == pytest.approx(1)


def test_with_replacement_every_row_is_as_likely_each_time(seed):
    """Counts of 10 rows in 4,000 draws, by χ² with 9 degrees of freedom: a false alarm in 1 of 10⁵ seeds (at 39.3)."""
    batches = Batches(data_of(10), 4, [seed], replacement=True)
    drawn = torch.cat([batches.next() for _ in range(1000)])
    counts = torch.bincount(drawn, minlength=10).double()
    assert float(((counts - 400).square() / 400).sum()) < 39.3
    first = Batches(data_of(10), 10, [seed], replacement=True)
    assert any(len(set(first.next().tolist())) < 10 for _ in range(20))  # fails for 1 of 10⁶⁰ seeds


@pytest.mark.parametrize("replacement", [False, True])
def test_a_restored_state_gives_the_batches_that_were_to_come(replacement):
    batches = Batches(data_of(11), 4, [0, 1], replacement=replacement)
    batches.next()
    state = batches.state()
    expected = [batches.next() for _ in range(7)]
    again = Batches(data_of(11), 4, [0, 1], replacement=replacement)
    again.restore(state)
    assert all(torch.equal(again.next(), rows) for rows in expected)


@pytest.mark.parametrize("seeds", [[0], [0, 1]], ids=["one", "members"])
def test_batches_that_are_gathered_ahead_are_those_of_the_indices(seeds):
    """Also their fractions, over three epochs, with a state taken at every step."""
    data = data_of(11)
    ahead, singly = Batches(data, 4, seeds), Batches(data, 4, seeds)
    for _ in range(3 * ahead.count):
        resumed = Batches(data, 4, seeds)
        resumed.restore(ahead.state())
        batch, rows = ahead.take(data), singly.next()
        assert torch.equal(batch.x[..., 0], rows.float())
        assert batch.x.is_contiguous()
        assert batch.y.shape == rows.shape
        assert ahead.fraction == singly.fraction
        assert torch.equal(resumed.take(data).x, batch.x)


def test_rows_too_large_to_be_gathered_ahead_are_taken_singly(monkeypatch):
    monkeypatch.setattr("likely.inference.training.batches.AHEAD", 7)
    data = data_of(11)
    ahead, singly = Batches(data, 4, [0]), Batches(data, 4, [0])
    for _ in range(2 * ahead.count):
        assert torch.equal(ahead.take(data).x[:, 0], singly.next().float())


def test_all_rows_in_one_batch_are_taken_as_they_are():
    assert Batches(data_of(5), None, [0]).next() == slice(None)


def test_training_with_replacement_is_another_way_and_repeatable(rng):
    X = rng.normal(size=(20, 2))

    def fitted(training):
        return Regressor(inference=training, random_state=0).fit(X, X[:, 0]).predict(X)

    training = MAP(SGD(0.05), epochs=3, batch_size=5)
    drawn = fitted(training(replacement=True))
    assert np.array_equal(drawn, fitted(training(replacement=True)))
    assert not np.allclose(drawn, fitted(training))
    with pytest.raises(SpecError, match="replacement"):
        MAP(replacement=1)
