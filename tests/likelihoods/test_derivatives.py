"""Closed-form scores and informations against automatic differentiation, for every likelihood that has its own."""

from __future__ import annotations

import math

import pytest
import torch

from likely.core.spec import registered
from likely.likelihoods import (
    Beta,
    Gamma,
    Laplace,
    Likelihood,
    MultivariateNormal,
    NegativeBinomial,
    Normal,
    Ordinal,
    Poisson,
    Product,
    StudentT,
    ZeroInflated,
)
from likely.likelihoods.curvature import curvature

SPECS = [*(cls.example() for cls in registered(Likelihood).values()), Normal(scale=0.7), Normal(scale="input")]
OTHERS = [
    Laplace(scale=0.7),
    Laplace(scale="input"),
    Gamma(4.0),
    Beta("input"),
    NegativeBinomial(0.5),
    StudentT(df="learned", scale="input"),
    StudentT(df="input", scale=2.0),
    ZeroInflated(NegativeBinomial(), "input"),
    Ordinal(5),
    MultivariateNormal(dim=3),
]
"""Choices that no example has."""
OWN = [spec for spec in SPECS if type(spec).derivatives is not Likelihood.derivatives]
FISHER = [spec for spec in OWN if not isinstance(spec, Laplace)]  # whose information is that of a touching parabola


def draw(spec, rows=200):
    eta = torch.randn(rows, spec.size(spec.example_target()), dtype=torch.float64)
    return eta, spec.distribution(0.5 * eta).sample().double()


@pytest.mark.parametrize("spec", OWN, ids=repr)
def test_scores_equal_automatic_differentiation(spec):
    eta, y = draw(spec)
    _, score, _ = curvature(spec.log_prob, eta, y)
    torch.testing.assert_close(spec.derivatives(eta, y)[1], score)
    torch.testing.assert_close(spec.smooth_value_and_grad(eta, y)[1], score)


@pytest.mark.parametrize("rows", [(50,), (3, 20)], ids=["rows", "members"])
@pytest.mark.parametrize("scale", [1.0, 1e3], ids=["usual", "extreme"])
@pytest.mark.parametrize("spec", [*SPECS, *OTHERS], ids=repr)
def test_value_and_grad_is_log_prob_and_its_gradient(spec, scale, rows):
    """Also far out, where exponentials are bounded: there the gradient is that of the bounded form."""
    eta, y = draw(spec, math.prod(rows))
    point = (scale * eta).reshape(*rows, -1).requires_grad_()
    y = y.reshape(*rows, *y.shape[1:])
    value = spec.log_prob(point, y)
    (gradient,) = torch.autograd.grad(value.sum(), point)
    own, score = spec.value_and_grad(point.detach(), y)
    torch.testing.assert_close(own, value.detach())
    torch.testing.assert_close(score, gradient)


@pytest.mark.parametrize("spec", [*SPECS, *OTHERS], ids=repr)
def test_scores_are_the_limits_of_differences(spec):
    """Central differences of log p in each number of η, wrong by the square of the step and by rounding."""
    eta, y = draw(spec, 5)
    _, score = spec.value_and_grad(eta, y)
    for column in range(eta.shape[-1]):
        step = torch.zeros(eta.shape[-1], dtype=torch.float64)
        step[column] = 1e-5
        difference = (spec.log_prob(eta + step, y) - spec.log_prob(eta - step, y)) / 2e-5
        torch.testing.assert_close(score[:, column], difference, rtol=1e-5, atol=1e-5)


def test_a_missing_part_of_a_product_has_no_gradient():
    spec = Product({"size": Normal(), "count": NegativeBinomial()})
    eta, y = draw(spec, 4)
    y[0, 0] = y[1, 1] = math.nan
    value, score = spec.value_and_grad(eta, y)
    torch.testing.assert_close(value, spec.log_prob(eta, y))
    assert (score[0] == 0).tolist() == [True, False, True, False]  # η: a number of each part, then their constants
    assert (score[1] == 0).tolist() == [False, True, False, True]


