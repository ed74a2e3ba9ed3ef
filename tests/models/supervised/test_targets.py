"""Targets of supervised models: a missing one has weight 0 and a stand-in inside the support."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch

from likely import Regressor
from likely.core.errors import DataError
from likely.likelihoods import MultivariateNormal, Normal, Poisson, Product
from likely.models.supervised.targets import by_part, dataset_of, rows_of, without_gaps

X = torch.zeros(3, 2, dtype=torch.float64)


def test_a_missing_target_has_no_weight():
    y, weight = torch.tensor([1.0, torch.nan, 2.0]).double(), torch.tensor([2.0, 3.0, 0.5]).double()
    assert dataset_of(Normal(), X, y, weight, torch.float64, offsets=None).weight.tolist() == [2.0, 0.0, 0.5]
    assert dataset_of(Normal(), X, y, None, torch.float64, offsets=None).weight.tolist() == [1.0, 0.0, 1.0]
    assert dataset_of(Normal(), X, y.nan_to_num(), None, torch.float64, offsets=None).weight is None


def test_a_stand_in_is_inside_the_support():
    y, missing = without_gaps(Poisson(), torch.tensor([3.0, torch.nan]))
    assert missing.tolist() == [False, True]
    assert bool(Poisson().support.check(y).all())


def test_targets_of_which_none_counts_are_refused():
    nothing = torch.full((3,), torch.nan).double()
    with pytest.raises(DataError, match="y has no target at all: every one is missing"):
        dataset_of(Normal(), X, nothing, None, torch.float64, offsets=None)
    with pytest.raises(DataError, match="No target has weight"):
        dataset_of(Normal(), X, torch.zeros(3).double(), torch.zeros(3).double(), torch.float64, offsets=None)


def test_shapes_in_words():
    assert (rows_of(()), rows_of((2,))) == ("(n,)", "(n, 2)")


@pytest.mark.parametrize("form", [dict, pd.DataFrame, pl.DataFrame])
def test_columns_are_matched_with_the_parts_by_name(form):
    """Both columns are counts, so that their order alone would fit either part."""
    both = Product({"size": Normal(), "visits": Poisson()})
    size, visits = np.array([4.0, 9.0, 14.0, 20.0]), np.array([1.0, np.nan, 3.0, 1.0])
    X = np.arange(4.0)[:, None]
    model = Regressor(both).fit(X, np.column_stack([size, visits]))
    swapped = form({"visits": visits, "size": size})
    np.testing.assert_array_equal(Regressor(both).fit(X, swapped).predict(X), model.predict(X))
    np.testing.assert_array_equal(model.log_prob(X, swapped), model.log_prob(X, np.column_stack([size, visits])))


def test_columns_of_other_names_are_in_the_order_of_the_parts():
    frame = pd.DataFrame({"u": [1.0], "v": [2.0]})
    assert by_part(Product({"size": Normal(), "visits": Poisson()}), frame) is frame
    ahead = pd.DataFrame({"x": [1.0], "y": [2.0], "visits": [3.0]})
    assert by_part(Product({"place": MultivariateNormal(dim=2), "visits": Poisson()}), ahead) is ahead


@pytest.mark.parametrize(
    ("likelihood", "y", "text"),
    [
        (Product({"a": Normal(), "b": Normal()}), {"a": [1.0, 2.0]}, "y has the columns a; Product needs .*part, a, b"),
        (
            Product({"a": Normal(), "b": Normal()}),
            pd.DataFrame({"b": [1.0, 2.0], "c": [1.0, 2.0]}),
            "y has the columns b, c; Product needs a column for each part, a, b",
        ),
        (Product({"a": Normal(), "b": Normal()}), {"a": [1.0], "b": [1.0, 2.0]}, "columns of different lengths: 1, 2"),
        (Normal(), {"a": [1.0, 2.0]}, "y has the columns a; Normal needs an array"),
        (Normal(), [{}, {}], "^y: "),
    ],
)
def test_columns_that_fit_no_part_are_refused(likelihood, y, text):
    with pytest.raises(DataError, match=text):
        Regressor(likelihood).fit([[0.0], [1.0]], y)
