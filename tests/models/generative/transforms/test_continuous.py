"""Continuous flows: the closed form of a linear field, traces, and the loss of flow matching."""

from __future__ import annotations

import math

import pytest
import torch

from likely.core.errors import SpecError
from likely.core.random import isolated
from likely.models.generative.base_density import BaseDensity
from likely.models.generative.divergence import signs_like
from likely.models.generative.transforms import Continuous, VelocityField
from likely.networks import MLP


def test_a_linear_field_has_the_closed_form_of_gaussians():
    """dx/dt = A x carries N(0, I) to N(0, e^A e^Aᵀ)."""
    matrix = torch.tensor([[0.5, 0.3], [-0.4, 0.2]], dtype=torch.float64)
    field = VelocityField(Continuous(tol=1e-10), (2,), MLP(())).double()
    with torch.no_grad():
        affine = field.field.network.network
        affine.weight.zero_()
        affine.weight[:, :2] = matrix  # and none of the features of time
        affine.bias.zero_()
        x = torch.randn(20, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
        z, log_det = field(x)
        root = torch.linalg.matrix_exp(matrix)
        expected = torch.distributions.MultivariateNormal(torch.zeros(2).double(), root @ root.mT).log_prob(x)
        torch.testing.assert_close(BaseDensity("normal", (2,)).log_prob(z) + log_det, expected, atol=1e-8, rtol=0)


def test_the_estimated_trace_has_the_exact_mean(seed):
    """The mean of 2000 estimates is within 5 standard errors of the trace: false alarm 6e-7."""
    with isolated(seed):
        field = VelocityField(Continuous(), (3,), MLP((8, 8), activation="tanh")).double()
        row = torch.randn(1, 3, dtype=torch.float64)
        rows = row.expand(2000, -1)
        with torch.no_grad():
            exact = field._with_trace(row, 0.5, None, None)[1]
            draws = field._with_trace(rows, 0.5, None, signs_like(rows))[1]
    assert abs(float(draws.mean() - exact)) < 5 * float(draws.std()) / math.sqrt(2000) + 1e-12


def test_the_loss_of_matching_is_zero_for_the_field_of_a_shift():
    """Data is the noise moved by c, row by row: the field that is c everywhere has no loss."""
    field = VelocityField(Continuous(), (2,), MLP(())).double()
    shift = torch.tensor([1.5, -0.5], dtype=torch.float64)
    with torch.no_grad(), isolated(0):
        affine = field.field.network.network
        affine.weight.zero_()
        affine.bias.copy_(shift)
        z = torch.randn(50, 2, dtype=torch.float64)
        torch.testing.assert_close(field.matching(z + shift, z), torch.zeros(50).double())
        torch.testing.assert_close(field.matching(z + shift + 1.0, z), torch.full((50,), -1.0).double())


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Continuous(trace="none"), 'trace must be "exact" or "hutchinson"'),
        (lambda: Continuous(tol=0.0), "tol must be from 1e-13"),
        (lambda: Continuous(steps=0), "steps must be an integer from 1"),
        (lambda: Continuous(training="score"), 'training must be "matching" or "likelihood"'),
    ],
)
def test_choices_that_mean_nothing_are_named(make, message):
    with pytest.raises(SpecError, match=message):
        make()