@pytest.mark.parametrize("spec", [*SPECS, *OTHERS], ids=repr)
def test_value_and_grad_of_every_target_under_every_eta(spec):
    """η (1, k, size) and y (n, 1) are stretched to n × k pairs."""
    eta, y = draw(spec, 6)
    value, score = spec.value_and_grad(eta[:4].unsqueeze(0), y.unsqueeze(1))
    assert (value.shape, score.shape) == ((6, 4), (6, 4, eta.shape[-1]))
    for k in range(4):
        one, own = spec.value_and_grad(eta[k].expand_as(eta), y)
        torch.testing.assert_close(value[:, k], one)
        torch.testing.assert_close(score[:, k], own)


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("rows", [(50,), (3, 20)], ids=["rows", "members"])
@pytest.mark.parametrize("spec", [*SPECS, *OTHERS], ids=repr)
def test_total_and_grad_is_the_sum_and_its_gradient(spec, rows, weighted):
    """Also where the numbers that do not depend on x come apart, one set for each member; and stored by columns."""
    eta, y = draw(spec, math.prod(rows))
    y, size = y.reshape(*rows, *y.shape[1:]), eta.shape[-1]
    weight = torch.rand(rows, dtype=torch.float64) if weighted else None
    for apart in {0, spec.shared(spec.example_target())}:
        own = eta.reshape(*rows, size)[..., : size - apart].mT.contiguous().mT.requires_grad_()
        shared = torch.randn(*rows[:-1], 1, apart, dtype=torch.float64, requires_grad=True) if apart else None
        whole = own if shared is None else torch.cat([own, shared.expand(*rows, apart)], -1)
        value = spec.log_prob(whole, y)
        expected = (value if weight is None else value * weight).sum()
        gradients = torch.autograd.grad(-0.3 * expected, [own] if shared is None else [own, shared])
        beside = None if shared is None else shared.detach()
        total, *answers = spec.total_and_grad(own.detach(), y, weight, -0.3, beside)
        assert total == pytest.approx(expected.item(), rel=1e-9, abs=1e-9)
        for one, other in zip(answers, gradients, strict=False):
            torch.testing.assert_close(one, other)
        assert (answers[1] is None) == (shared is None)


def test_a_learned_scale_beyond_its_bound_is_constant():
    eta, y = torch.zeros(4, 1), torch.full((4,), 1e-30)
    total, _, of_scale = Normal().total_and_grad(eta, y, None, 1.0, torch.full((1, 1), -1e4))
    value, score = Normal().value_and_grad(torch.tensor([[0.0, -1e4]]).expand(4, 2), y)
    assert total == pytest.approx(value.sum().item(), rel=1e-6)
    assert of_scale.item() == score[:, 1].sum().item() == 0


@pytest.mark.parametrize("extreme", [30.0, 40.0, 1e4])
def test_a_rate_beyond_its_bound_follows_its_tangent(extreme):
    eta, y = torch.tensor([[0.5], [extreme]]), torch.tensor([1.0, 2.0])
    value, score = Poisson().value_and_grad(eta, y)
    total, gradient, _ = Poisson().total_and_grad(eta, y, None, 2.0)
    assert math.isfinite(total)
    assert total == pytest.approx(value.sum().item(), rel=1e-5)
    torch.testing.assert_close(gradient, 2 * score)


@pytest.mark.parametrize("spec", OWN, ids=repr)
def test_log_prob_differs_by_what_does_not_depend_on_eta(spec):
    eta, y = draw(spec)
    other = eta + 0.3
    change = spec.log_prob(other, y) - spec.log_prob(eta, y)
    torch.testing.assert_close(spec.derivatives(other, y)[0] - spec.derivatives(eta, y)[0], change)


@pytest.mark.parametrize("spec", FISHER, ids=repr)
def test_information_is_the_expected_outer_product_of_scores(spec, seed):
    """E[score·scoreᵀ] = information: to 5 standard errors, so a false alarm in about 1 of 10⁶ entries."""
    torch.manual_seed(seed)
    eta = 0.5 * torch.randn(1, spec.size(spec.example_target()), dtype=torch.float64)
    many = eta.expand(200_000, -1)
    y = spec.distribution(many).sample().double()
    _, score, information = spec.derivatives(many, y)
    outer = score.unsqueeze(-1) * score.unsqueeze(-2)
    error = outer.std(0) / len(y) ** 0.5
    assert ((outer.mean(0) - information.mean(0)).abs() <= 5 * error + 1e-12).all()


def test_the_information_of_laplace_is_a_parabola_below_it():
    """log p(y | μ) ≥ log p(y | μ₀) + score·(μ − μ₀) − ½ information·(μ − μ₀)²: such steps never lead uphill."""
    spec, y = Laplace(scale=0.7), torch.randn(500, dtype=torch.float64)
    here, there = torch.randn(500, 1, dtype=torch.float64), torch.randn(500, 1, dtype=torch.float64)
    log_prob, score, information = spec.derivatives(here, y)
    step = (there - here)[:, 0]
    parabola = log_prob + score[:, 0] * step - 0.5 * information[:, 0, 0] * step.square()
    assert (spec.derivatives(there, y)[0] >= parabola - 1e-9).all()


@pytest.mark.parametrize("spec", SPECS, ids=repr)
def test_information_is_positive_semidefinite(spec):
    eta, y = draw(spec)
    _, _, information = spec.derivatives(eta, y)
    assert torch.linalg.eigvalsh(information).min() >= -1e-9
