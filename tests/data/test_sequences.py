"""One sequence or many, in every form, as rows and offsets."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from sklearn.base import BaseEstimator

from likely import HiddenMarkov, KalmanFilter, Regressor, load
from likely.core.errors import DataError
from likely.data.rows import Ragged
from likely.data.sequences import offsets_of, read_sequences
from likely.inference import MAP
from likely.likelihoods import Normal, Poisson
from likely.networks import GRU


def read(X, lengths=None, missing=True):
    return read_sequences(BaseEstimator(), X, lengths, reset=True, missing=missing)


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
    rows = read(X)
    assert rows.values.tolist() == [[1.0], [2.0], [3.0]]
    assert (rows.values.dtype, rows.offsets.tolist(), len(rows)) == (torch.float64, [0, 3], 1)
    np.testing.assert_array_equal(rows.parted(np.arange(3)), np.arange(3))


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
    rows = read(X)
    assert rows.values.tolist() == [[1.0], [2.0], [3.0]]
    assert (rows.offsets.tolist(), rows.lengths.tolist()) == ([0, 2, 3], [2, 1])
    assert [part.tolist() for part in rows.parted(np.arange(3))] == [[0, 1], [2]]


def test_rows_with_lengths_and_arrays_of_three_axes():
    rows = read(np.arange(6.0).reshape(3, 2), [1, 2])
    assert (rows.offsets.tolist(), rows.listed) == ([0, 1, 3], False)
    cube = read(np.arange(12.0).reshape(2, 3, 2))
    assert (cube.offsets.tolist(), cube.listed, tuple(cube.values.shape)) == ([0, 3, 6], True, (6, 2))


@pytest.mark.parametrize(
    ("X", "lengths", "message"),
    [
        ([np.zeros((2, 1)), np.zeros((0, 1))], None, r"X\[1\] is empty: it has no steps; leave it out"),
        ([np.zeros(2), np.zeros(0)], None, r"X\[1\] is empty"),
        ([np.zeros((2, 1)), []], None, r"X\[1\] is empty"),
        ([], None, "X is an empty list: there is no sequence in it"),
        (np.zeros((4, 1)), [4, 0], r"sequence 1 is empty: lengths\[1\] = 0"),
        (np.zeros((4, 1)), [2, 3], "lengths sum to 5, but there are 4 rows"),
        (np.zeros((4, 1)), [1.5, 2.5], "lengths must be integers"),
        ([np.zeros((2, 1)), np.zeros((2, 3))], None, r"X\[1\] has 3 features at each step, but X\[0\] has 1"),
        ([np.zeros((2, 1)), np.zeros((2, 1, 1))], None, r"X\[1\] has shape \(2, 1, 1\)"),
        ([np.zeros((2, 1))], [2], "lengths is for rows"),
        (np.zeros((2, 2, 2, 2)), None, r"X has shape \(2, 2, 2, 2\); BaseEstimator needs one vector per step"),
        ([np.zeros((2, 1)), [["a"]]], None, r"X\[1\] is not an array of numbers"),
        ([0.0, np.inf], None, "X contains infinity"),
        ([np.zeros(2), np.array([0.0, np.inf])], None, r"X\[1\] contains inf at step 1"),
    ],
)
def test_what_is_no_sequence_is_named(X, lengths, message):
    with pytest.raises(DataError, match=message):
        read(X, lengths)


def test_missing_values_are_kept_where_they_may_be():
    X = [np.array([[1.0], [np.nan]]), pd.DataFrame({"a": [3, None]}, dtype=object)]
    np.testing.assert_array_equal(read(X).values[:, 0].numpy(), [1.0, np.nan, 3.0, np.nan])
    with pytest.raises(DataError, match=r"X\[0\] contains nan at step 1; drop or fill it"):
        read(X, missing=False)


def test_rows_of_any_length_come_as_they_are():
    rows = read(Ragged.of([[1, 2], [3]]))
    assert (rows.values.tolist(), rows.values.dtype) == ([[1.0], [2.0], [3.0]], torch.float64)
    assert (rows.offsets.tolist(), rows.listed) == ([0, 2, 3], True)
    given = read(np.zeros((5, 1)), [2, 3])
    assert not read(given).listed
    assert not given.to(torch.float32).listed


def test_lengths_become_offsets():
    assert offsets_of([2, 3], 5).tolist() == [0, 2, 5]
    assert offsets_of(None, 5).tolist() == [0, 5]


@pytest.mark.parametrize("form", [pd.DataFrame, pl.DataFrame])
@pytest.mark.parametrize(
    "make",
    [
        lambda: HiddenMarkov(n_states=1, random_state=0),
        lambda: KalmanFilter(n_states=1, random_state=0),
        lambda: Regressor(network=GRU(2), inference=MAP(epochs=1), random_state=0),
    ],
    ids=["HiddenMarkov", "KalmanFilter", "Regressor"],
)
@pytest.mark.filterwarnings("ignore::likely.core.errors.ConvergenceWarning")
def test_sequences_in_frames_have_columns_of_one_order(make, form, tmp_path):
    """Each column was read by its place: the same rows with the columns exchanged had another likelihood."""
    values = np.random.default_rng(0).normal([0.0, 8.0], size=(9, 2))
    frames = [form({"a": part[:, 0], "b": part[:, 1]}) for part in (values[:4], values[4:])]
    turned = [form({"b": part[:, 1], "a": part[:, 0]}) for part in (values[:4], values[4:])]
    y = () if not hasattr(make(), "network") else ([1.0, 2.0],)
    model = make().fit(frames, *y)
    assert model.feature_names_in_.tolist() == ["a", "b"]
    plain = make().fit([values[:4], values[4:]], *y)
    np.testing.assert_array_equal(model.log_prob(frames, *y), plain.log_prob([values[:4], values[4:]], *y))
    with pytest.raises(DataError, match="X has frames with the columns b, a; the model was fitted on a, b"):
        model.log_prob(turned, *y)
    with pytest.raises(DataError, match=r"X\[1\] has the columns b, a, but X\[0\] has a, b"):
        make().fit([frames[0], turned[1]], *y)
    model.save(tmp_path / "model")
    with pytest.raises(DataError, match="the model was fitted on a, b"):
        load(tmp_path / "model").log_prob(turned, *y)


def test_likelihoods_by_name_find_the_columns_of_frames():
    frames = [pd.DataFrame({"b": [3.0, 5.0], "a": [0.5, 0.7]}), pd.DataFrame({"b": [1.0], "a": [-0.5]})]
    model = HiddenMarkov({"a": Normal(), "b": Poisson()}, 1, random_state=0).fit(frames)
    arrays = [frame[["a", "b"]].to_numpy() for frame in frames]
    same = HiddenMarkov([Normal(), Poisson()], 1, random_state=0).fit(arrays)
    np.testing.assert_allclose(model.log_prob(frames), same.log_prob(arrays), rtol=1e-9)
