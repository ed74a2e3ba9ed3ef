"""One sequence or many, in every form, as rows and offsets."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch

from likely import HiddenMarkov
from likely.core.errors import DataError
from likely.models.markov.sequences import Sequences


def read(X, lengths=None):
    return Sequences.of(HiddenMarkov(), X, lengths, reset=True)


@pytest.mark.parametrize(
    "X",
    [
        [1.0, 2.0, 3.0],
        [[1.0], [2.0], [3.0]],
        np.array([1.0, 2.0, 3.0]),
        np.array([[1], [2], [3]]),
        torch.tensor([1.0, 2.0, 3.0]),
        pd.Series([1.0, 2.0, 3.0]),
        pd.DataFrame({"a": [1.0, 2.0, 3.0]}),
    ],
)
def test_one_sequence(X):
    found = read(X)
    assert found.x.tolist() == [[1.0], [2.0], [3.0]]
    assert (found.x.dtype, found.offsets.tolist(), len(found)) == (torch.float64, [0, 3], 1)
    np.testing.assert_array_equal(found.together(np.arange(3)), np.arange(3))


@pytest.mark.parametrize(
    "X",
    [
        [np.array([1.0, 2.0]), np.array([3.0])],
        [np.array([[1.0], [2.0]]), [[3.0]]],
        [[[1.0], [2.0]], [[3.0]]],
        (torch.tensor([[1.0], [2.0]]), torch.tensor([3.0])),
        [pd.DataFrame({"a": [1.0, 2.0]}), pd.DataFrame({"a": [3.0]})],
    ],
)
def test_several_sequences(X):
    found = read(X)
    assert found.x.tolist() == [[1.0], [2.0], [3.0]]
    assert (found.offsets.tolist(), found.lengths.tolist()) == ([0, 2, 3], [2, 1])
    assert [part.tolist() for part in found.together(np.arange(3))] == [[0, 1], [2]]


def test_rows_with_lengths_and_arrays_of_three_axes():
    found = read(np.arange(6.0).reshape(3, 2), [1, 2])
    assert (found.offsets.tolist(), found.listed) == ([0, 1, 3], False)
    cube = read(np.arange(12.0).reshape(2, 3, 2))
    assert (cube.offsets.tolist(), cube.listed, tuple(cube.x.shape)) == ([0, 3, 6], True, (6, 2))


@pytest.mark.parametrize(
    ("X", "lengths", "message"),
    [
        ([np.zeros((2, 1)), np.zeros((0, 1))], None, "sequence 1 is empty; leave such sequences out"),
        ([np.zeros(2), np.zeros(0)], None, "sequence 1 is empty"),
        ([np.zeros((2, 1)), []], None, "sequence 1 is empty"),
        ([], None, "X is an empty list: there is no sequence in it"),
        (np.zeros((4, 1)), [4, 0], r"sequence 1 is empty: lengths\[1\] = 0"),
        (np.zeros((4, 1)), [2, 3], "lengths sum to 5, but there are 4 rows"),
        (np.zeros((4, 1)), [1.5, 2.5], "lengths must be whole numbers"),
        ([np.zeros((2, 1)), np.zeros((2, 3))], None, "sequence 1 has 3 columns, but sequence 0 has 1"),
        ([np.zeros((2, 1)), np.zeros((2, 1, 1))], None, r"sequence 1 has shape \(2, 1, 1\)"),
        ([np.zeros((2, 1))], [2], "lengths is for rows"),
        (np.zeros((2, 2, 2, 2)), None, r"X has shape \(2, 2, 2, 2\)"),
        ([np.zeros((2, 1)), [["a"]]], None, "text where numbers are needed"),
        ([0.0, np.inf], None, "X contains infinity"),
    ],
)
def test_what_is_no_sequence_is_named(X, lengths, message):
    with pytest.raises(DataError, match=message):
        read(X, lengths)
