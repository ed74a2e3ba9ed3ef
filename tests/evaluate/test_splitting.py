import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch

from likely.core.errors import DataError
from likely.evaluate import split


@pytest.mark.parametrize("rows", [10, 97, 1000])
def test_parts_are_disjoint_and_complete(rows):
    index = np.arange(rows)
    parts = split(index[:, None], index, random_state=0)
    assert sorted(np.concatenate([y for _, y in parts])) == list(range(rows))
    for (X, y), share in zip(parts, (0.7, 0.2, 0.1), strict=True):
        np.testing.assert_array_equal(X[:, 0], y)
        assert abs(len(y) - share * rows) <= 1


def test_any_kind_of_rows_is_taken():
    rows = 20
    y = np.arange(rows)
    kinds = [
        torch.arange(rows)[:, None],
        pd.DataFrame({"a": y}),
        pl.DataFrame({"a": y}),
        [[i] for i in range(rows)],
    ]
    for X in kinds:
        (part, target), *_ = split(X, y, random_state=1)
        assert type(part) is type(X)
        assert np.asarray(part).ravel().tolist() == target.tolist()


def test_stratified_parts_have_the_same_proportions():
    y = np.repeat([0, 1], [160, 40])
    for _, part in split(np.zeros((200, 1)), y, stratify=True, random_state=0):
        assert part.mean() == pytest.approx(0.2)


def test_the_same_seed_gives_the_same_parts():
    X, y = np.arange(50)[:, None], np.arange(50)
    first, second = split(X, y, random_state=3), split(X, y, random_state=3)
    assert all((a[1] == b[1]).all() for a, b in zip(first, second, strict=True))
    assert (split(X, y, random_state=4)[0][1] != first[0][1]).any()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"sizes": (0.7, 0.2)}, r"sizes must be two or more positive parts that sum to 1; found \(0.7, 0.2\)"),
        ({"sizes": (1.0,)}, "sizes must be two or more"),
        ({"sizes": (0.99, 0.01)}, "10 rows are too few for sizes"),
        ({"X": np.zeros((3, 1))}, "X and y must have as many rows; X has 3, y has 10"),
    ],
)
def test_errors(arguments, message):
    with pytest.raises(DataError, match=message):
        split(**{"X": np.zeros((10, 1)), "y": np.zeros(10)} | arguments)
