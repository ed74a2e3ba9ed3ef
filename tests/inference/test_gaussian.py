"""One normal distribution of parameters under every posterior that is one."""

from __future__ import annotations

import pytest
import torch
from torch.distributions import MultivariateNormal

from likely.inference.gaussian import Gaussian

D, K = 3, 2


def made(*parts):
    torch.manual_seed(0)
    numbers = {"scale": torch.rand(D).double() + 0.5, "factor": torch.randn(D, D if "square" in parts else K).double()}
    return Gaussian(torch.randn(D).double(), **{name: numbers[name] for name in ("scale", "factor") if name in parts})


@pytest.mark.parametrize("parts", [("scale",), ("scale", "factor"), ("factor", "square")], ids=str)
def test_density_and_moments_are_those_of_the_covariance(parts):
    gaussian = made(*parts)
    covariance = gaussian.covariance()
    torch.testing.assert_close(gaussian.variance(), covariance.diagonal())
    theta = torch.randn(4, D).double()
    expected = MultivariateNormal(gaussian.mean, covariance).log_prob(theta)
    torch.testing.assert_close(gaussian.log_prob(theta), expected)


@pytest.mark.parametrize("parts", [("scale",), ("scale", "factor"), ("factor",)], ids=str)
def test_draws_have_the_mean_and_the_covariance(parts, seed):
    """100,000 draws: a bound of 6 standard errors of a covariance, σᵢσⱼ √(2/n); false alarms below 1e-7."""
    gaussian, count = made(*parts), 100_000
    draws = gaussian.draw(count, torch.Generator().manual_seed(seed))
    width = gaussian.variance().sqrt()
    assert ((draws.mean(0) - gaussian.mean).abs() <= 6 * width / count**0.5).all()
    bound = 6 * torch.outer(width, width) * (2 / count) ** 0.5
    assert ((torch.cov(draws.T) - gaussian.covariance()).abs() <= bound).all()


def test_mirrored_draws_have_the_mean_exactly():
    gaussian = made("scale", "factor")
    draws = gaussian.draw(10, torch.Generator().manual_seed(0), mirrored=True)
    torch.testing.assert_close(draws.mean(0), gaussian.mean)


def test_leading_axes_are_independent_vectors(seed):
    """50,000 draws: each covariance within 6 standard errors."""
    one = made("scale", "factor")
    both = Gaussian(torch.stack([one.mean, -one.mean]), None, torch.stack([one.factor, 2 * one.factor]))
    draws = both.draw(50_000, torch.Generator().manual_seed(seed))
    assert draws.shape == (50_000, 2, D)
    joint = torch.cov(draws.flatten(1).T)
    width = both.variance().sqrt().flatten()
    bound = 6 * torch.outer(width, width) * (2 / 50_000) ** 0.5
    assert ((joint - torch.block_diag(*both.covariance())).abs() <= bound).all()


def test_gradients_go_through_the_draws():
    scale = torch.ones(D, requires_grad=True)
    Gaussian(torch.zeros(D), scale).draw(4, torch.Generator().manual_seed(0)).sum().backward()
    noise = torch.randn(4, D, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(scale.grad, noise.sum(0))
