"""The ends between which a number may change: they are in the support, and so is all between them."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch.distributions import constraints

from likely.core.spec import registered
from likely.likelihoods import Likelihood
from likely.probability.supports import ends_of

LIKELIHOODS = {
    name: cls.example() for name, cls in registered(Likelihood).items() if cls.__module__.startswith("likely.")
}


@pytest.mark.parametrize("name", LIKELIHOODS)
def test_all_between_the_ends_is_in_the_support_of_every_likelihood(name):
    support = LIKELIHOODS[name].support
    low, high = ends_of(support)
    if math.isnan(low):
        return
    places = np.clip(np.r_[np.linspace(-9, 9, 37), low, high], max(low, -1e30), min(high, 1e30))
    own = getattr(support, "base_constraint", support)
    for dtype in (torch.float32, torch.float64):
        assert bool(own.check(torch.tensor(places, dtype=dtype)).all())


def test_labels_counts_and_points_of_a_simplex_have_no_ends():
    for support in (constraints.boolean, constraints.nonnegative_integer, constraints.simplex):
        assert all(map(math.isnan, ends_of(support)))


def test_an_end_of_the_support_is_reached_and_another_nearly():
    assert ends_of(constraints.interval(-1.0, 2.0)) == (-1.0, 2.0)
    assert ends_of(constraints.greater_than_eq(3.0)) == (3.0, math.inf)
    low, high = ends_of(constraints.greater_than(3.0))
    assert 3.0 < low < 3.0 + 1e-6
    assert high == math.inf
    assert 0 < ends_of(constraints.positive)[0] < 1e-20
    assert ends_of(constraints.real_vector) == (-math.inf, math.inf)
