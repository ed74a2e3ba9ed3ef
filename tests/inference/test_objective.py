"""The seam between inferences and models: whatever gives the log-probability of each row can be fitted."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
import torch
from torch import nn

from likely.core.errors import LikelyWarning, SpecError
from likely.core.random import current_generator
from likely.inference import MAP, Ensemble, Joint, Newton, Problem, RowDensity
from likely.inference.dataset import Batch, Dataset
from likely.inference.objective import able, refuse
from likely.likelihoods import Chain
from likely.optim import Adam
from likely.priors import Normal

ROWS = 60


class Coupling(nn.Module):
    """The density of (a, b) where b is an affine function of noise whose numbers a network reads off a."""

    def __init__(self):
        super().__init__()
        self.first = nn.Parameter(torch.zeros(2, 1))
        self.network = nn.Sequential(nn.Linear(1, 4), nn.Tanh(), nn.Linear(4, 2))

    def forward(self, x):
        shift, log_scale = self.network(x[..., :1]).unbind(-1)
        log_scale = 2 * torch.tanh(log_scale)
        a = (x[..., 0] - self.first[0]) * torch.exp(-self.first[1])
        b = (x[..., 1] - shift) * torch.exp(-log_scale)
        return -0.5 * (a.square() + b.square()) - math.log(2 * math.pi) - self.first[1] - log_scale


class Autoencoder(nn.Module):
    """A bound on log p(x): one draw of z, a linear decoder with unit noise."""

    def __init__(self):
        super().__init__()
        self.encoder, self.decoder = nn.Linear(2, 2), nn.Linear(1, 2)

    def forward(self, x):
        mean, log_scale = self.encoder(x).unbind(-1)
        noise = torch.randn(mean.shape, generator=current_generator(), dtype=x.dtype)
        z = mean + torch.exp(log_scale) * noise
        gap = (x - self.decoder(z.unsqueeze(-1))).square().sum(-1)
        divergence = 0.5 * (mean.square() + torch.exp(2 * log_scale) - 1) - log_scale
        return -0.5 * gap - math.log(2 * math.pi) - divergence


FLOW = RowDensity("Coupling")
BOUND = RowDensity("Autoencoder", "bound", random=True)


def table():
    rng = np.random.default_rng(0)
    a = rng.normal(size=ROWS)
    return torch.from_numpy(np.column_stack([a, np.sin(a) + 0.3 * rng.normal(size=ROWS)]))


def problem(kind, objective, dtype, seed=0):
    def build(seed):
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            return kind()

    return Problem(build, objective, Normal(1.0, biases=Normal(1.0)), Dataset(table(), None, None, dtype), seed)


def quiet_fit(inference, kind, objective):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LikelyWarning)  # examples take a few steps only, and say so
        return inference.fit(problem(kind, objective, inference.dtype))


@pytest.mark.parametrize("name", able(FLOW))
def test_every_inference_that_says_so_fits_an_exact_density(name):
    posterior = quiet_fit(able(FLOW)[name].example(), Coupling, FLOW)
    assert all(bool(value.isfinite().all()) for value in posterior.parameters.values())
    assert len(posterior) == len(next(iter(posterior.parameters.values())))


@pytest.mark.parametrize("name", able(BOUND))
def test_every_inference_that_says_so_fits_a_random_bound(name):
    posterior = quiet_fit(able(BOUND)[name].example(), Autoencoder, BOUND)
    assert all(bool(value.isfinite().all()) for value in posterior.parameters.values())


@pytest.mark.parametrize(("kind", "objective"), [(Coupling, FLOW), (Autoencoder, BOUND)])
def test_training_raises_the_log_probability_of_rows(kind, objective):
    history = quiet_fit(MAP(Adam(0.02), epochs=60, batch_size=20), kind, objective).info["history"]["loss"]
    assert np.mean(history[-10:]) < np.mean(history[:3]) - 0.1


def test_members_of_an_ensemble_of_densities_differ():
    posterior = quiet_fit(Ensemble(2, by=MAP(epochs=2)), Coupling, FLOW)
    weights = posterior.parameters["network.0.weight"]
    assert len(weights) == 2
    assert not torch.equal(weights[0], weights[1])


def test_an_inference_that_cannot_names_those_that_can():
    with pytest.raises(
        SpecError, match=r"HMC needs the exact log-probability .*; Autoencoder gives a bound: use .*MAP"
    ):
        refuse(able(FLOW)["HMC"](), BOUND)


def test_coupled_rows_of_one_length_are_rows_one_after_the_other():
    eta, y = torch.randn(2, 5, 3, 10), torch.randint(2, (5, 3)).float()
    objective = Joint(Chain())
    dense = objective.log_prob(eta, Batch(torch.zeros(5, 3, 1), y, None))
    offsets = torch.arange(0, 16, 3)
    flat = objective.log_prob(eta.flatten(1, 2), Batch(None, y.flatten(), None, None, offsets))
    assert dense.shape == (2, 5)
    torch.testing.assert_close(dense, flat)


def test_coupled_rows_have_no_eta_of_single_targets():
    with pytest.raises(SpecError, match=r"Newton needs η .*; a model whose positions Chain\(\) couples has none: use "):
        refuse(Newton(), Joint(Chain()))
