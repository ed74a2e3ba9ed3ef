"""Programs: loss and gradient by hand equal those of automatic differentiation, for every likelihood and activation."""

from __future__ import annotations

import pytest
import torch

from likely.core.spec import registered
from likely.inference import Conditional, Problem
from likely.inference.dataset import Dataset
from likely.inference.predictor import Predictor
from likely.inference.training.program import Single, Stacked
from likely.likelihoods import Likelihood, Normal
from likely.networks import MLP
from likely.networks.layers import ACTIVATIONS
from likely.priors import ElasticNet, Flat, PerLayer, Prior
from likely.priors import Normal as NormalPrior

LIKELIHOODS = [*(cls.example() for cls in registered(Likelihood).values()), Normal(scale="input"), Normal(scale=0.7)]
ROWS = 12


class _Cauchy(Prior):
    """A prior that is no penalty, so that its gradient is left to automatic differentiation."""

    def log_prob(self, parameters):
        return -sum(value.square().log1p().sum() for value in parameters.values())


def problem_of(likelihood, activation="tanh", prior=Flat(), positions=(), weighted=False):  # noqa: B008
    """Rows with 3 features; targets that the likelihood has drawn itself, at each of the positions."""
    target = likelihood.example_target()
    shared = likelihood.shared(target)
    own = likelihood.size(target) - shared
    outputs = own * max(1, *positions, 1) if positions else own
    eta = 0.5 * torch.randn(ROWS, *positions, own + shared, dtype=torch.float64)
    y = likelihood.distribution(eta).sample().double()
    weight = torch.rand(ROWS, *positions, dtype=torch.float64) if weighted else None

    offset, unit = torch.randn(own), torch.rand(own) + 0.5

    def build(seed):
        torch.manual_seed(seed)
        network = MLP((5, 4), activation).build((3,), outputs)
        constants = torch.randn(*positions, shared) if shared else None
        return Predictor(network, constants, offset.clone(), unit.clone(), positions)

    x = torch.randn(ROWS, 3, dtype=torch.float64)
    return Problem(build, Conditional(likelihood), prior, Dataset(x, y, weight, torch.float64, positions), 0)


def assert_alike(problem, members):
    modules = [problem.module(seed) for seed in range(members)]
    program = Single(problem, modules[0]) if members == 1 else Stacked(problem, modules)
    rows = torch.stack([torch.randperm(ROWS)[:8] for _ in range(members)])
    batch = problem.data.batch(rows if members > 1 else rows[0])
    loss = program.evaluate(batch, 0.3, 0.7)
    gradient = program.gradient.clone()
    assert program.passes is not None
    program.passes = None
    assert program.evaluate(batch, 0.3, 0.7) == pytest.approx(loss, rel=1e-9, abs=1e-9)
    torch.testing.assert_close(program.gradient, gradient)
    assert bool(gradient.any())


@pytest.fixture(autouse=True)
def seeded():
    with torch.random.fork_rng():
        torch.manual_seed(0)
        yield


@pytest.mark.parametrize("members", [1, 3])
@pytest.mark.parametrize("likelihood", LIKELIHOODS, ids=repr)
def test_by_hand_equals_autograd_for_every_likelihood_and_activation(likelihood, members):
    for activation in ACTIVATIONS:
        assert_alike(problem_of(likelihood, activation, weighted=True), members)


@pytest.mark.parametrize("members", [1, 3])
@pytest.mark.parametrize(
    "prior", [NormalPrior(0.5), ElasticNet(), PerLayer({"0.*": NormalPrior(0.3)}), _Cauchy()], ids=repr
)
def test_by_hand_equals_autograd_under_every_form_of_prior(prior, members):
    assert_alike(problem_of(Normal(), prior=prior), members)


@pytest.mark.parametrize("members", [1, 3])
def test_by_hand_equals_autograd_where_rows_have_positions(members):
    assert_alike(problem_of(Normal(), positions=(2,), weighted=True), members)


def test_members_with_units_of_their_own_are_left_to_autograd():
    problem = problem_of(Normal())
    modules = [problem.module(0), problem.module(1)]
    assert Stacked(problem, modules).passes is not None
    modules[1].offset += 1.0
    assert Stacked(problem, modules).passes is None


def test_the_closed_form_of_a_penalty_is_the_prior():
    """Loss and gradient with the prior, less those without it, are −log p(θ) up to L1 terms and its gradient."""
    prior = ElasticNet(l1=0.4, l2=2.0)
    problem = problem_of(Normal(), prior=prior)
    program, plain = (Single(own, own.module(0)) for own in (problem, problem.with_(prior=Flat())))
    batch = program.problem.data.batch(slice(None))
    leaves = {name: value.detach().clone().requires_grad_() for name, value in program.parameters.items()}
    smooth = program.problem.smooth_log_prior(leaves)
    smooth.backward()
    gap = program.evaluate(batch, 1.0, 1.0) - plain.evaluate(batch, 1.0, 1.0)
    assert gap == pytest.approx(-smooth.item())
    slopes = [torch.zeros_like(value) if value.grad is None else value.grad for value in leaves.values()]
    expected = -torch.cat([slope.flatten() for slope in slopes])
    torch.testing.assert_close(program.gradient - plain.gradient, expected)
    rates = [0.4 if value.ndim > 1 else 0.0 for value in leaves.values() for _ in range(value.numel())]
    torch.testing.assert_close(program.l1, torch.tensor(rates, dtype=torch.float64))


def test_parameters_are_views_of_one_vector_and_so_are_gradients():
    problem = problem_of(Normal())
    for program in (Single(problem, problem.module(0)), Stacked(problem, [problem.module(0), problem.module(1)])):
        program.flat.fill_(2.0)
        program.gradient.fill_(3.0)
        for value in program.parameters.values():
            assert bool((value == 2).all())
            assert bool((value.grad == 3).all())
        assert sum(value.numel() for value in program.parameters.values()) == len(program.flat)
