"""Families of normal distributions: draws, log q, its gradient and the covariance are those of torch's own normal."""

from __future__ import annotations

import pytest
import torch
from torch.distributions import MultivariateNormal

from likely.inference.variational.gaussian_family import FullRank, LowRank, MeanField

D, RANK = 4, 2


def draw(*shape, seed=0):
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


FAMILIES = {
    "mean-field": lambda: MeanField(draw(D)),
    "low-rank": lambda: LowRank(draw(D), draw(D, RANK, seed=1)),
    "full-rank": lambda: FullRank(draw(D)),
}


@pytest.fixture(params=FAMILIES)
def family(request):
    """With parameters that learning might have led to."""
    made = FAMILIES[request.param]()
    with torch.no_grad():
        for seed, parameter in enumerate(made.parameters()):
            parameter.add_(0.5 * draw(*parameter.shape, seed=10 + seed))
    return made


def reference(family):
    """The map is affine in the noise: its columns are what unit vectors do."""
    columns = (family.draw(torch.eye(family.columns, dtype=torch.float64)) - family.shift).detach()
    return MultivariateNormal(family.shift.detach(), columns.T @ columns)


def test_log_q_and_its_gradient_are_those_of_a_normal(family):
    noise = draw(6, family.columns, seed=3)
    phi = family.draw(noise).detach().requires_grad_()
    expected = reference(family).log_prob(phi)
    (gradient,) = torch.autograd.grad(expected.sum(), phi)
    log_q, score = family.score(noise)
    torch.testing.assert_close(log_q, expected.detach())
    torch.testing.assert_close(score, gradient)


def test_what_was_learned_is_the_same_normal(family):
    """Cov = diag(s²) + VVᵀ, whichever of the two parts there are."""
    learned, covariance = family.gaussian(), torch.zeros(D, D, dtype=torch.float64)
    if learned.scale is not None:
        covariance = covariance + torch.diag(learned.scale.square())
    if learned.factor is not None:
        covariance = covariance + learned.factor @ learned.factor.T
    torch.testing.assert_close(learned.mean, family.shift.detach())
    torch.testing.assert_close(covariance, reference(family).covariance_matrix)


def test_draws_are_differentiable_in_all_that_is_learned(family):
    loss = family.draw(draw(6, family.columns, seed=3)).square().sum()
    for gradient in torch.autograd.grad(loss, list(family.parameters())):
        assert bool(gradient.isfinite().all())
        assert float(gradient.abs().max()) > 0


def test_learning_starts_at_unit_scales():
    torch.testing.assert_close(reference(FAMILIES["full-rank"]()).covariance_matrix, torch.eye(D, dtype=torch.float64))
    factor = draw(D, RANK, seed=1)
    expected = torch.eye(D, dtype=torch.float64) + factor @ factor.T
    torch.testing.assert_close(reference(FAMILIES["low-rank"]()).covariance_matrix, expected)
