"""The energies of linear models and networks, with their derivatives, against automatic differentiation."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from likely import Classifier, Regressor
from likely.inference.linear import glm
from likely.inference.linear.design import design_of
from likely.inference.linear.glm import LinearEnergy
from likely.likelihoods import Categorical, Normal, Ordinal, Poisson
from likely.priors import Normal as NormalPrior

MODELS = [
    Regressor(Poisson(), prior=NormalPrior(0.7)),
    Regressor(Normal(), prior=NormalPrior(0.7)),
    Regressor(Normal(scale="input"), prior=NormalPrior(0.7, biases=NormalPrior(2.0))),
    Classifier(Categorical(), prior=NormalPrior(0.7)),
    Classifier(Ordinal(), prior=NormalPrior(0.7)),
]


@pytest.fixture
def data(rng):
    return rng.normal(size=(25, 2)), np.arange(25) % 3, rng.uniform(0.5, 2.0, size=25)


def energy_by_autograd(problem, energy):
    """E as a differentiable function of the flat point, from its definition; up to the prior's constant."""

    def value(point):
        k, width = energy.outputs, energy.width
        table, shared = point[: k * width].view(k, width), point[k * width :]
        batch = problem.data.batch(slice(None))
        eta = batch.x @ table[:, :-1].T + table[:, -1]
        eta = torch.cat([eta, shared.expand(len(eta), -1)], 1)
        parameters = {"network.weight": table[:, :-1], "network.bias": table[:, -1]}
        return -problem.objective.log_likelihood(eta, batch) - problem.log_prior(parameters)

    return value


@pytest.mark.parametrize("model", MODELS, ids=repr)
@pytest.mark.parametrize("weighted", [False, True])
def test_value_and_gradient_are_those_of_the_definition(weighted, model, data, problem_of):
    X, y, weight = data
    problem = problem_of(model, X, y, **({"sample_weight": weight} if weighted else {}))
    energy = LinearEnergy(design_of(problem).regression(0))
    definition = energy_by_autograd(problem, energy)
    start = energy.start()
    point = start + 0.3 * torch.randn(len(start), dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    value, slope, hessian = energy.value(point, hessian=True)
    moved = point.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(definition(moved), moved)
    torch.testing.assert_close(slope, gradient, rtol=1e-8, atol=1e-8)
    gap = energy.value(start, hessian=False)[0] - value
    assert gap == pytest.approx((definition(start) - definition(point)).item(), rel=1e-8)
    assert torch.linalg.eigvalsh(hessian)[0] > -1e-8
    torch.testing.assert_close(hessian, hessian.T)


@pytest.mark.parametrize("model", [MODELS[0], MODELS[3]], ids=repr)
def test_the_hessian_of_a_natural_family_is_exact(model, data, problem_of):
    X, y, _ = data
    problem = problem_of(model, X, y)
    energy = LinearEnergy(design_of(problem).regression(0))
    point = energy.start() + 0.1
    exact = torch.autograd.functional.hessian(energy_by_autograd(problem, energy), point)
    torch.testing.assert_close(energy.value(point, hessian=True)[2], exact, rtol=1e-7, atol=1e-8)


def test_blocks_do_not_change_the_sums(data, problem_of, monkeypatch):
    X, y, weight = data
    energy = LinearEnergy(design_of(problem_of(MODELS[0], X, y, sample_weight=weight)).regression(0))
    whole = energy.value(energy.start(), hessian=True)
    monkeypatch.setattr(glm, "ROWS", 4)
    parts = energy.value(energy.start(), hessian=True)
    for ours, theirs in zip(parts, whole, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-10, atol=1e-12)


def test_a_thinned_energy_has_the_size_of_the_whole(rng, problem_of):
    """Every second of doubled rows, counted twice, is the whole."""
    X, y = np.repeat(rng.normal(size=(20, 2)), 2, 0), np.repeat(np.arange(20) % 4, 2)
    energy = LinearEnergy(design_of(problem_of(MODELS[0], X, y)).regression(0))
    half, whole = (own.value(energy.start(), hessian=True) for own in (energy.thinned(2), energy))
    for ours, theirs in zip(half, whole, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-10, atol=1e-12)
