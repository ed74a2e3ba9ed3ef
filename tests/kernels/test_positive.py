"""Positive numbers as exponentials of parameters: exact where they start, free to move, refused where not positive."""

from __future__ import annotations

import math

import pytest
import torch

from likely.core.errors import DataError, SpecError
from likely.kernels import RBF
from likely.kernels.positive import Positive, columns_of


@pytest.mark.parametrize("value", [0.1, 3, (0.1, 2.0, 1 / 3)])
def test_what_was_not_learned_is_given_back_to_the_bit(value):
    positive = Positive(value)
    assert positive.number() == value
    torch.testing.assert_close(positive().detach(), torch.tensor(value, dtype=torch.float64), rtol=1e-14, atol=0)


def test_the_parameter_is_the_logarithm():
    """dv/d log v = v, and any real parameter gives a positive number."""
    positive = Positive(0.3)
    positive().backward()
    assert positive.log.grad.item() == pytest.approx(0.3, rel=1e-12)
    with torch.no_grad():
        positive.log.fill_(-50.0)
    assert positive.number() == pytest.approx(math.exp(-50), rel=1e-12)


def test_several_numbers_come_back_as_a_tuple():
    positive = Positive((1.0, 2.0))
    with torch.no_grad():
        positive.log.add_(math.log(3.0))
    assert positive.number() == pytest.approx((3.0, 6.0), rel=1e-12)
    assert isinstance(positive.number(), tuple)


def test_held_numbers_take_no_gradient():
    assert not Positive(1.0, learn=False)().requires_grad


@pytest.mark.parametrize("value", [0.0, -1.0, math.inf, math.nan, True, (), (1.0, 0.0)])
def test_numbers_that_are_not_positive_are_refused(value):
    with pytest.raises(SpecError, match="lengthscale must be a positive number, or one for each column"):
        RBF(value)


def test_length_scales_must_be_as_many_as_columns():
    columns_of(RBF(), (1.0, 2.0), torch.zeros(5, 2))
    with pytest.raises(DataError, match="has 2 length scales, but rows of 3 columns"):
        columns_of(RBF((1.0, 2.0)), (1.0, 2.0), torch.zeros(5, 3))
