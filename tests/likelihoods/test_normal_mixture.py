"""Mixtures of Normals: against scipy, as probabilities of rounded numbers, and their estimate by EM."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy import stats

from likely import Regressor
from likely.core.errors import SpecError
from likely.inference import MAP
from likely.likelihoods import Normal, NormalMixture
from likely.likelihoods.special import log_normal_cdf
from likely.networks import MLP


def test_agrees_with_scipy(generator):
    eta, y = torch.randn(50, 9, dtype=torch.float64), torch.randn(50, dtype=torch.float64)
    weight, mean, scale = eta[:, :3].softmax(1), eta[:, 3:6], eta[:, 6:].exp()
    density = (weight.numpy() * stats.norm(mean, scale).pdf(y.numpy()[:, None])).sum(1)
    np.testing.assert_allclose(NormalMixture(3).log_prob(eta, y).exp(), density, rtol=1e-12)


def test_one_component_is_a_normal(generator):
    eta, y = torch.randn(50, 3, dtype=torch.float64), torch.randn(50, dtype=torch.float64)
    torch.testing.assert_close(NormalMixture(1).log_prob(eta, y), Normal("input").log_prob(eta[:, 1:], y))


@pytest.mark.parametrize("log_scale", [-6.0, -1.0, 0.0, 3.0])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_probabilities_of_rounded_numbers(log_scale, dtype):
    """They are differences of Φ, and sum to 1 over all multiples of the step."""
    y = 0.5 * torch.arange(-800, 801, dtype=dtype)
    eta = torch.tensor([0.3, -0.2, 0.1, 2.3, log_scale, log_scale], dtype=dtype)
    log_prob = NormalMixture(2, step=0.5).log_prob(eta, y)
    assert float(log_prob.exp().sum()) == pytest.approx(1, abs=1e-5)
    weight, scale = torch.tensor([0.3, -0.2]).double().softmax(0).numpy(), math.exp(log_scale)
    centre = np.array([0.1, 2.3])
    cells = stats.norm(centre, scale)
    exact = (weight * (cells.cdf(y.numpy()[:, None] + 0.25) - cells.cdf(y.numpy()[:, None] - 0.25))).sum(1)
    seen = exact > 1e-6
    np.testing.assert_allclose(log_prob.exp().numpy()[seen], exact[seen], rtol=2e-3)


def test_draws_of_rounded_numbers_are_multiples_of_the_step(generator):
    rounded = NormalMixture(2, step=0.1)
    distribution = rounded.distribution(torch.randn(500, 6, dtype=torch.float64))
    y = distribution.sample((4,)) / 0.1
    assert y.shape == (4, 500)
    torch.testing.assert_close(y, y.round())
    below = distribution.cdf(torch.zeros(500, dtype=torch.float64))
    grid = 0.1 * torch.arange(-2000, 1, dtype=torch.float64)
    total = rounded.log_prob(distribution.eta, grid.unsqueeze(1)).exp().sum(0)
    torch.testing.assert_close(below, total, atol=1e-6, rtol=1e-6)


def test_em_finds_components_that_lie_apart(seed):
    """Of 6,000 rows, means have standard errors of 0.011, scales of 0.008 and fractions of 0.006: 6 of each are
    allowed, a false alarm in 2 of 10⁸ seeds.
    """
    torch.manual_seed(seed)
    centre = torch.tensor([-5.0, 0.0, 4.0])
    which = torch.randint(3, (6000,))
    y = centre[which] + torch.randn(6000) * 0.5
    eta = NormalMixture(3).weighted_mle(y, torch.ones(6000))
    order = eta[3:6].argsort()
    torch.testing.assert_close(eta[3:6][order], centre, atol=0.067, rtol=0)
    torch.testing.assert_close(eta[6:].exp(), torch.full((3,), 0.5), atol=0.047, rtol=0)
    torch.testing.assert_close(eta[:3].softmax(0), torch.full((3,), 1 / 3), atol=0.037, rtol=0)


@pytest.mark.parametrize("step", [None, 1.0])
def test_the_estimate_is_no_worse_than_one_normal(generator, step):
    y = (torch.randn(400, dtype=torch.float64).exp() * 20).round()
    weight = torch.rand(400, dtype=torch.float64)
    one, several = (NormalMixture(k, step=step) for k in (1, 5))
    values = [(weight * one_of.log_prob(one_of.weighted_mle(y, weight), y)).sum() for one_of in (one, several)]
    assert values[1] > values[0] + 20


@pytest.mark.parametrize("y", [torch.zeros(20), torch.full((20,), 7.0), torch.tensor([0.0] * 19 + [1e6])])
@pytest.mark.parametrize("step", [None, 1.0])
def test_tied_values_have_finite_estimates(y, step):
    likelihood = NormalMixture(4, step=step)
    eta, unit = likelihood.baseline(y, torch.ones(20))
    assert bool(eta.isfinite().all())
    assert bool((unit > 0).all())
    assert bool(likelihood.log_prob(eta, y).isfinite().all())


def test_a_mixture_density_network_sees_both_branches(generator):
    """y = ±x: the mean says 0, the mixture knows that 0 is where y is not."""
    x = torch.rand(400, 1) + 1
    y = torch.where(torch.rand(400) < 0.5, x[:, 0], -x[:, 0]) + 0.1 * torch.randn(400)
    model = Regressor(NormalMixture(2), MLP((16,)), inference=MAP("adam(0.01)", epochs=60), random_state=0)
    density = model.fit(x.numpy(), y.numpy()).predict_dist([[1.5]])
    middle, branch = (float(density.log_prob(torch.tensor([value]))) for value in (0.0, 1.5))
    assert branch - middle > 5


def test_log_normal_cdf_is_exact_in_both_tails():
    x = torch.linspace(-40, 10, 201, dtype=torch.float64, requires_grad=True)
    value = log_normal_cdf(x)
    np.testing.assert_allclose(value.detach(), stats.norm.logcdf(x.detach()), rtol=1e-9, atol=1e-12)
    (gradient,) = torch.autograd.grad(value.sum(), x)
    hazard = np.exp(stats.norm.logpdf(x.detach()) - stats.norm.logcdf(x.detach()))
    np.testing.assert_allclose(gradient, hazard, rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"components": 0}, "components must be an integer from 1 to 1,000"),
        ({"step": -1.0}, "step must be None or a positive number"),
    ],
)
def test_bad_arguments_are_named(arguments, message):
    with pytest.raises(SpecError, match=message):
        NormalMixture(**arguments)
