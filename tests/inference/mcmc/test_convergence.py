"""The agreement of chains is the worst R-hat and the least ESS of what can be told: θ of lines, η of networks."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from likely import Regressor, priors
from likely.core.errors import ConvergenceWarning
from likely.inference import HMC, SGLD
from likely.inference.log_posterior import LogPosterior
from likely.inference.mcmc.convergence import agreement, said_of, untold
from likely.likelihoods import Normal
from likely.networks import MLP
from likely.sampling.convergence import diagnose

X = np.random.default_rng(0).normal(size=(12, 2))


@pytest.fixture
def target(problem_of):
    def target(network="linear"):
        model = Regressor(Normal(0.5), network=network, prior=priors.Normal(1.0), random_state=0)
        return LogPosterior(problem_of(model, X, X @ [1.0, -1.0]))

    return target


def draws(size, seed=0):
    return torch.randn(3, 40, size, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def test_a_line_is_judged_by_its_parameters_and_log_p(target):
    line = target()
    theta = draws(line.size)
    theta[1, :, 2] += 5.0
    log_prob = draws(1, seed=1)[..., 0]
    judged = agreement(line, theta, log_prob)
    rhat, ess = diagnose(torch.cat([log_prob[..., None], theta], -1).numpy())
    assert judged["rhat"] == pytest.approx(rhat.max(), rel=1e-9)
    assert judged["ess"] == pytest.approx(ess.min(), rel=1e-9)
    assert judged["rhat_of"] == line.parameters.labels()[2]


def test_exchanged_units_of_a_network_are_no_disagreement(target):
    """Two chains about the same function, whose hidden units stand in another order."""
    net = target(MLP((2,), "tanh"))
    theta = 0.1 * draws(net.size)
    named = net.named(theta.flatten(0, 1) + torch.arange(net.size, dtype=torch.float64))
    turned = {name: value.clone() for name, value in named.items()}
    for name, value in turned.items():  # hidden units are rows of the first layer, columns of the last
        if value.shape[1:] in ((2, 2), (2,)):
            turned[name] = value.flip(1)
        elif value.shape[1:] == (1, 2):
            turned[name] = value.flip(2)
    straight, other = (
        net.parameters.flat(
            part,
        )
        for part in (named, turned)
    )
    mixed = straight.unflatten(0, (3, 40)).clone()
    mixed[1] = other.unflatten(0, (3, 40))[1]
    log_prob = net(mixed.flatten(0, 1)).unflatten(0, (3, 40))
    judged = agreement(net, mixed, log_prob)
    apart, _ = diagnose(mixed.numpy())
    assert apart.max() > 1.5
    assert judged["rhat"] < 1.2


def test_draws_that_never_move_have_no_diagnostics(target):
    line = target()
    still = torch.zeros(3, 40, line.size, dtype=torch.float64)
    assert agreement(line, still, still[..., 0]) == {"rhat": None, "rhat_of": None, "agree": None, "ess": None}


def test_short_chains_are_judged_by_what_chance_allows(target, seed):
    """A chain that is off by 1.5σ is a disagreement; independent draws are not, and too few tell nothing.

    Independent draws are called a disagreement once in 1,000 times: of 20 more than twice for 1 of 10⁶ seeds.
    """
    line = target()
    judgements = [agreement(line, draws(line.size, 20 * seed + k))["agree"] for k in range(20)]
    assert judgements.count(False) <= 2
    theta = draws(line.size, seed)
    theta[1] += 1.5
    judged = agreement(line, theta)
    assert judged["agree"] is False
    assert said_of(judged).startswith("The chains do not agree: R-hat of ")
    few = agreement(line, theta[:, :10])
    assert few["rhat"] > 1.05
    assert few["agree"] is None
    assert said_of(few) is None
    assert untold(few, 10).startswith("Whether the chains agree cannot be told from 10 draws of each, so converged_ is")
    assert untold(few, 30) is untold(judged, 10) is None


@pytest.mark.parametrize("method", [HMC(chains=2, draws=8, warmup=8), SGLD(chains=2, draws=8, warmup=8)])
def test_chains_that_are_too_short_to_tell_say_so(method):
    X = np.random.default_rng(0).normal(size=(40, 2))
    model = Regressor(Normal(0.5), prior=priors.Normal(1.0), inference=method, random_state=0)
    with pytest.warns(ConvergenceWarning, match="cannot be told from 8 draws of each, so converged_ is None: draw 30"):
        model.fit(X, X[:, 0])
    assert model.posterior_.info["agree"] is None
