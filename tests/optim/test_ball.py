"""Norm balls: nearest points, steepest directions, draws."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy import stats

from likely.core.random import drawing
from likely.optim.ball import dual, project, sizes, steepest, uniform

NORMS = (1.0, 2.0, math.inf)
ANY = (1.0, 1.3, 2.0, 3.0, 8.0, math.inf)


@pytest.fixture
def points():
    return torch.randn(40, 2, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64) * 2


@pytest.mark.parametrize("norm", ANY)
def test_dual_exponents_add_up_to_one(norm):
    assert 1 / norm + 1 / dual(norm) == pytest.approx(1)
    assert dual(dual(norm)) == pytest.approx(norm)


@pytest.mark.parametrize("norm", ANY)
def test_the_steepest_direction_reaches_the_dual_norm(norm, points):
    direction = steepest(points, norm)
    torch.testing.assert_close(sizes(direction, norm), torch.ones(40, dtype=torch.float64))
    torch.testing.assert_close((direction * points).flatten(1).sum(1), sizes(points, dual(norm)))


@pytest.mark.parametrize("norm", ANY)
@pytest.mark.parametrize("scale", [1e-30, 1e30])
def test_tiny_and_huge_gradients_keep_their_direction_in_float32(norm, scale, points):
    small = points.float()
    torch.testing.assert_close(steepest(small * scale, norm), steepest(small, norm), rtol=1e-4, atol=1e-5)


def test_no_gradient_is_no_direction():
    for norm in ANY:
        assert not steepest(torch.zeros(2, 3), norm).any()


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_projections_are_the_nearest_points_of_the_ball(norm, dtype, points):
    """b is nearest to a iff (a − b)ᵀ(c − b) ≤ 0 for all c of the ball: for those where a linear function is largest."""
    points = points.to(dtype)
    near = project(points, 1.5, norm)
    rounding = 100 * torch.finfo(dtype).eps
    assert bool((sizes(near, norm) <= 1.5 * (1 + rounding)).all())
    gap = points - near
    furthest = 1.5 * steepest(gap, norm)
    assert float((gap * (furthest - near)).flatten(1).sum(1).max()) <= rounding * 50
    inside = points * (1.4 / sizes(points, norm)).reshape(-1, 1, 1)
    torch.testing.assert_close(project(inside, 1.5, norm), inside)


@pytest.mark.parametrize("norm", NORMS)
def test_draws_fill_the_ball_evenly(norm, seed):
    """‖δ‖ᵈ/rᵈ is uniform on [0, 1], and signs are even: two tests at 1e-4 each."""
    with drawing(seed):
        draws = uniform(torch.zeros(2000, 3, dtype=torch.float64), 2.0, norm)
    volumes = (sizes(draws, norm) / 2.0) ** 3
    assert stats.kstest(volumes.numpy(), "uniform").pvalue > 1e-4
    assert stats.binomtest(int((draws[:, 0] > 0).sum()), 2000).pvalue > 1e-4


def test_every_row_has_a_norm_of_its_own():
    rows = torch.tensor([[3.0, 4.0], [0.3, 0.4]])
    np.testing.assert_allclose(project(rows, 1.0, 2), [[0.6, 0.8], [0.3, 0.4]], rtol=1e-6)
