"""Stacking: an affine map beside the networks, and the weight that it has."""

from __future__ import annotations

import copy
import math

import numpy as np
import pytest
import torch
from torch import nn

import likely
from likely import Classifier, Regressor
from likely.inference.training.cross_fit import _CrossFit
from likely.inference.training.stacking import best_share, least_squares, networks_of, straight
from likely.likelihoods import Categorical, Gamma, NegativeBinomial, Normal, Ordinal, Poisson, StudentT
from likely.networks import MLP
from likely.optim import Adam
from likely.priors import Normal as NormalPrior
from likely.robust.layers import chain_of


def _linear(seed, rows=400, noise=1.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 4)) * [1.0, 10.0, 0.1, 1.0] + [0.0, 100.0, 0.0, 5.0]
    return X, X @ [1.0, 0.2, 10.0, -2.0] + 30 + noise * rng.normal(size=rows)


@pytest.fixture(scope="module")
def fitted():
    """A network on rows that a linear model describes."""
    X, y = _linear(0)
    return Regressor(network=MLP((8,)), random_state=0).fit(X, y), X


def test_the_share_is_where_the_held_out_rows_are_most_probable(seed):
    rng = np.random.default_rng(seed)
    first, second, weight = torch.tensor(rng.normal(size=(3, 200)))
    weight = weight.abs()
    grid = np.linspace(0.0, 1.0, 2_001)
    mixed = np.logaddexp(np.log1p(-grid[1:-1, None]) + first.numpy(), np.log(grid[1:-1, None]) + second.numpy())
    best = grid[1:-1][(mixed @ weight.numpy()).argmax()]
    assert best_share(first, second, weight) == pytest.approx(best, abs=1e-3)


@pytest.mark.parametrize(("share", "passes"), [(1.0, 0), (0.6, 1), (0.0, 1)])
def test_networks_without_weight_are_not_computed(fitted, share, passes, monkeypatch):
    model, X = copy.deepcopy(fitted[0]), fitted[1]
    posterior = model.posterior_
    affine = posterior.buffers["is_affine"]
    posterior.weights = torch.where(affine, share, (1 - share) / int((~affine).sum()))
    components = [posterior.eta(torch.from_numpy(X).float())[i, :, 0].numpy() for i in range(len(posterior))]
    expected = np.average(components, 0, posterior.weights.numpy())
    calls = []
    forward = nn.Linear.forward
    monkeypatch.setattr(nn.Linear, "forward", lambda own, x: (calls.append(own.out_features == 8), forward(own, x))[1])
    np.testing.assert_allclose(model.predict(X), expected, rtol=1e-4)
    assert sum(calls) == passes
    x = torch.from_numpy(X[:3]).float().requires_grad_()
    model.posterior_.predictive(model.likelihood_, x).mean.sum().backward()
    assert bool(x.grad.abs().sum() > 0)


@pytest.mark.parametrize(("ahead", "share"), [(-1.0, 0.0), (1.0, 1.0), (math.inf, 1.0), (-math.inf, 0.0), (1e6, 1.0)])
def test_who_is_ahead_on_every_row_has_all_the_weight(ahead, share):
    assert best_share(torch.zeros(5), torch.full((5,), ahead)) == share


def test_where_a_linear_model_is_all_there_is_a_network_is_as_good(seed):
    """Gaps over 400 fresh rows are beyond four of their standard errors for one seed in 10⁴, were they 0 on average."""
    X, y = _linear(seed, 800)
    network = Regressor(network=MLP(), random_state=seed).fit(X[:400], y[:400])
    linear = Regressor().fit(X[:400], y[:400])
    gaps = (
        linear.log_prob(X[400:], y[400:]) - network.log_prob(X[400:], y[400:]),
        (network.predict(X[400:]) - y[400:]) ** 2 - (linear.predict(X[400:]) - y[400:]) ** 2,
    )
    for gap in gaps:
        assert gap.mean() < 4 * gap.std() / math.sqrt(len(gap)) + 1e-6


def test_without_noise_it_is_the_linear_model_but_for_rounding():
    X, y = _linear(0, noise=0.0)
    X = np.column_stack([X, X[:, 0] + 1e-3 * np.random.default_rng(1).normal(size=len(X))])
    model = Regressor(network=MLP((8,)), random_state=0).fit(X[:300], y[:300])
    np.testing.assert_allclose(model.predict(X[300:]), y[300:], rtol=0, atol=1e-3 * y.std())
    assert float(model.posterior_.weights[-1]) > 0.99


def test_the_closed_form_is_that_of_the_rows_it_is_given(problem_of):
    X, y = _linear(0, 60)
    targets = np.stack([y, 1 - 3 * y], 1)
    problem = straight(problem_of(Regressor(network=MLP((4,)), random_state=0), X, targets))
    rows = torch.arange(60).view(2, 30)
    weights, biases = least_squares(problem, rows)
    module = problem.module().double()
    for own, weight, bias in zip(rows.numpy(), weights, biases, strict=True):
        design = np.column_stack([X, np.ones(60)])
        expected = design @ np.linalg.lstsq(design[own], targets[own], rcond=None)[0]
        module.network.weight.data, module.network.bias.data = weight.double(), bias.double()
        eta = module(torch.from_numpy(X))[..., 0].detach().numpy()
        np.testing.assert_allclose(eta, expected, rtol=0, atol=1e-8 * np.abs(expected).max())


