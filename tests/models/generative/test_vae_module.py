"""The variational autoencoder as a module: weights of draws, gaps, and what a mixture prior clusters."""

from __future__ import annotations

import math

import pytest
import torch

from likely.core.random import isolated
from likely.models.generative.bounds import ELBO, IWAE
from likely.models.generative.latent_priors import Normal
from likely.models.generative.observed import columns_of
from likely.models.generative.vae_module import VAEModule
from likely.networks import MLP

ROWS = (
    torch.randn(40, 2, generator=torch.Generator().manual_seed(0)) @ torch.tensor([[1.0, 0.8], [0.0, 0.5]])
).double()
BOUND = ELBO()


def built(bound=BOUND, missing=False, levels=1):
    with isolated(0):
        module = VAEModule(
            columns_of("auto", ROWS),
            (2,),
            None,
            missing=missing,
            latent=2,
            levels=levels,
            encoder=MLP((8,)),
            decoder=MLP((8,)),
            between=MLP((8,)),
            prior=Normal(),
            bound=bound,
        ).double()
        module.adapt(ROWS, None, None)
    return module.eval()


def test_weights_of_draws_from_the_prior_integrate_to_one(seed):
    """Where q is p(z), a weight is p(x | z): the mean over draws is a density of x, whatever the draws are."""
    module = built()
    line = torch.linspace(-16, 16, 161, dtype=torch.float64)
    grid = torch.cartesian_prod(line, line)
    last = [layer for layer in module.encoder.modules() if isinstance(layer, torch.nn.Linear)][-1]
    with torch.no_grad(), isolated(seed):
        last.weight.zero_()
        last.bias.copy_(torch.tensor([0.0, 0.0, 2.0, 2.0]))  # log σ = ½ · 2 − 1
        log_p = torch.logsumexp(module.log_prob(grid, None, 20), 0) - math.log(20)
    assert abs(float(log_p.exp().sum()) * float(line[1] - line[0]) ** 2 - 1) < 0.02


def test_a_bound_of_more_draws_is_higher_in_the_mean(seed):
    """ELBO ≤ IWAE(20), means over 4,000 draws of 5 rows, with 6 standard errors to spare."""
    with torch.no_grad(), isolated(seed):
        low, high = (built(bound)(ROWS[:5].repeat(4_000, 1)).view(4_000, 5) for bound in (ELBO(), IWAE(20)))
    error = ((low.var(0) + high.var(0)) / 4_000).sqrt()
    assert bool((low.mean(0) < high.mean(0) + 6 * error).all())


@pytest.mark.parametrize("missing", [False, True])
def test_gaps_are_filled_and_the_rest_is_kept(missing):
    x = ROWS[:4].clone()
    x[0, 0] = x[2, 1] = math.nan
    with torch.no_grad(), isolated(0):
        filled = built(missing=missing).complete(x, None, 6)
    assert filled.shape == (6, 4, 2)
    assert bool(filled.isfinite().all())
    assert torch.equal(filled[:, ~x.isnan()], x[~x.isnan()].expand(6, -1))
    assert float(filled[:, 0, 0].std()) > 0
