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


def turning(matrix):
    """A field whose network says A x/√q: f(x, t) = ((2t − 1) I + A)/q · x, q = t² + (1 − t)²."""
    field = VelocityField(Continuous(tol=1e-10), (2,), MLP(())).double()
    affine = field.field.network.network
    affine.weight.data.zero_()
    affine.weight.data[:, :2] = matrix / field.gain  # and none of the features of time
    affine.bias.data.zero_()
    return field


def test_a_linear_field_has_the_closed_form_of_gaussians():
    """∫ (2t − 1)/q dt = 0 and ∫ 1/q dt = π/2: the field carries N(0, I) to N(0, e^{πA/2} e^{πAᵀ/2})."""
    matrix = torch.tensor([[0.5, 0.3], [-0.4, 0.2]], dtype=torch.float64)
    field = turning(matrix)
    with torch.no_grad():
        x = torch.randn(20, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
        z, log_det = field(x)
        root = torch.linalg.matrix_exp(math.pi / 2 * matrix)
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


def test_the_loss_of_matching_is_zero_for_the_field_of_a_rotation():
    """Data is the noise turned by a right angle R, row by row: x − z = ((2t − 1) I + R)/q · xₜ."""
    angle = torch.tensor([[0.0, -1.0], [1.0, 0.0]], dtype=torch.float64)
    field = turning(angle)
    with torch.no_grad(), isolated(0):
        z = torch.randn(50, 2, dtype=torch.float64)
        torch.testing.assert_close(field.matching(z @ angle.mT, z), torch.zeros(50).double())
        torch.testing.assert_close(field.inverse(z), z @ angle.mT, atol=1e-8, rtol=0)
        assert (field.matching(z, z) < -1e-3).any()


def test_the_network_of_a_field_has_targets_of_variance_one(seed):
    """A network that says 0 loses ½ per number at every time: 20,000 rows within 5 standard errors, false alarm 6e-7.

    It leaves noise as it is.
    """
    field = turning(torch.zeros(2, 2))
    with torch.no_grad(), isolated(seed):
        x, z = torch.randn(2, 20_000, 2, dtype=torch.float64)
        loss = -field.matching(x, z)
        torch.testing.assert_close(field.inverse(z[:10]), z[:10], atol=1e-8, rtol=0)
    assert abs(float(loss.mean()) - 1.0) < 5 * float(loss.std()) / math.sqrt(20_000)


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