def test_weights_are_on_the_simplex_and_the_last_member_is_affine(fitted):
    model, X = fitted
    posterior = model.posterior_
    assert len(posterior) == 9
    assert float(posterior.weights.sum()) == pytest.approx(1, abs=1e-6)
    assert posterior.buffers["is_affine"].tolist() == [False] * 8 + [True]
    x = torch.from_numpy(X).float()
    first, last, middle = (posterior.eta(part)[-1, :, 0] for part in (x[:10], x[10:20], (x[:10] + x[10:20]) / 2))
    torch.testing.assert_close((first + last) / 2, middle, rtol=1e-4, atol=1e-4)


def test_the_mean_of_the_members_is_what_it_predicts(fitted):
    model, X = fitted
    eta = model.posterior_.eta(torch.from_numpy(X).float())[..., 0].double()
    expected = (model.posterior_.weights.double() @ eta).numpy()
    np.testing.assert_allclose(model.predict(X), expected, rtol=1e-5)
    alone = torch.stack([model.posterior_.module_of(i)(torch.from_numpy(X).float())[..., 0] for i in range(9)])
    torch.testing.assert_close(alone.double(), eta, rtol=1e-4, atol=1e-3)


def test_a_file_keeps_every_bit(fitted, tmp_path):
    model, X = fitted
    model.save(tmp_path / "model.likely")
    loaded = likely.load(tmp_path / "model.likely")
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    np.testing.assert_array_equal(loaded.log_prob(X, X[:, 0]), model.log_prob(X, X[:, 0]))


def test_a_strange_row_moves_the_affine_map_no_further_than_the_networks(fitted):
    model, X = fitted
    far = X[:1].copy()
    far[0, 1] = 1e6
    assert abs(model.predict(far)[0]) < 0.11 * 0.2 * 1e6 + np.abs(model.predict(X)).max() * 10


def test_bounds_are_of_the_function_that_a_member_is(fitted):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    model = Classifier(network=MLP((8,)), random_state=0).fit(X, X[:, 0] + rng.normal(size=200) > 0)
    assert model.posterior_.module.affine is not None
    for index in (0, len(model.posterior_) - 1):
        module, x = model.posterior_.module_of(index).double(), torch.from_numpy(X)
        eta = x
        for layer in chain_of(module):
            eta = layer(eta)
        torch.testing.assert_close(eta, module(x))


@pytest.mark.parametrize(
    "likelihood",
    [Normal(2.0), Normal(scale="input"), StudentT(), Poisson(), NegativeBinomial(), Gamma(), Categorical(), Ordinal()],
    ids=repr,
)
def test_every_likelihood_has_an_affine_member_where_that_is_enough(likelihood):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 5))
    eta = X @ [0.6, -0.6, 0.6, -0.6, 0.6]  # four hidden units learn it worse
    y = np.exp(eta) * rng.gamma(3.0, size=150) + 0.1 if isinstance(likelihood, Gamma) else rng.poisson(np.exp(eta))
    y = eta + rng.normal(size=150) if isinstance(likelihood, Normal | StudentT) else y
    y = np.minimum(y, 3) if likelihood.labels else y
    kind = Classifier if likelihood.labels else Regressor
    weight = rng.random(150)
    posterior = kind(likelihood, MLP((4,)), random_state=0).fit(X, y, sample_weight=weight).posterior_
    assert posterior.module.affine is not None
    assert float(posterior.weights.sum()) == pytest.approx(1, abs=1e-6)
    assert all(bool(value.isfinite().all()) for value in posterior.parameters.values())


def test_where_a_network_is_needed_it_stands_alone(seed):
    X = np.random.default_rng(seed).uniform(-2, 2, size=(400, 1))
    model = Regressor(network=MLP((32,)), random_state=seed).fit(X, np.cos(3 * X[:, 0]))
    assert model.posterior_.module.affine is None
    assert len(model.posterior_) == 8


def test_a_fold_may_hold_all_the_targets():
    """There is no least squares of no rows; the map is trained by steps then, from where it is 0."""
    X, y = _linear(0, 40)
    inference = _CrossFit(2, Adam(), 16, 40, 20, affine=True)
    alone = np.arange(40) == 3
    one = Regressor(network=MLP((4,)), inference=inference, random_state=0).fit(X, y, sample_weight=alone)
    two = Regressor(network=MLP((4,)), inference=inference, random_state=0)
    two.fit(X, np.stack([y, np.where(alone, y, np.nan)], 1))
    np.testing.assert_allclose(one.predict(X[3:4]), y[3:4], rtol=1e-3)
    np.testing.assert_allclose(two.predict(X)[3, 1], y[3], rtol=1e-3)


def test_a_network_that_answers_at_each_position_stands_alone():
    """An affine map of the columns has one answer for a row."""
    X, y = _linear(0, 40)
    network = nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 2), nn.Unflatten(1, (2, 1)))
    inference = _CrossFit(2, Adam(), 16, 40, 10, affine=True)
    model = Regressor(network=network, inference=inference, random_state=0).fit(X, np.stack([y, -y], 1))
    assert model.posterior_.module.affine is None
    assert model.predict(X).shape == (40, 2)


def test_the_networks_of_a_mixture_are_those_that_were_put_into_it(fitted):
    model, X = fitted
    x, networks = torch.from_numpy(X).float(), networks_of(model.posterior_)
    assert networks_of(networks) is networks
    torch.testing.assert_close(networks.eta(x), model.posterior_.eta(x)[:-1])
    torch.testing.assert_close(networks.weights, torch.full((8,), 0.125))


def test_a_prior_of_the_networks_weights_is_not_asked_of_the_affine_map():
    X, y = _linear(0)
    tight = Regressor(network=MLP((8,)), prior=NormalPrior(1e-3), random_state=0).fit(X, y)
    assert tight.score(X, y) > 0.8
    assert float(tight.posterior_.weights[-1]) > 0.9
