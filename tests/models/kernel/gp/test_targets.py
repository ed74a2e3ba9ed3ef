"""Targets of a Gaussian process: labels by their place, numbers as they are, missing ones as NaN."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.exceptions import DataConversionWarning

from likely.core.errors import DataError
from likely.likelihoods import Bernoulli, Categorical, Normal, Poisson
from likely.models.kernel.gp.targets import counted, read_classes, read_targets


def test_classes_are_found_and_labels_are_their_places():
    labels = ["b", "a", None, "c", "a"]
    classes, likelihood = read_classes(labels, 5, Categorical())
    assert classes.tolist() == ["a", "b", "c"]
    assert likelihood == Categorical(classes=3)
    values = read_targets(labels, 5, likelihood, classes)
    np.testing.assert_array_equal(values, [1, 0, np.nan, 2, 0])


@pytest.mark.parametrize("form", [list, np.array, torch.tensor])
def test_numbers_of_any_form(form):
    values = read_targets(form([1.0, 2.0, float("nan")]), 3, Normal(), None)
    assert values.dtype == torch.float64
    np.testing.assert_array_equal(values, [1, 2, np.nan])


def test_a_column_is_read_as_numbers_with_a_warning():
    with pytest.warns(DataConversionWarning, match="A column-vector y was passed when a 1d array was expected"):
        values = read_targets([[1.0], [2.0]], 2, Normal(), None)
    assert values.tolist() == [1.0, 2.0]


@pytest.mark.parametrize(
    ("y", "likelihood", "words"),
    [
        (None, Normal(), "requires y to be passed, but the target y is None"),
        ([[1.0, 2.0]] * 3, Normal(), r"y has shape \(3, 2\); GaussianProcess with .* needs \(n,\)"),
        ([1.0, -1.0, 2.0], Poisson(), "y"),
    ],
)
def test_targets_that_do_not_fit_are_refused(y, likelihood, words):
    with pytest.raises(DataError, match=words):
        read_targets(y, 3, likelihood, None)


def test_labels_that_the_likelihood_does_not_know_are_refused():
    with pytest.raises(DataError, match=r"Only binary classification is supported by Bernoulli.*y has 3 classes"):
        read_classes([0, 1, 2], 3, Bernoulli())
    with pytest.raises(DataError, match=r"y has 3 classes .*which likelihood=Categorical"):
        read_classes([0, 1, 2], 3, Categorical(classes=4))


def test_only_rows_with_a_target_and_weight_count():
    x, y = torch.arange(4.0).unsqueeze(-1).double(), torch.tensor([1.0, torch.nan, 3.0, 4.0]).double()
    weight = torch.tensor([1.0, 1.0, 0.0, 2.0]).double()
    rows, targets, weights = counted(x, y, weight, Normal())
    assert (rows.ravel().tolist(), targets.tolist(), weights.tolist()) == ([0, 3], [1, 4], [1, 2])
    assert counted(x, y, None, Normal())[2].tolist() == [1, 1, 1]
    with pytest.raises(DataError, match="every one is missing"):
        counted(x, y * torch.nan, None, Normal())
    with pytest.raises(DataError, match="No target has weight"):
        counted(x, y, torch.tensor([0.0, 1.0, 0.0, 0.0]).double(), Normal())
