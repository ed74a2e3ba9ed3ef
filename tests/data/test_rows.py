"""Rows of any lengths: what goes through batches comes out as it went in."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from likely.core.errors import DataError
from likely.data.rows import Ragged, index_of_parts, row_size

LENGTHS = st.lists(st.integers(1, 6), min_size=1, max_size=12)


def made(lengths, width=2):
    rng = np.random.default_rng(len(lengths))
    return [rng.normal(size=(length, width)) for length in lengths]


@given(LENGTHS, st.randoms(use_true_random=False))
def test_rows_by_index_are_those_of_the_list(lengths, random):
    pieces = made(lengths)
    rows = Ragged.of(pieces)
    index = [random.randrange(len(pieces)) for _ in range(5)]
    chosen = rows[torch.tensor(index)]
    assert chosen.lengths.tolist() == [lengths[i] for i in index]
    np.testing.assert_array_equal(chosen.values.numpy(), np.concatenate([pieces[i] for i in index]))
    start = random.randrange(len(pieces))
    np.testing.assert_array_equal(rows[start:].values.numpy(), np.concatenate(pieces[start:]))


@given(LENGTHS)
def test_padding_comes_off_as_it_went_on(lengths):
    rows = Ragged.of(made(lengths))
    padded, present = rows.padded()
    assert padded.shape == (len(lengths), max(lengths), 2)
    assert not padded[~present].any()
    torch.testing.assert_close(rows.flat(padded), rows.values, rtol=0, atol=0)
    assert rows.owner.tolist() == [i for i, length in enumerate(lengths) for _ in range(length)]


def test_batches_of_similar_length_hold_rows_once_and_little_padding():
    lengths = np.random.default_rng(0).integers(1, 100, 1000)
    rows = Ragged.of([np.zeros((length, 1)) for length in lengths])
    generator = torch.Generator().manual_seed(0)
    order = torch.randperm(1000, generator=generator)
    arranged = rows.arranged(order, 32, generator)
    assert sorted(arranged.tolist()) == list(range(1000))

    def share_of_padding(order):
        cells = sum(len(batch) * lengths[batch].max() for batch in order.numpy()[:992].reshape(-1, 32))
        return 1 - lengths[order.numpy()[:992]].sum() / cells

    assert share_of_padding(arranged) < 0.1 < 0.4 < share_of_padding(order)
    longest = torch.tensor(lengths)[arranged[:992]].view(-1, 32).amax(1).double()
    assert abs(float(torch.corrcoef(torch.stack([longest, torch.arange(31).double()]))[0, 1])) < 0.5


def test_casting_and_moving_keep_what_needs_no_change():
    rows = Ragged.of(made([2, 3]))
    assert rows.to(torch.float64) is rows
    assert rows.to(torch.device("cpu"), torch.float32).dtype == torch.float32
    assert rows[:] is rows
    assert row_size(rows) == 5


def test_an_index_with_two_axes_is_refused():
    with pytest.raises(NotImplementedError, match="stacked"):
        index_of_parts(torch.tensor([0, 1]), torch.zeros(2, 2, dtype=torch.long))


@pytest.mark.parametrize(
    ("sequences", "message"),
    [
        ([np.zeros((2, 1)), np.zeros((0, 1))], r"X\[1\] is empty"),
        ([np.zeros((2, 1)), np.zeros((3, 2))], r"X\[1\] has 2 features at each step, but X\[0\] has 1"),
        ([np.zeros((2, 1, 1))], r"X\[0\] has shape \(2, 1, 1\)"),
        ([np.array([[1.0], [np.nan]]), np.zeros((1, 1))], r"X\[0\] contains nan at step 1"),
        ([["a", "b"], ["c"]], r"X\[0\] is not an array of numbers"),
    ],
)
def test_what_is_no_sequence_is_named(sequences, message):
    with pytest.raises(DataError, match=message):
        Ragged.of(sequences)
