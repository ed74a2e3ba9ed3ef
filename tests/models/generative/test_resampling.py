"""Gaps by importance resampling: the conditional of a Gaussian is recovered."""

from __future__ import annotations

import math

import torch

from likely.core.random import isolated
from likely.models.generative.resampling import Kinds, Resampled

ROOT = torch.tensor([[1.0, 0.0], [0.8, 0.6]], dtype=torch.float64)


class Gaussian:
    """A density of two columns with correlation 0.8."""

    def sample(self, count, condition=None):
        return torch.randn(count, 2, dtype=torch.float64) @ ROOT.mT

    def log_prob(self, x, condition=None):
        joint = torch.distributions.MultivariateNormal(torch.zeros(2).double(), scale_tril=ROOT)
        return joint.log_prob(x)


def test_draws_have_the_moments_of_the_conditional(seed):
    """x₂ | x₁ = 1 is N(0.8, 0.6²). 2,000 draws of 4,096 candidates: their error is below √(1/2000 + 3/4096)·0.6,

    and 6 of these are allowed: false alarm below 1e-8."""
    row = torch.tensor([[1.0, math.nan]], dtype=torch.float64)
    with isolated(seed):
        filled = Resampled().complete(Gaussian(), row, None, 2_000)
    values = filled[:, 0, 1]
    error = 0.6 * math.sqrt(1 / 2_000 + 3 / 4_096)
    assert torch.equal(filled[:, 0, 0], torch.ones(2_000).double())
    assert abs(float(values.mean()) - 0.8) < 6 * error
    assert abs(float(values.std()) - 0.6) < 6 * error


def test_kernels_of_integers_and_labels_are_probabilities():
    rows = torch.tensor([[2.0, 1.0]], dtype=torch.float64)
    kinds = Kinds(coded=torch.tensor([False, True]), step=torch.tensor([1.0, 0.0], dtype=torch.float64))
    width = torch.tensor([1.5, 1.0], dtype=torch.float64)
    places = torch.arange(-20, 25).double()
    x = torch.stack([places, torch.ones_like(places)], 1)
    mass = kinds.log_kernel(x, rows, width, torch.tensor([True, True]), 0.0).exp().sum()
    torch.testing.assert_close(mass, torch.ones((), dtype=torch.float64))
    other = torch.tensor([[2.0, 0.0]], dtype=torch.float64)
    assert float(kinds.log_kernel(other, rows, width, torch.tensor([True, True]), 0.0)) == -math.inf
