"""Distributions of codes: densities that integrate to 1, draws that follow them, and closed forms."""

from __future__ import annotations

import itertools
import math

import pytest
import torch
from torch.distributions import Categorical, MixtureSameFamily, MultivariateNormal

from likely.core.errors import SpecError
from likely.core.random import drawing
from likely.models.generative.latent_priors import Flow, LatentPrior, Mixture, Normal
from likely.models.generative.normals import drawn, log_normal

PRIORS = [Normal(), Mixture(3), Mixture(3, covariance="diag"), Flow(3, hidden=8)]


def built(prior, latent, seed=0):
    """With parameters away from where they start."""
    torch.manual_seed(seed)
    module = prior.build(latent).double()
    for value in module.parameters():
        value.data += 0.3 * torch.randn_like(value)
    return module


@pytest.mark.parametrize("prior", PRIORS)
def test_the_density_of_codes_integrates_to_one(prior):
    module = built(prior, 2)
    line = torch.linspace(-40, 40, 1601, dtype=torch.float64)
    grid = torch.cartesian_prod(line, line)
    with torch.no_grad():
        total = module.log_prob(grid).exp().sum() * (line[1] - line[0]) ** 2
    assert abs(float(total) - 1) < 1e-3


@pytest.mark.parametrize("prior", PRIORS)
def test_draws_follow_the_density(prior, seed):
    """E[p(z)] by draws is ∫p²; 20,000 draws, 6 standard errors: false alarm below 1e-8."""
    module = built(prior, 2)
    line = torch.linspace(-30, 30, 601, dtype=torch.float64)
    with torch.no_grad(), drawing(seed):
        exact = module.log_prob(torch.cartesian_prod(line, line)).mul(2).exp().sum() * (line[1] - line[0]) ** 2
        values = module.log_prob(module.sample(20_000, line)).exp()
    assert abs(float(values.mean() - exact)) < 6 * float(values.std()) / math.sqrt(20_000) + 1e-3 * float(exact)


def test_a_flow_inverts_itself():
    flow = built(Flow(4, hidden=8), 5).flow
    z = torch.randn(20, 5, dtype=torch.float64)
    u, log_det = flow(z)
    torch.testing.assert_close(flow.inverse(u), z, rtol=1e-10, atol=1e-10)
    jacobian = torch.autograd.functional.jacobian(lambda row: flow(row[None])[0][0], z[0])
    torch.testing.assert_close(torch.linalg.slogdet(jacobian)[1], log_det[0])


def test_the_closed_form_of_a_mixture_is_a_bound_exact_for_one_component(seed):
    """By 100,000 draws, 6 standard errors: a false alarm in 1 of 10⁸ seeds."""
    torch.manual_seed(seed)
    mean, log_scale = torch.randn(4, dtype=torch.float64), torch.full((4,), -0.4, dtype=torch.float64)
    for components, covariance in itertools.product((1, 3), ("full", "diag")):
        module = built(Mixture(components, covariance=covariance), 4, seed)
        with torch.no_grad():
            z = drawn(mean, log_scale, 100_000)
            ratios = module.log_prob(z) - log_normal(z, mean, log_scale)
            closed = float(module.log_ratio(mean, log_scale))
        error = 6 * float(ratios.std()) / math.sqrt(len(ratios))
        assert closed < float(ratios.mean()) + error
        assert components > 1 or closed > float(ratios.mean()) - error


@torch.no_grad()
def test_a_mixture_starts_at_the_one_that_was_found():
    """log p(z) as torch has it; without directions, with the diagonal of each covariance."""
    torch.manual_seed(0)
    roots = torch.randn(3, 2, 2, dtype=torch.float64) + 2 * torch.eye(2, dtype=torch.float64)
    weights, means = torch.tensor([0.2, 0.3, 0.5], dtype=torch.float64), torch.randn(3, 2, dtype=torch.float64)
    covariances, z = roots @ roots.mT, 3 * torch.randn(50, 2, dtype=torch.float64)
    for kind in ("full", "diag"):
        module = Mixture(3, covariance=kind).build(2).double()
        module.start(weights, means, covariances)
        own = covariances if kind == "full" else torch.diag_embed(covariances.diagonal(dim1=-2, dim2=-1))
        parts = MultivariateNormal(means, own)
        torch.testing.assert_close(module.log_prob(z), MixtureSameFamily(Categorical(weights), parts).log_prob(z))


@torch.no_grad()
def test_a_component_cannot_shrink_onto_one_code():
    """However narrow the start, the density at a mean is at most e^{3d} / (2π)^{d/2}."""
    for kind in ("full", "diag"):
        module = Mixture(1, covariance=kind).build(2)
        module.start(torch.ones(1), torch.zeros(1, 2), 1e-12 * torch.eye(2).unsqueeze(0))
        assert float(module.log_prob(torch.zeros(1, 2))) == pytest.approx(6.0 - math.log(2 * math.pi), rel=1e-5)


def test_responsibilities_sum_to_one_and_name_the_nearest_component():
    module = built(Mixture(3), 2)
    with torch.no_grad():
        shares = module.responsibilities(module.mean, torch.full_like(module.mean, -4.0))
    torch.testing.assert_close(shares.sum(-1), torch.ones(3, dtype=torch.float64))
    narrow = LatentPrior.parse("mixture(2)").build(1)
    narrow.start(torch.tensor([0.5, 0.5]), torch.tensor([[-3.0], [3.0]]), torch.ones(2, 1, 1))
    assert narrow.responsibilities(torch.tensor([[-3.0], [3.0]]), torch.zeros(2, 1)).argmax(-1).tolist() == [0, 1]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Mixture(0), "components must be a positive integer"),
        (lambda: Mixture(2, pretrain=0), 'pretrain must be a positive number of epochs or "auto"'),
        (lambda: Mixture(2, covariance="tied"), 'covariance must be "full" or "diag"'),
        (lambda: Flow(layers=0), "layers must be a positive integer"),
        (lambda: LatentPrior.parse("norm"), "Did you mean Normal"),
    ],
)
def test_bad_values_are_named(make, message):
    with pytest.raises(SpecError, match=message):
        make()
