"""Score and information of log p(y | η): closed forms of Normal and Poisson, and stand-ins where there is none."""

from __future__ import annotations

import math

import torch

from likely.likelihoods import Normal, Poisson
from likely.likelihoods.curvature import curvature

ETA = torch.tensor([[-1.0], [0.3], [2.0]], dtype=torch.float64)
Y = torch.tensor([0.0, 2.0, 5.0], dtype=torch.float64)


def test_normal_has_a_constant_information():
    """Known σ: score (y − η)/σ², information 1/σ²."""
    value, score, information = curvature(Normal(0.5).log_prob, ETA, Y)
    torch.testing.assert_close(value, -0.5 * ((Y - ETA[:, 0]) / 0.5) ** 2 - math.log(0.5 * math.sqrt(2 * math.pi)))
    torch.testing.assert_close(score[:, 0], (Y - ETA[:, 0]) / 0.25)
    torch.testing.assert_close(information[:, 0, 0], torch.full((3,), 4.0, dtype=torch.float64))


def test_poisson_has_its_mean_as_information():
    """Link log: score y − exp η, information exp η."""
    _, score, information = curvature(Poisson().log_prob, ETA, Y)
    torch.testing.assert_close(score, Y[:, None] - ETA.exp())
    torch.testing.assert_close(information[..., 0], ETA.exp())


def quadratic(matrix):
    """log p = −½ ηᵀ M η + y·Σ η."""
    return lambda eta, y: -0.5 * torch.einsum("ni,ij,nj->n", eta, matrix, eta) + y * eta.sum(-1)


def test_the_information_about_some_numbers_is_that_with_the_others_held():
    """It does not see that the whole is indefinite, and has the units of its own numbers alone."""
    indefinite = torch.tensor([[1.0, 2.0], [2.0, 1.0]], dtype=torch.float64)
    _, score, information = curvature(quadratic(indefinite), ETA.expand(3, 2), Y, 1)
    assert score.shape == (3, 2)
    torch.testing.assert_close(information, torch.ones(3, 1, 1, dtype=torch.float64))


def test_negative_curvature_is_taken_by_its_absolute_value():
    indefinite = torch.tensor([[1.0, 2.0], [2.0, 1.0]], dtype=torch.float64)  # eigenvalues 3 and −1
    _, score, information = curvature(quadratic(indefinite), ETA.expand(3, 2).clone(), Y)
    expected = torch.tensor([[2.0, 1.0], [1.0, 2.0]], dtype=torch.float64)  # the same vectors, 3 and 1
    torch.testing.assert_close(information, expected.expand(3, 2, 2))
    torch.testing.assert_close(score, -ETA.expand(3, 2) @ indefinite + Y[:, None])


def test_a_kink_has_the_outer_product_of_its_score():
    """log p = −|y − η| has no second derivative: the score ±1 squared stands in."""
    _, score, information = curvature(lambda eta, y: -(y - eta[..., 0]).abs(), ETA, Y)
    torch.testing.assert_close(score[:, 0], (Y - ETA[:, 0]).sign())
    torch.testing.assert_close(information, torch.ones(3, 1, 1, dtype=torch.float64))


def test_what_does_not_depend_on_eta_linearly_or_at_all_is_zero():
    _, score, information = curvature(lambda eta, y: 0.0 * eta[..., 0] + y, ETA, Y)
    assert float(score.abs().max()) == 0.0
    assert float(information.abs().max()) == 0.0
