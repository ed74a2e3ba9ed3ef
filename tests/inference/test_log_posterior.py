"""log p(θ | data) of many parameter vectors is that of the module, one by one, and its slope is autograd's."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from likely import Classifier, Regressor, priors
from likely.inference import log_posterior
from likely.inference.log_posterior import LogPosterior
from likely.likelihoods import Normal, Poisson, StudentT
from likely.networks import MLP, Linear
from likely.priors import Prior


class _Tight(Prior):
    """A prior without penalty rates: log p = −Σ θ⁴."""

    def log_prob(self, parameters):
        return -sum(value.pow(4).sum() for value in parameters.values())


class Looped(nn.Module):
    """Looks at its own numbers, which cannot be vectorised."""

    def __init__(self, d, out):
        super().__init__()
        self.linear = nn.Linear(d, out)

    def forward(self, x):
        return self.linear(x) if float(self.linear.bias.detach().sum()) > -1e9 else x


def gated(in_shape, out_features):
    """A plain module that is neither dense nor of Likely: under vmap."""
    return nn.Sequential(nn.Linear(in_shape[-1], 6), nn.GLU(), nn.Linear(3, out_features))


def looped(in_shape, out_features):
    return Looped(in_shape[-1], out_features)


STRONG = priors.Normal(0.7, biases=priors.Normal(2.0))
MODELS = {
    "normal": Regressor(Normal(), prior=STRONG),
    "flat": Regressor(Normal(0.5)),
    "sparse": Regressor(Poisson(), prior=priors.Laplace(0.3)),
    "own prior": Regressor(StudentT(), prior=_Tight()),
    "no bias": Regressor(Normal(0.5), network=Linear(bias=False), prior=STRONG),
    "labels": Classifier(prior=STRONG),
    "mlp": Regressor(Normal("input"), network=MLP((5, 4), "tanh"), prior=STRONG),
    "mlp, labels": Classifier(network=MLP((5,)), prior=_Tight()),
    "vmap": Regressor(Poisson(), network=gated, prior=STRONG),
    "one by one": Regressor(Poisson(), network=looped, prior=STRONG),
}


@pytest.fixture
def data(rng):
    X = rng.normal(size=(30, 3))
    return X, rng.poisson(np.exp(0.5 * X[:, 0])).astype(float)


def targets(model, y):
    return np.minimum(y, 2).astype(int) if isinstance(model, Classifier) else y


def loaded(problem, target, theta):
    """A module with these parameters."""
    module = problem.module().eval()
    state = module.state_dict() | target.named(theta)
    module.load_state_dict(state)
    return module


def joint(problem, module):
    """The log joint density, differentiable."""
    total = sum(problem.log_likelihood(module, batch) for batch in problem.data.blocks())
    return total + problem.log_prior(dict(module.named_parameters()))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", MODELS)
def test_values_and_slopes_are_those_of_the_module(name, weighted, data, problem_of, rng):
    X, y = data
    model = MODELS[name]
    options = {"sample_weight": rng.uniform(0, 2, len(y))} if weighted else {}
    problem = problem_of(model, X, targets(model, y), **options)
    target = LogPosterior(problem)
    theta = target.start() + 0.3 * torch.randn(4, target.size, dtype=torch.float64)
    value, slope = target.value_and_grad(theta)
    plain = target(theta)
    modules = [loaded(problem, target, point) for point in theta]
    expected = torch.stack([problem.log_joint(module) for module in modules])
    for log_prob in (value, plain):  # up to a constant
        torch.testing.assert_close(log_prob - log_prob[0], expected - expected[0], rtol=1e-10, atol=1e-9)
    for row, module in enumerate(modules):
        joint(problem, module).backward()
        own = torch.cat([p.grad.flatten() for p in module.parameters()])
        torch.testing.assert_close(slope[row], own, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", ["normal", "labels", "mlp", "one by one"])
def test_blocks_of_rows_add_up(name, data, problem_of, monkeypatch):
    X, y = np.tile(data[0], (5, 1)), np.tile(data[1], 5)
    model = MODELS[name]
    problem = problem_of(model, X, targets(model, y))
    whole = LogPosterior(problem)
    theta = whole.start() + 0.3 * torch.randn(4, whole.size, dtype=torch.float64)
    value, slope = whole(theta), whole.value_and_grad(theta)
    monkeypatch.setattr(log_posterior, "BLOCK", 1)  # the least is 64 rows
    monkeypatch.setattr(log_posterior, "WIDEST", 1)
    parts = LogPosterior(problem)
    assert len(parts._blocks(4)) == 3
    torch.testing.assert_close(parts(theta), value, rtol=1e-12, atol=1e-10)
    for ours, theirs in zip(parts.value_and_grad(theta), slope, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-11, atol=1e-10)


def test_targets_with_positions_and_gaps(rng, problem_of):
    X = rng.normal(size=(20, 2))
    y = rng.normal(size=(20, 3))
    y[::4, 1] = np.nan
    problem = problem_of(Regressor(Normal(0.5), prior=STRONG), X, y)
    target = LogPosterior(problem)
    theta = torch.randn(5, target.size, dtype=torch.float64)
    expected = torch.stack([problem.log_joint(loaded(problem, target, point)) for point in theta])
    torch.testing.assert_close(target(theta) - target(theta)[0], expected - expected[0], rtol=1e-10, atol=1e-9)
    assert target.output(theta, problem.data.batch(slice(None))).shape == (5, 20, 3, 1)


def test_frozen_parameters_are_no_part_of_theta(data, problem_of):
    def network(in_shape, out_features):
        module = nn.Sequential(nn.Linear(in_shape[-1], 4), nn.Tanh(), nn.Linear(4, out_features))
        module[0].requires_grad_(False)
        return module

    target = LogPosterior(problem_of(Regressor(Normal(0.5), network=network), *data))
    assert list(target.parameters.shapes) == ["network.2.weight", "network.2.bias"]
    value, slope = target.value_and_grad(torch.zeros(2, target.size, dtype=torch.float64))
    assert target.size == 5
    assert slope.shape == (2, 5)
    torch.testing.assert_close(value[0], value[1], rtol=1e-12, atol=0)


def test_batch_norm_uses_the_statistics_of_all_rows(data, problem_of):
    target = LogPosterior(problem_of(Regressor(Normal(0.5), network=MLP((4,), norm="batch"), standardise=False), *data))
    layer = next(layer for layer in target.module.modules() if isinstance(layer, nn.BatchNorm1d))
    hidden = torch.as_tensor(data[0]) @ target.module.network[0].weight.T
    if target.module.network[0].bias is not None:
        hidden = hidden + target.module.network[0].bias
    torch.testing.assert_close(layer.running_mean, hidden.mean(0).detach())
    torch.testing.assert_close(layer.running_var, hidden.var(0).detach())
    assert not target.module.training


def test_blocks_are_as_long_as_the_widest_layer_allows(monkeypatch, problem_of):
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(300, 3)), rng.normal(size=300)
    density = LogPosterior(problem_of(Regressor(network=MLP((7, 50, 4))), x, y))
    assert [len(batch.x) for batch in density._blocks(2)] == [300]
    monkeypatch.setattr(log_posterior, "WIDEST", 2 * 50 * 100)  # of two chains, 100 rows of 50 units
    assert [len(batch.x) for batch in density._blocks(2)] == [100, 100, 100]
