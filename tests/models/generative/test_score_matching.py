"""Score matching: the three losses have one minimiser, and it is the score."""

from __future__ import annotations

import pytest
import torch

from likely.models.generative.score_matching import denoising_loss, explicit_loss, sliced_loss

SIZE = 3


@pytest.fixture
def rows(seed):
    generator = torch.Generator().manual_seed(seed)
    mixing = torch.randn(SIZE, SIZE, generator=generator, dtype=torch.float64)
    return torch.randn(40, SIZE, generator=generator, dtype=torch.float64) @ mixing + 1.0


def best_linear(loss):
    """A and b of s(x) = Ax + b at which a loss, quadratic in them, is least: one Newton step from anywhere."""

    def value(flat):
        matrix, shift = flat[: SIZE**2].view(SIZE, SIZE), flat[SIZE**2 :]
        return loss(lambda x: x @ matrix.T + shift).mean()

    start = torch.zeros(SIZE**2 + SIZE, dtype=torch.float64)
    hessian = torch.func.jacrev(torch.func.grad(value))(start)
    flat = start - torch.linalg.solve(hessian, torch.func.grad(value)(start))
    return flat[: SIZE**2].view(SIZE, SIZE), flat[SIZE**2 :]


def test_explicit_matching_of_a_linear_score_gives_minus_the_precision(rows):
    """The score of N(μ, Σ) is −Σ⁻¹(x − μ), and the loss sees no more of rows than their moments."""
    matrix, shift = best_linear(lambda score: explicit_loss(score, rows))
    precision = torch.linalg.inv(rows.T.cov(correction=0))
    torch.testing.assert_close(matrix, -precision)
    torch.testing.assert_close(shift, precision @ rows.mean(0))


def test_sliced_matching_has_the_same_minimiser(rows):
    """Directions ±√d·eᵢ have E vvᵀ = I, so their mean is the expectation."""
    directions = SIZE**0.5 * torch.eye(SIZE, dtype=rows.dtype)

    def sliced(score):
        return torch.stack([sliced_loss(score, rows, v.expand_as(rows)) for v in directions]).mean(0)

    for mine, theirs in zip(best_linear(sliced), best_linear(lambda s: explicit_loss(s, rows)), strict=True):
        torch.testing.assert_close(mine, theirs)


def test_denoising_matching_gives_the_score_of_rows_with_noise(rows):
    """Noise ±√d·eᵢ has mean 0 and covariance I: the minimiser is −(Σ + σ²I)⁻¹(x − μ)."""
    sigma = 0.7
    noises = SIZE**0.5 * torch.cat([torch.eye(SIZE), -torch.eye(SIZE)]).double()

    def denoising(score):
        return torch.stack([denoising_loss(score, rows, e.expand_as(rows), sigma) for e in noises]).mean(0)

    matrix, shift = best_linear(denoising)
    precision = torch.linalg.inv(rows.T.cov(correction=0) + sigma**2 * torch.eye(SIZE, dtype=rows.dtype))
    torch.testing.assert_close(matrix, -precision)
    torch.testing.assert_close(shift, precision @ rows.mean(0))


def test_the_losses_differ_from_the_fisher_divergence_by_a_constant(rows):
    """For rows of N(0, 1) by quadrature: loss(s) − F(s) is −½E‖∇ log p‖² = −½ whatever s is."""
    points, weights = (torch.as_tensor(part) for part in _normal_quadrature())
    for score in (torch.sin, lambda x: -0.3 * x**2, lambda x: -x):
        fisher = 0.5 * ((score(points) + points).square().ravel() * weights).sum()
        loss = (explicit_loss(score, points) * weights).sum()
        assert float(loss - fisher) == pytest.approx(-0.5)


def _normal_quadrature():
    import numpy as np

    points, weights = np.polynomial.hermite_e.hermegauss(60)
    return points[:, None], weights / weights.sum()
