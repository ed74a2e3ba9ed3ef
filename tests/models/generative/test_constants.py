"""Columns of one value and columns that follow from others are named, whatever is missing in them."""

from __future__ import annotations

import math
import warnings
from types import SimpleNamespace

import pytest
import torch

from likely.core.errors import ApproximationWarning
from likely.models.generative.constants import warn_of_constants, warn_of_copies


def model(shape):
    return SimpleNamespace(form_=SimpleNamespace(shape=shape, columns=()), _name=lambda column: f"'c{column}'")


def test_a_column_of_one_value_is_named():
    rows = torch.tensor([[1.0, 7.0], [2.0, math.nan], [3.0, 7.0]])
    with pytest.warns(ApproximationWarning, match="Column 'c1' of X has one value in all rows"):
        warn_of_constants(model((2,)), rows)


@pytest.mark.parametrize("shape", [(2,), (1, 1, 2)])
def test_columns_that_vary_and_pixels_that_do_not_are_left_alone(shape):
    rows = torch.tensor([[1.0, 5.0], [2.0, 6.0]]) if shape == (2,) else torch.ones(2, *shape)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_of_constants(model(shape), rows)


def test_a_sum_of_columns_is_named():
    rows = torch.randn(20, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    rows[:, 2] = rows[:, 0] - 5 * rows[:, 1] + 3
    rows[4, 1] = math.nan
    with pytest.warns(ApproximationWarning, match="Column 'c[012]' of X follows from the others"):
        warn_of_copies(model((3,)), rows, [0, 1, 2])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_of_copies(model((3,)), rows, [0, 2])
        warn_of_copies(model((3,)), rows[:3], [0, 1, 2])  # too few rows to tell
