"""Covariances as numbers without constraints: there and back, and every number counts."""

from __future__ import annotations

import pytest
import torch

from likely.probability.free_covariance import covariance_of, free_of


@pytest.mark.parametrize("size", [1, 2, 4])
def test_numbers_and_covariances_are_inverse(size):
    free = torch.randn(5, size * (size + 1) // 2, dtype=torch.float64)
    covariance = covariance_of(free, size)
    assert bool((torch.linalg.eigvalsh(covariance) > 0).all())
    torch.testing.assert_close(free_of(covariance, 1e-12), free, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("size", [1, 3])
def test_no_number_is_without_effect(size):
    """The Jacobian has full rank: a chain over φ has no direction along which nothing changes."""
    free = torch.randn(size * (size + 1) // 2, dtype=torch.float64)
    jacobian = torch.autograd.functional.jacobian(lambda phi: covariance_of(phi, size).flatten(), free)
    assert torch.linalg.matrix_rank(jacobian) == len(free)


def test_a_covariance_without_full_rank_ends_just_above_it():
    flat = torch.tensor([[1.0, 1.0], [1.0, 1.0]]).double()
    torch.testing.assert_close(covariance_of(free_of(flat, 1e-6), 2), flat, atol=2e-6, rtol=0)
