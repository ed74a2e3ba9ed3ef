"""Coordinates in which a log-density is about as wide in every direction."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from likely.inference.coordinates import Coordinates
from likely.inference.precondition import SMALL, hessian, precondition, stiffness


def normal(precision, mean):
    def slope(theta):
        moved = theta - mean
        return -0.5 * (moved @ precision * moved).sum(1), -moved @ precision

    return slope


@pytest.fixture
def precision(rng):
    """Of condition number 10⁶."""
    vectors = torch.linalg.qr(torch.from_numpy(rng.normal(size=(5, 5))))[0]
    return vectors @ torch.diag(torch.logspace(-2, 4, 5, dtype=torch.float64)) @ vectors.T


def test_a_normal_density_becomes_round(precision):
    mean = torch.arange(5.0, dtype=torch.float64)
    slope = normal(precision, mean)
    torch.testing.assert_close(hessian(slope, mean), precision, rtol=1e-6, atol=1e-5)
    made = precondition(slope, mean, 0, dense=True)
    torch.testing.assert_close(made.factor.T @ precision @ made.factor, torch.eye(5).double(), rtol=0.01, atol=0.01)
    assert float(stiffness(slope, made, mean.unsqueeze(0), 0)) == pytest.approx(1, abs=0.01)
    assert float(made.log_det()) == pytest.approx(-0.5 * float(torch.logdet(precision)), abs=0.01)


def test_axes_of_coordinates_are_conditional_widths(precision):
    mean = torch.zeros(5, dtype=torch.float64)
    made = precondition(normal(precision, mean), mean, 0, dense=False)
    ratio = made.factor * precision.diagonal().sqrt()
    assert (ratio / ratio[0] - 1).abs().max() <= 1e-5  # shortened together, as draws would leave the density


def test_stiffness_is_the_largest_eigenvalue(precision):
    mean = torch.zeros(5, dtype=torch.float64)
    largest = stiffness(normal(precision, mean), Coordinates(mean), mean.expand(2, 5), 0)
    np.testing.assert_allclose(largest, float(torch.linalg.eigvalsh(precision)[-1]), rtol=1e-3)


def test_a_kink_is_as_wide_as_its_sides_say():
    """log p = −|θ|/s has no curvature at 0; it falls by between ¼ and 1 over the axis found."""
    scale = torch.tensor([1e-3, 1.0, 5.0], dtype=torch.float64)

    def slope(theta):
        return -(theta.abs() / scale).sum(1), -theta.sign() / scale

    for dense in (True, False):
        made = precondition(slope, torch.zeros(3, dtype=torch.float64), 0, dense=dense)
        widths = made.factor.norm(dim=1) if dense else made.factor
        assert ((widths / scale > 0.2) & (widths / scale <= 1.1)).all()


def test_flat_directions_and_overflow_end_with_finite_axes():
    """exp overflows to one side, and the second number is not spoken of."""

    def slope(theta):
        rate = (1000 * theta[:, 0]).exp()
        return 1000 * theta[:, 0] - rate, torch.stack([1000 * (1 - rate), 0 * rate], 1)

    for dense in (True, False):
        made = precondition(slope, torch.zeros(2, dtype=torch.float64), 0, dense=dense)
        assert bool(made.factor.isfinite().all())
        widths = made.factor.norm(dim=1) if dense else made.factor
        assert 1e-4 < widths[0] < 2e-3
        assert 1 <= widths[1] <= 10


def test_many_dimensions_are_measured_by_random_signs():
    """Row norms of a diagonal Hessian are its diagonal, exactly."""
    d = SMALL + 100
    curvature = torch.from_numpy(np.random.default_rng(0).uniform(1, 100, size=d))
    mean = torch.zeros(d, dtype=torch.float64)
    made = precondition(normal(torch.diag(curvature), mean), mean, 0, dense=False)
    torch.testing.assert_close(made.factor, curvature.rsqrt(), rtol=1e-6, atol=0)


def test_a_matrix_lies_in_memory_by_rows(precision):
    """A checkpoint gives it back so, and a product with a matrix that lies otherwise has other bits."""
    made = precondition(normal(precision, torch.zeros(5, dtype=torch.float64)), torch.zeros(5).double(), 0, dense=True)
    assert made.factor.is_contiguous()
