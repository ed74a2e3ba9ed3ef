"""Gaussian components as a function of free numbers: there and back, above the floor, and with true gradients."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from likely.models.emissions.gaussian_density import Units, from_free, smooth_log_prob, to_free

KINDS = ("full", "tied", "diag", "spherical")
STARTS, COMPONENTS, COLUMNS = 2, 3, 3
FLOOR = 1e-3


def units(kind):
    return Units(torch.tensor([1.0, -2.0, 100.0]).double(), torch.tensor([4.0, 1e-4, 1e6]).double(), FLOOR, kind)


def free_numbers(kind, scale=0.5):
    generator = torch.Generator().manual_seed(0)
    entries = COLUMNS * (COLUMNS + 1) // 2
    sizes = {"full": (COMPONENTS, entries), "tied": (1, entries), "diag": (COMPONENTS, COLUMNS)}
    shape = (STARTS, *sizes.get(kind, (COMPONENTS, 1)))
    mean = torch.randn(STARTS, COMPONENTS, COLUMNS, generator=generator, dtype=torch.float64)
    covariance = scale * torch.randn(shape, generator=generator, dtype=torch.float64)
    return {"mean": mean, "covariance": covariance}


@pytest.mark.parametrize("kind", KINDS)
def test_free_numbers_and_parameters_are_inverse(kind):
    free = free_numbers(kind)
    back = to_free(from_free(free, units(kind)), units(kind))
    for name, value in free.items():
        torch.testing.assert_close(back[name], value, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scale", [1.0, 30.0])
def test_any_numbers_give_a_covariance_above_the_floor(kind, scale):
    """In units of the columns no direction has less variance than the floor, however wild the numbers."""
    params = from_free(free_numbers(kind, scale), units(kind))
    variance = units(kind).variance
    if units(kind).matrix:
        inner = params["covariance"] / torch.outer(variance.sqrt(), variance.sqrt())
        values = torch.linalg.eigvalsh(inner)
        assert bool((values[..., 0] >= FLOOR - 1e-12 * values[..., -1]).all())
    else:
        least = variance if kind == "diag" else variance.mean()
        assert bool((params["covariance"] >= FLOOR * least * (1 - 1e-12)).all())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("missing", [False, True])
def test_gradients_in_free_numbers_are_those_of_differences(kind, missing):
    """Also where values are missing: 0 · NaN must not enter."""
    x = torch.tensor([[0.5, -2.01, 700.0], [3.0, -1.99, -400.0]]).double()
    if missing:
        x[0, 1], x[1, 0], x[1, 2] = torch.nan, torch.nan, torch.nan
    free = free_numbers(kind, 0.3)

    def log_prob(mean, covariance):
        params = from_free({"mean": mean, "covariance": covariance}, units(kind))
        return smooth_log_prob(params, x, matrix=units(kind).matrix)

    inputs = [value.requires_grad_() for value in free.values()]
    assert bool(log_prob(*inputs).isfinite().all())
    assert torch.autograd.gradcheck(log_prob, inputs, rtol=1e-4, atol=1e-6)


def test_the_density_is_the_same_in_other_units():
    """x → ax + b: log p changes by −Σ log a, the same free numbers meaning the same component."""
    x = torch.randn(5, COLUMNS, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    factor = torch.tensor([2.0, 1e3, 1e-4]).double()
    plain = Units(torch.zeros(3).double(), torch.ones(3).double(), FLOOR, "full")
    scaled = Units(torch.full((3,), 7.0).double(), factor.square(), FLOOR, "full")
    free = free_numbers("full")
    expected = smooth_log_prob(from_free(free, plain), x, matrix=True) - factor.log().sum()
    moved = smooth_log_prob(from_free(free, scaled), 7.0 + factor * x, matrix=True)
    np.testing.assert_allclose(moved, expected, rtol=1e-9, atol=1e-8)
