"""The energy of a network against its definition, and Gauss-Newton's Hessian where it is exact."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.func import functional_call

from likely import Classifier, Regressor
from likely.inference import Newton
from likely.inference.linear import network_energy
from likely.inference.linear.network_energy import NetworkEnergy
from likely.likelihoods import Normal, Poisson
from likely.networks import MLP, jacobian
from likely.priors import Flat, Laplace, Prior
from likely.priors import Normal as NormalPrior


@pytest.fixture
def data(rng):
    return rng.normal(size=(15, 2)), np.arange(15) % 3, rng.uniform(0.5, 2.0, size=15)


def definition(problem, energy):
    def value(point):
        parameters = energy.parameters.named(point)
        batch = problem.data.batch(slice(None))
        eta = functional_call(energy.module, (parameters, energy.jacobian.fixed), (batch.x,))
        return -problem.objective.log_likelihood(eta, batch) - problem.smooth_log_prior(parameters)

    return value


@pytest.mark.parametrize(
    "model",
    [
        Regressor(Poisson(), MLP((3,), "tanh"), NormalPrior(0.7)),
        Regressor(Normal(), MLP((3,), "tanh"), Laplace(0.7)),
        Classifier("categorical", MLP((3,), "tanh"), NormalPrior(0.7)),
        Regressor(Normal(), MLP((4,), "tanh", norm="batch", dropout=0.5), NormalPrior(0.7)),
    ],
    ids=repr,
)
def test_value_and_gradient_are_those_of_the_definition(model, data, problem_of):
    X, y, weight = data
    problem = problem_of(model.set_params(random_state=0), X, y, sample_weight=weight)
    energy = NetworkEnergy(problem)
    start, point = energy.start(), energy.start() * 1.5 + 0.1
    value, slope, hessian = energy.value(point, hessian=True)
    moved = point.clone().requires_grad_()
    expected = definition(problem, energy)
    (gradient,) = torch.autograd.grad(expected(moved), moved)
    gap = energy.value(start, hessian=False)[0] - value  # what does not depend on η may be left out of E
    assert gap == pytest.approx((expected(start) - expected(point)).item(), rel=1e-9)
    torch.testing.assert_close(slope, gradient, rtol=1e-8, atol=1e-8)
    assert torch.linalg.eigvalsh(hessian)[0] > -1e-8


def test_gauss_newton_is_the_hessian_of_a_linear_function(data, problem_of):
    def network(in_shape, out_features):
        return torch.nn.Sequential(torch.nn.Linear(in_shape[-1], out_features))

    X, y, _ = data
    problem = problem_of(Regressor(Poisson(), network, NormalPrior(0.7), random_state=0), X, y)
    energy = NetworkEnergy(problem)
    exact = torch.autograd.functional.hessian(definition(problem, energy), energy.start())
    torch.testing.assert_close(energy.value(energy.start(), hessian=True)[2], exact, rtol=1e-8, atol=1e-8)
    assert not energy.left_out(energy.start()).any()


class Valued(Prior):
    """Σ −½(θ/2)², known by its values alone."""

    def log_prob(self, parameters):
        return sum(-0.125 * value.square().sum() for value in parameters.values())


class Level(Prior):
    """The same everywhere, but without rates that say so."""

    def log_prob(self, parameters):
        return torch.zeros(())


@pytest.mark.parametrize(
    "model",
    [
        Regressor(Poisson(), MLP((3,), "tanh"), NormalPrior(0.7)),
        Regressor(Normal(0.5), MLP((3,), "relu"), Laplace(0.7)),
        Classifier("categorical", MLP((3,), "tanh"), Flat()),
        Regressor(Poisson(), MLP((3,), "tanh"), Valued()),
        Regressor(Poisson(), MLP((3,), "tanh"), Level()),
        Regressor(Normal(0.5), MLP((4,), "tanh", norm="batch", dropout=0.5), NormalPrior(0.7)),
    ],
    ids=repr,
)
def test_with_what_it_leaves_out_gauss_newton_is_the_hessian(model, data, problem_of):
    X, y, weight = data
    problem = problem_of(model.set_params(random_state=0), X, y, sample_weight=weight)
    energy = NetworkEnergy(problem)
    point = energy.start() * 1.5 + 0.1
    exact = torch.autograd.functional.hessian(definition(problem, energy), point)
    ours = energy.value(point, hessian=True)[2] + energy.left_out(point)
    torch.testing.assert_close(ours, exact, rtol=1e-8, atol=1e-10 * float(exact.abs().max()))


class Square(torch.autograd.Function):
    """x², with a gradient that cannot be followed."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad):
        return grad * Twice.apply(*ctx.saved_tensors)


class Twice(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return 2 * x

    @staticmethod
    def backward(ctx, grad):
        raise NotImplementedError


def test_a_network_that_cannot_be_differentiated_twice_keeps_gauss_newton(data, problem_of):
    class Squares(torch.nn.Linear):
        def forward(self, x):
            return super().forward(Square.apply(x))

    def network(in_shape, out_features):
        return torch.nn.Sequential(torch.nn.Linear(in_shape[-1], 2), Squares(2, out_features))

    X, _, _ = data
    model = Regressor(Normal(0.5), network, NormalPrior(1.0), Newton(max_iter=500), random_state=0)
    y = X[:, 0] ** 2
    energy = NetworkEnergy(problem_of(model, X, y))
    assert energy.left_out(energy.start()).isnan().all()
    assert model.fit(X, y).score(X, y) > 0.5


def test_blocks_do_not_change_the_sums(data, problem_of, monkeypatch):
    X, y, weight = data
    problem = problem_of(Regressor(Poisson(), MLP((3,), "tanh"), random_state=0), X, y, sample_weight=weight)
    energy = NetworkEnergy(problem)
    whole, rest = energy.value(energy.start(), hessian=True), energy.left_out(energy.start())
    monkeypatch.setattr(jacobian, "BLOCK", energy.size * 4)  # four rows at a time
    monkeypatch.setattr(network_energy, "TOGETHER", 5)
    torch.testing.assert_close(energy.left_out(energy.start()), rest, rtol=1e-9, atol=1e-10)
    for ours, theirs in zip(energy.value(energy.start(), hessian=True), whole, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-10)


def test_a_point_goes_into_the_module_and_comes_back(data, problem_of):
    X, y, _ = data
    energy = NetworkEnergy(problem_of(Regressor(network=MLP((3,)), random_state=0), X, y))
    point = torch.arange(energy.size, dtype=torch.float64)
    energy.load(point)
    assert torch.equal(energy.start(), point)
