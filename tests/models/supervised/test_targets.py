"""Targets of supervised models: a missing one has weight 0 and a stand-in inside the support."""

from __future__ import annotations

import pytest
import torch

from likely.core.errors import DataError
from likely.likelihoods import Normal, Poisson
from likely.models.supervised.targets import dataset_of, rows_of, without_gaps

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
