"""The hyperparameters of a kernel as one vector: there and back, their bounds and their starts."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from likely.kernels import RBF, Constant
from likely.models.kernel.gp.hyperparameters import (
    every_hyperparameter,
    free,
    limits,
    load_hyperparameters,
    names_of,
    read,
    spread_out,
    write,
)

X = torch.tensor([[0.0, 0.0], [1.0, 10.0], [2.0, 20.0], [3.0, 0.0]], dtype=torch.float64)


@pytest.fixture
def kernel():
    return (Constant(3.0) * RBF((1.0, 2.0))).build(X).double()


def test_hyperparameters_go_there_and_back(kernel):
    parameters = free(kernel)
    assert read(parameters).exp().tolist() == pytest.approx([3.0, 1.0, 2.0])
    assert len(names_of(kernel)) == 3
    assert names_of(kernel)[1:] == ["lengthscale", "lengthscale"]
    write(parameters, torch.arange(3.0, dtype=torch.float64))
    assert read(parameters).tolist() == [0.0, 1.0, 2.0]
    assert read([]).shape == (0,)


def test_every_hyperparameter_goes_there_and_back(kernel):
    values = every_hyperparameter(kernel) + 0.5
    other = (Constant(9.0) * RBF((7.0, 7.0))).build(X).double()
    load_hyperparameters(other, values)
    assert torch.equal(every_hyperparameter(other), values)
    load_hyperparameters(kernel, values)
    assert torch.equal(kernel(X), other(X))


def test_what_is_suggested_has_the_units_of_the_data(kernel):
    (suggested,) = spread_out(kernel, X, 25.0, 1, seed=0)
    apart = np.abs(X.numpy()[:, None] - X.numpy()[None]).mean((0, 1)) * math.sqrt(2)
    np.testing.assert_allclose(suggested[1:].exp(), apart, rtol=1e-12)
    (ten_times,) = spread_out(kernel, 10 * X, 25.0, 1, seed=0)
    np.testing.assert_allclose(ten_times[1:] - suggested[1:], math.log(10), rtol=1e-10)


def test_other_starts_are_scattered_and_repeatable(kernel):
    first, second = (spread_out(kernel, X, 1.0, 4, seed=3) for _ in range(2))
    assert all(torch.equal(one, other) for one, other in zip(first, second, strict=True))
    assert len({tuple(start.tolist()) for start in first}) == 4
    assert torch.equal(first[0], spread_out(kernel, X, 1.0, 1, seed=9)[0])  # what data suggest is not random


def test_limits_reach_a_factor_around_start_and_suggestion(kernel):
    start = read(free(kernel))
    suggested = start + torch.tensor([2.0, -1.0, 0.0], dtype=torch.float64)
    for (low, high), one, other in zip(limits(kernel, math.e, suggested), start, suggested, strict=True):
        assert low == pytest.approx(min(one, other) - 1)
        assert high == pytest.approx(max(one, other) + 1)


@pytest.mark.parametrize("growth", [0.01, 5.0])
def test_variances_grow_no_further_than_they_may(kernel, growth):
    """Nor shrink, and lengthscales are as free as before."""
    start = read(free(kernel))
    (free_low, _), *scales = limits(kernel, 100.0, start)
    (low, high), *own = limits(kernel, 100.0, start, growth)
    assert high == pytest.approx(float(start[0]) + math.log(max(1.0, growth)))
    assert low == free_low
    assert own == scales
