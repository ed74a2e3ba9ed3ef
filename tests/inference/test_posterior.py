"""A weighted set of parameter vectors: prediction is the average over it."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from likely import Regressor
from likely.core.errors import ModelFileError
from likely.inference import MAP, Ensemble, Posterior
from likely.inference import posterior as posterior_module
from likely.inference.posterior import average
from likely.likelihoods import Bernoulli, Categorical, MultivariateNormal, Normal, Ordinal, Poisson

WEIGHTS = torch.tensor([0.2, 0.5, 0.3], dtype=torch.float64)


def etas(size, rows=4):
    return torch.randn(3, rows, size, dtype=torch.float64, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize(
    ("likelihood", "size"), [(Bernoulli(), 1), (Categorical(), 4), (Ordinal(classes=4), 4)], ids=repr
)
def test_the_average_of_classes_has_the_mean_of_their_probabilities(likelihood, size):
    eta = etas(size)
    mixed = average(likelihood, eta, WEIGHTS)
    expected = torch.einsum("s,s...->...", WEIGHTS, likelihood.distribution(eta).probs)
    torch.testing.assert_close(mixed.probs, expected)
    y = torch.tensor([0.0, 1.0, 1.0, 0.0], dtype=torch.float64)
    by_members = likelihood.distribution(eta).log_prob(y)
    torch.testing.assert_close(mixed.log_prob(y), torch.logsumexp(by_members + WEIGHTS.log()[:, None], 0))


@pytest.mark.parametrize("likelihood", [Normal(scale="input"), Poisson(), Normal(scale=0.5)], ids=repr)
def test_the_average_of_numbers_is_a_mixture(likelihood):
    """mean = Σ w μ; variance = Σ w (σ² + μ²) − mean²; log p(y) = log Σ w p(y)."""
    eta = etas(2 if likelihood == Normal(scale="input") else 1)
    mixed, parts = average(likelihood, eta, WEIGHTS), likelihood.distribution(eta)
    mean = torch.einsum("s,sn->n", WEIGHTS, parts.mean)
    torch.testing.assert_close(mixed.mean, mean)
    second = torch.einsum("s,sn->n", WEIGHTS, parts.variance + parts.mean.square())
    torch.testing.assert_close(mixed.variance, second - mean.square())
    y = torch.tensor([0.0, 1.0, 2.0, 5.0], dtype=torch.float64)
    torch.testing.assert_close(mixed.log_prob(y), torch.logsumexp(parts.log_prob(y) + WEIGHTS.log()[:, None], 0))


def test_vectors_are_averaged_as_vectors():
    likelihood = MultivariateNormal()
    size = likelihood.size(likelihood.example_target())
    eta = etas(size)
    mixed, parts = average(likelihood, eta, WEIGHTS), likelihood.distribution(eta)
    assert mixed.batch_shape == (4,)
    torch.testing.assert_close(mixed.mean, torch.einsum("s,snd->nd", WEIGHTS, parts.mean))


def test_positions_are_kept():
    eta = torch.randn(3, 5, 2, 7, 4)
    assert average(Categorical(), eta, WEIGHTS).probs.shape == (5, 2, 7, 4)
    assert average(Normal(scale=1.0), eta[..., :1], WEIGHTS).batch_shape == (5, 2, 7)


def test_one_member_is_its_own_distribution():
    eta = etas(1)[:1]
    assert type(average(Poisson(), eta, torch.ones(1))) is type(Poisson().distribution(eta[0]))


# --- members --------------------------------------------------------------------------------------------------------
def modules(count, dropout=0.0):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return [
            nn.Sequential(nn.Linear(3, 5), nn.BatchNorm1d(5), nn.Tanh(), nn.Dropout(dropout), nn.Linear(5, 2)).double()
            for _ in range(count)
        ]


X = torch.randn(6, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(1))


def test_eta_is_that_of_every_member_in_evaluation_mode():
    members = modules(3, dropout=0.5)
    posterior = Posterior.of(*members)
    assert len(posterior) == 3
    assert posterior.dtype == torch.float64
    expected = torch.stack([member.eval()(X) for member in members]).detach()
    torch.testing.assert_close(posterior.eta(X), expected)
    torch.testing.assert_close(posterior.eta(X.float()), expected, rtol=1e-5, atol=1e-6)


def test_many_rows_are_computed_in_parts(monkeypatch):
    posterior = Posterior.of(*modules(3))
    whole = posterior.eta(X)
    monkeypatch.setattr(posterior_module, "BLOCK", 20)  # two rows at a time
    torch.testing.assert_close(posterior.eta(X), whole)


class Branching(nn.Module):
    """Does something that cannot be vectorised over members: asks a number of its parameters."""

    def __init__(self, sign):
        super().__init__()
        self.weight = nn.Parameter(torch.full((3, 1), float(sign), dtype=torch.float64))

    def forward(self, x):
        return x @ self.weight if self.weight.sum() > 0 else 10 + x @ self.weight


def test_members_that_cannot_be_vectorised_are_run_one_by_one():
    members = [Branching(1), Branching(-1), Branching(2)]
    expected = torch.stack([member(X) for member in members]).detach()
    posterior = Posterior.of(*members)
    for _ in range(2):
        torch.testing.assert_close(posterior.eta(X), expected)


@pytest.mark.parametrize("index", [0, 2])
def test_module_of_is_a_member_on_its_own(index):
    members = modules(3)
    posterior = Posterior.of(*members)
    module = posterior.module_of(index)
    torch.testing.assert_close(module(X), members[index].eval()(X))
    torch.testing.assert_close(module(X), posterior.eta(X)[index])
    with torch.no_grad():
        module[0].weight.zero_()  # a copy: the posterior does not change
    torch.testing.assert_close(posterior.eta(X)[index], members[index](X).detach())


def test_join_puts_members_of_several_posteriors_together():
    members = modules(3)
    parts = [Posterior.of(members[0]), Posterior.of(*members[1:], weights=torch.tensor([0.25, 0.75]))]
    joined = Posterior.join(parts)
    assert len(joined) == 3
    torch.testing.assert_close(joined.weights.sum().item(), 1.0)
    torch.testing.assert_close(joined.weights.double(), torch.tensor([0.5, 0.125, 0.375]).double())
    torch.testing.assert_close(joined.eta(X), Posterior.of(*members).eta(X))


def test_the_module_given_is_not_touched():
    (member,) = modules(1)
    before = {name: value.clone() for name, value in member.state_dict().items()}
    Posterior.of(member).eta(X)
    assert member.training
    assert all(p.requires_grad for p in member.parameters())
    assert all(torch.equal(before[name], value) for name, value in member.state_dict().items())


# --- files ----------------------------------------------------------------------------------------------------------
def test_state_and_restore_are_inverse():
    posterior = Posterior.of(*modules(3), weights=torch.tensor([0.2, 0.5, 0.3]), info={"log_evidence": -3.5})
    learned, tensors = posterior.state()
    again = Posterior.restore(modules(1)[0], learned, tensors)
    torch.testing.assert_close(again.eta(X), posterior.eta(X))
    assert torch.equal(again.weights, posterior.weights)
    assert again.info == {"log_evidence": -3.5}


def test_tensors_that_do_not_fit_the_module_are_refused():
    learned, tensors = Posterior.of(*modules(2)).state()
    with pytest.raises(ModelFileError, match="missing"):
        Posterior.restore(modules(1)[0], learned, {k: v for k, v in tensors.items() if k != "parameters.0.bias"})
    tensors["parameters.0.bias"] = torch.zeros(2, 4)
    with pytest.raises(ModelFileError, match=r"0.bias has shape \(2, 4\), not \(2, 5\)"):
        Posterior.restore(modules(1)[0], learned, tensors)


def test_the_mean_of_a_model_is_the_mean_of_its_members(rng):
    rows, y = rng.normal(size=(20, 2)), rng.normal(size=20)
    model = Regressor(network="mlp([4])", inference=Ensemble(3, MAP(epochs=2)), random_state=0).fit(rows, y)
    members = [model.posterior_.module_of(i)(torch.from_numpy(rows).float())[:, 0] for i in range(3)]
    np.testing.assert_allclose(model.predict(rows), torch.stack(members).mean(0).numpy(), rtol=1e-4, atol=1e-6)
