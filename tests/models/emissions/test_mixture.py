"""A mixture as an emission: its density, its joint E-step, its samples."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from likely.core.errors import SpecError
from likely.likelihoods import Normal, Poisson
from likely.models.emissions import Columns, GaussianEmission
from likely.models.emissions.mixture import MixtureEmission, describe, rebuild

STATES, COMPONENTS = 2, 3


def rows(n=40):
    return torch.from_numpy(np.random.default_rng(0).normal(size=(n, 2)) * 3)


def fitted(x, smoothing=1e-6):
    mixed = MixtureEmission(Columns.of(Normal(), x, smoothing=smoothing), COMPONENTS)
    mixed.bind(x, None)
    generator = torch.Generator().manual_seed(0)
    weight = torch.rand(len(x), 1, STATES, generator=generator, dtype=torch.float64)
    weight /= weight.sum(-1, keepdim=True)
    totals = mixed.zeros(1, STATES)
    mixed.accumulate(totals, None, x, weight, slice(0, len(x)))
    params = mixed.maximise(None, totals)
    params["eta"] = params["eta"] + 0.3 * torch.randn(params["eta"].shape, generator=generator, dtype=torch.float64)
    return mixed, params, weight


def test_the_density_is_the_weighted_sum():
    x = rows()
    mixed, params, _ = fitted(x)
    eta = params["eta"][0].reshape(STATES, COMPONENTS, 2, 2)
    log_prob = torch.distributions.Normal(eta[..., 0], eta[..., 1].exp()).log_prob(x[:, None, None]).sum(-1)
    expected = (log_prob + params["mixing"][0]).logsumexp(-1)
    torch.testing.assert_close(mixed.log_prob(params, x)[:, 0], expected)
    torch.testing.assert_close(params["mixing"].exp().sum(-1), torch.ones(1, STATES, dtype=torch.float64))


def test_one_component_is_the_emission_itself():
    x = rows()
    plain, mixed = Columns.of(Normal(), x), MixtureEmission(Columns.of(Normal(), x), 1)
    weight = torch.rand(len(x), 1, 3, dtype=torch.float64)
    answers = []
    for emission in (plain, mixed):
        emission.bind(x, None)
        totals = emission.zeros(1, 3)
        emission.accumulate(totals, None, x, weight, slice(0, len(x)))
        params = emission.maximise(None, totals)
        answers.append((params["eta"], emission.log_prob(params, x), torch.tensor(emission.free(3))))
    for one, other in zip(*answers, strict=True):
        torch.testing.assert_close(one, other)


def test_a_joint_step_raises_the_weighted_likelihood():
    """EM inside a state: Σ w log p(x | k), with what smoothing adds, never falls."""
    x = rows(200)
    mixed, params, weight = fitted(x, smoothing=1e-3)
    share = torch.full((len(x),), 1 / len(x), dtype=torch.float64)
    values = []
    for _ in range(30):
        log_prob = mixed.log_prob(params, x)
        values.append(float((weight * log_prob).sum() + mixed.background(params, x, log_prob, share)))
        totals = mixed.zeros(1, STATES)
        mixed.accumulate(totals, params, x, weight, slice(0, len(x)))
        params = mixed.maximise(params, totals)
    assert values[-1] > values[0] + 1
    assert (np.diff(values) > -1e-9).all()


def test_the_joint_responsibilities_are_those_of_bayes():
    x = rows()
    mixed, params, weight = fitted(x)
    totals = mixed.zeros(1, STATES)
    mixed.accumulate(totals, params, x, weight, slice(0, len(x)))
    eta = params["eta"][0].reshape(STATES, COMPONENTS, 2, 2)
    log_prob = torch.distributions.Normal(eta[..., 0], eta[..., 1].exp()).log_prob(x[:, None, None]).sum(-1)
    joint = params["mixing"][0].exp() * log_prob.exp()
    joint = weight[:, 0, :, None] * joint / joint.sum(-1, keepdim=True)
    torch.testing.assert_close(totals["mixing"][0], joint.sum(0))


def test_samples_come_from_the_components_in_their_shares(seed):
    """20,000 draws: a share of 0.3 deviates by more than 0.017 (5 standard errors) with probability below 1e-6."""
    x = torch.tensor([[1.0], [50.0]])
    mixed = MixtureEmission(Columns.of(Poisson(), x), 2)
    params = {
        "eta": torch.tensor([[0.1], [100.0], [1000.0], [10000.0]], dtype=torch.float64).log(),
        "mixing": torch.tensor([[0.3, 0.7], [0.0, 1.0]], dtype=torch.float64).clamp_min(1e-100).log(),
    }
    torch.manual_seed(seed)
    drawn = mixed.sample(params, torch.tensor([0, 1]).repeat_interleave(20_000))
    assert abs(float((drawn[:20_000] < 20).double().mean()) - 0.3) < 0.017
    assert bool((drawn[20_000:] > 5000).all())


def test_parameters_are_counted_and_files_bring_it_back():
    x = rows()
    mixed = MixtureEmission(Columns.of(Normal(), x), COMPONENTS)
    assert mixed.free(STATES) == STATES * (COMPONENTS * 4 + COMPONENTS - 1)
    for emission in (mixed, MixtureEmission(GaussianEmission(2, "tied"), 2), Columns.of(Poisson(), x.abs().round())):
        assert describe(rebuild(describe(emission))) == describe(emission)
    with pytest.raises(SpecError, match="Unknown kind of emission 'Strange'"):
        rebuild({"kind": "Strange"})
