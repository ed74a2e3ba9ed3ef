"""The range of rows at the door: what bounds may be, and which radii are in other units."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from likely.core.errors import DataError
from likely.optim.ball import fill
from likely.optim.bounds import Bounds, bounds_of, check_radius

X = torch.tensor([[0.0, 0.5, 7.0], [1.0, 0.5, 9.0]] * 6)


def test_bounds_are_numbers_arrays_or_none():
    assert bounds_of(None, X) == Bounds()
    assert bounds_of((None, 9), X).clip(X + 1).max() == 9
    assert bounds_of((None, 9), X).clip(X - 99).min() == -99
    ends = bounds_of((X.min(0).values, X.max(0).values.numpy()), X)  # the second column is constant
    assert torch.equal(ends.clip(X + 100), X.max(0).values.expand_as(X))


def test_messages_hold_no_arrays():
    low, high = np.zeros(3), np.full(3, 8.0)
    with pytest.raises(DataError, match=r"row 1 has 9 where they are 0 to 8") as error:
        bounds_of((low, high), X)
    assert "from 0 to 0" in str(error.value)
    assert "array([" not in str(error.value)
    with pytest.raises(DataError, match=r"an array \(3,\) from 8 to 8.*low must be below high"):
        bounds_of((high, low), X)
    for wrong in (3, "ab", (0, 1, 2), (np.zeros(2), 9), (math.nan, 9), (9, 9)):
        with pytest.raises(DataError, match=r"must be \(low, high\)|low must be below high"):
            bounds_of(wrong, X)


def test_a_radius_is_in_the_units_of_all_that_is_known():
    with pytest.raises(DataError, match="radius=20 is beyond the range of X, which goes from 0 to 9"):
        check_radius(20.0, math.inf, X, Bounds())
    check_radius(20.0, math.inf, X, Bounds(), learned=(-10.0, 15.0))
    check_radius(20.0, math.inf, X, Bounds(torch.tensor(-30.0), torch.tensor(30.0)))
    check_radius(20.0, 1, X, Bounds())  # 3 columns of 9
    check_radius(20.0, math.inf, X[:1], Bounds())  # one row may be anywhere
    with pytest.raises(DataError, match="beyond the range of X"):
        check_radius(20.0, math.inf, X[:1], Bounds(), learned=(0.0, 10.0))
    with pytest.raises(DataError, match=r"units of X\.$"):
        check_radius(20.0, math.inf, X, Bounds(), advice="")


def test_filling_is_the_best_change_of_a_linear_function(seed):
    """No other point of the 1-ball inside the box does better: 2,000 random ones, put on its edge."""
    generator = torch.Generator().manual_seed(seed % 2**31)
    gradient = torch.randn(5, 6, generator=generator, dtype=torch.float64)
    room = torch.rand(5, 6, generator=generator, dtype=torch.float64)
    best = fill(gradient, room, 1.0)
    assert bool((best.abs() <= room + 1e-12).all())
    assert bool((best.abs().sum(1) <= 1 + 1e-12).all())
    others = torch.rand(2000, 5, 6, generator=generator, dtype=torch.float64) * room * gradient.sign()
    others = others / others.abs().sum(2, keepdim=True).clamp_min(1)
    assert bool(((gradient * others).sum(2) <= (gradient * best).sum(1) + 1e-12).all())
