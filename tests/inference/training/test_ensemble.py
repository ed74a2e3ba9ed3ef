"""Several fits from different starts, averaged."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.special import expit
from torch import nn

from likely import Classifier, Regressor
from likely.core.errors import ConvergenceWarning, SpecError
from likely.inference import MAP, Ensemble, Exact, Inference, Newton, Posterior
from likely.inference.training import map as map_module
from likely.likelihoods import Normal, Poisson
from likely.networks import MLP, Linear
from likely.optim import LBFGS, SGD, Adam, Cosine, RMSprop
from likely.priors import Laplace
from likely.priors import Normal as NormalPrior


@pytest.fixture
def X(rng):
    return rng.normal(size=(40, 2))


@pytest.fixture
def y(rng, X):
    return np.sin(2 * X[:, 0]) + X[:, 1] + 0.3 * rng.normal(size=40)


def one_by_one(monkeypatch):
    """From here on, no network counts as one that can be stacked."""
    monkeypatch.setattr(map_module, "stackable", lambda problem: False)


def is_stacked(model):
    """Members of one program have one history; those trained apart keep their own beside its mean."""
    return "members" not in model.posterior_.info


def assert_same_members(ours, theirs, **tolerance):
    assert ours.posterior_.parameters.keys() == theirs.posterior_.parameters.keys()
    for kind in ("parameters", "buffers"):
        for name, value in getattr(ours.posterior_, kind).items():
            torch.testing.assert_close(value, getattr(theirs.posterior_, kind)[name], **tolerance)


# --- stacked = one by one -------------------------------------------------------------------------------------------
CASES = {
    "plain": (MLP((8,), "tanh"), MAP(SGD(0.1), epochs=6, batch_size=16)),
    "adam, schedule, clipping": (MLP((8,)), MAP(Adam(0.01), epochs=6, batch_size=16, schedule=Cosine(), clip_norm=0.1)),
    "rmsprop, full batch": (MLP((8,)), MAP(RMSprop(0.01), epochs=6, batch_size=None)),
    "batch norm": (MLP((8,), norm="batch"), MAP(SGD(0.05), epochs=6, batch_size=20)),
    "layer norm": (MLP((8,), norm="layer"), MAP(SGD(0.05), epochs=6, batch_size=20)),
    "linear": (Linear(), MAP(SGD(0.05), epochs=6, batch_size=20)),
}


@pytest.mark.parametrize("case", CASES)
def test_stacked_members_are_those_trained_one_by_one(case, X, y, monkeypatch):
    network, by = CASES[case]
    arguments = {"prior": NormalPrior(1.0), "inference": Ensemble(3, by), "random_state": 0}
    stacked = Regressor(network=network, **arguments).fit(X, y)
    one_by_one(monkeypatch)
    apart = Regressor(network=network, **arguments).fit(X, y)
    assert is_stacked(stacked)
    assert not is_stacked(apart)
    assert len(stacked.posterior_) == len(apart.posterior_) == 3
    assert_same_members(stacked, apart, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(stacked.predict(X), apart.predict(X), rtol=1e-3, atol=1e-4)


def test_stacked_l1_is_l1_one_by_one(X, y, monkeypatch):
    by = MAP(SGD(0.05), epochs=60, batch_size=None)
    arguments = {"prior": Laplace(0.05), "inference": Ensemble(2, by), "random_state": 0}
    stacked = Regressor(Normal(1.0), MLP((4,), "tanh"), **arguments).fit(X, y)
    one_by_one(monkeypatch)
    apart = Regressor(Normal(1.0), MLP((4,), "tanh"), **arguments).fit(X, y)
    assert is_stacked(stacked)
    assert_same_members(stacked, apart, rtol=1e-3, atol=1e-4)
    assert any((value == 0).any() for name, value in stacked.posterior_.parameters.items() if "weight" in name)


def test_missing_targets_and_weights_in_stacked_members(X, y, rng, monkeypatch):
    Y = np.column_stack([y, -y])
    Y[::5, 1] = np.nan
    weights = rng.uniform(0.5, 2.0, size=40)
    inference = Ensemble(3, MAP(SGD(0.05), epochs=5, batch_size=16))
    stacked = Regressor(network=MLP((8,)), inference=inference, random_state=0).fit(X, Y, sample_weight=weights)
    assert is_stacked(stacked)
    one_by_one(monkeypatch)
    apart = Regressor(network=MLP((8,)), inference=inference, random_state=0).fit(X, Y, sample_weight=weights)
    assert_same_members(stacked, apart, rtol=1e-3, atol=1e-4)


def test_members_stop_by_their_own_validation_score(X, y, rng, monkeypatch):
    """A member whose patience has run out keeps its best weights while others go on."""
    new = rng.normal(size=(50, 2))
    truth = np.sin(2 * new[:, 0]) + new[:, 1]
    by = MAP(Adam(0.05), epochs=60, batch_size=None, validation=(new, truth), patience=2)
    arguments = {"network": MLP((16,), "tanh"), "inference": Ensemble(4, by), "random_state": 0}
    stacked = Regressor(**arguments).fit(X, y)
    one_by_one(monkeypatch)
    apart = Regressor(**arguments).fit(X, y)
    lengths = [len(info["history"]["loss"]) for info in apart.posterior_.info["members"]]
    assert len(set(lengths)) > 1
    assert len(stacked.posterior_.info["history"]["loss"]) == max(lengths)
    assert_same_members(stacked, apart, rtol=5e-3, atol=5e-3)


def test_dropout_masks_differ_between_members(X, y):
    """Members that start alike and see the same rows part ways only by their masks."""

    def alike(in_shape, out_features):
        network = nn.Sequential(nn.Linear(in_shape[-1], 16), nn.Dropout(0.5), nn.Linear(16, out_features))
        for parameter in network.parameters():
            nn.init.constant_(parameter, 0.1)
        return network

    inference = Ensemble(3, MAP(SGD(0.1), epochs=1, batch_size=None))
    model = Regressor(network=alike, inference=inference, random_state=0).fit(X, y)
    assert is_stacked(model)
    first, second, third = model.posterior_.parameters["network.0.weight"]
    assert not torch.allclose(first, second)
    assert not torch.allclose(second, third)


class Branching(nn.Module):
    """Asks a number of its input, which cannot be vectorised over members."""

    def __init__(self, width, out_features):
        super().__init__()
        self.layer = nn.Linear(width, out_features)

    def forward(self, x):
        return self.layer(x) if x.mean() < 100 else self.layer(-x)


def test_a_network_that_cannot_be_stacked_is_trained_one_by_one(X, y):
    inference = Ensemble(3, MAP(SGD(0.1), epochs=3))
    model = Regressor(network=lambda shape, out: Branching(shape[-1], out), inference=inference, random_state=0)
    model.fit(X, y)
    assert not is_stacked(model)
    assert len(model.posterior_) == 3
    weights = model.posterior_.parameters["network.layer.weight"]
    assert not torch.equal(weights[0], weights[1])


def test_an_optimiser_that_couples_numbers_is_run_one_by_one(X, y):
    inference = Ensemble(2, MAP(LBFGS(), epochs=2, batch_size=None))
    model = Regressor(network=MLP((4,), "tanh"), inference=inference, random_state=0).fit(X, y)
    assert not is_stacked(model)


# --- other inferences inside ----------------------------------------------------------------------------------------
def test_members_by_newton(X, rng):
    counts = rng.poisson(np.exp(X[:, 0])).astype(float)
    inference = Ensemble(2, Newton())
    model = Regressor(Poisson(), inference=inference, random_state=0).fit(X, counts)
    alone = Regressor(Poisson(), inference=Newton()).fit(X, counts)
    assert inference.dtype == model.posterior_.dtype == torch.float64
    np.testing.assert_allclose(model.predict(X), alone.predict(X), rtol=1e-6)  # convex: all members agree


def test_networks_by_newton_differ(X, rng):
    counts = rng.poisson(np.exp(X[:, 0])).astype(float)
    inference = Ensemble(2, Newton(max_iter=8))
    with pytest.warns(ConvergenceWarning):
        model = Regressor(Poisson(), MLP((3,), "tanh"), NormalPrior(1.0), inference, random_state=0).fit(X, counts)
    first, second = model.posterior_.parameters["network.0.weight"]
    assert not torch.allclose(first, second)


def test_one_member_is_a_plain_fit_from_the_members_seed(X, y):
    model = Regressor(network=MLP((4,)), inference=Ensemble(1, MAP(epochs=2)), random_state=0).fit(X, y)
    assert len(model.posterior_) == 1


# --- the average ----------------------------------------------------------------------------------------------------
class _Scattered(Inference):
    """A fit that is pure noise of variance 1, drawn from the seed of the member."""

    def fit(self, problem):
        module = problem.module()
        noise = torch.randn(module.linear.bias.shape, generator=torch.Generator().manual_seed(problem.seed))
        with torch.no_grad():
            module.linear.bias.copy_(noise)
        return Posterior.of(module)


@pytest.mark.parametrize("members", [1, 4, 16])
def test_the_variance_of_the_average_falls_as_one_over_the_members(members, seed):
    """500 outputs with errors of their own: a variance with relative standard error √(2/500) = 6 %; 4 are allowed."""
    Y = np.tile([[-1.0], [1.0]], 500)
    model = Regressor(Normal(1.0), inference=Ensemble(members, _Scattered()), random_state=seed).fit([[0.0], [1.0]], Y)
    assert np.var(model.predict([[0.0]])) * members == pytest.approx(1.0, abs=0.25)


def test_disagreement_adds_to_the_predictive_variance(X, y):
    inference = Ensemble(5, MAP(Adam(0.05), epochs=20))
    model = Regressor(Normal(0.3), MLP((16,), "tanh"), inference=inference, random_state=0).fit(X, y)
    far = 5 * X
    assert bool((model.predict_dist(X).variance >= 0.09 - 1e-6).all())
    assert model.predict_dist(far).variance.mean() > model.predict_dist(X).variance.mean()


def test_an_ensemble_is_no_worse_than_its_average_member():
    """Jensen: −log Σ wₘpₘ ≤ −Σ wₘ log pₘ, row by row."""
    rng = np.random.default_rng(0)
    X, new = rng.normal(size=(40, 2)), rng.normal(size=(100, 2))
    y, truth = rng.binomial(1, expit(2 * X[:, 0])), rng.binomial(1, expit(2 * new[:, 0]))
    inference = Ensemble(4, MAP(Adam(0.05), epochs=30))
    model = Classifier(network=MLP((16,)), inference=inference, random_state=0).fit(X, y)
    eta = model.posterior_.eta(torch.from_numpy(new))
    members = torch.distributions.Bernoulli(logits=eta[..., 0]).log_prob(torch.from_numpy(truth).float())
    assert (model.log_prob(new, truth) >= members.mean(0).numpy() - 1e-6).all()


# --- weights --------------------------------------------------------------------------------------------------------
def test_posterior_weights_are_proportional_to_exp_of_minus_the_energy(X, y):
    """E(θ) = −Σ log p(y | x, θ) − log p(θ), worked out here for each member."""
    inference = Ensemble(4, MAP(SGD(0.02), epochs=3), weights="posterior")
    model = Regressor(Normal(8.0), MLP((3,), "tanh"), NormalPrior(1.5), inference, random_state=0).fit(X, y)
    energies = []
    for index in range(4):
        module = model.posterior_.module_of(index)
        eta = module(torch.from_numpy(X).float())[:, 0].double()
        fit = torch.distributions.Normal(eta, 8.0).log_prob(torch.from_numpy(y)).sum()
        prior = sum(
            torch.distributions.Normal(0.0, 1.5).log_prob(value.double()).sum()
            for name, value in module.named_parameters()
            if name.endswith("weight")
        )
        energies.append(-(fit + prior))
    expected = torch.softmax(-torch.stack(energies), 0)
    torch.testing.assert_close(model.posterior_.weights.double(), expected, rtol=1e-3, atol=1e-6)
    assert expected.max() < 0.999  # so that the weights say something
    parts = model.posterior_.eta(torch.from_numpy(X))[..., 0].double()
    np.testing.assert_allclose(model.predict(X), expected @ parts, rtol=1e-4, atol=1e-5)


def test_equal_weights_are_equal(X, y):
    model = Regressor(network=MLP((3,)), inference=Ensemble(4, MAP(epochs=1)), random_state=0).fit(X, y)
    assert model.posterior_.weights.tolist() == [0.25] * 4


def test_posterior_weights_of_equal_members_are_equal(X, y):
    model = Regressor(inference=Ensemble(3, Exact(), weights="posterior"), random_state=0).fit(X, y)
    np.testing.assert_allclose(model.posterior_.weights, 1 / 3, rtol=1e-9)


# --- repeatability and the spec -------------------------------------------------------------------------------------
def test_the_same_seed_gives_the_same_bits(X, y):
    inference = Ensemble(3, MAP(epochs=3))
    first, again = (
        Regressor(network=MLP((4,), dropout=0.2), inference=inference, random_state=3).fit(X, y) for _ in range(2)
    )
    assert_same_members(first, again, rtol=0, atol=0)


def test_more_members_leave_the_first_ones_as_they_are(X, y):
    small, large = (
        Regressor(network=MLP((4,)), inference=Ensemble(count, MAP(epochs=3)), random_state=0).fit(X, y)
        for count in (2, 4)
    )
    for name, value in small.posterior_.parameters.items():
        torch.testing.assert_close(value, large.posterior_.parameters[name][:2], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"members": 0}, r"Ensemble\(members=0\): members must be a positive integer"),
        ({"weights": "best"}, 'weights must be "equal" or "posterior"'),
        ({"by": 3}, "by must be one of the inference specs"),
    ],
)
def test_bad_arguments_are_named(arguments, message):
    with pytest.raises(SpecError, match=message):
        Ensemble(**arguments)


def test_the_inference_inside_can_be_text():
    assert Ensemble(2, by="map(epochs=5)") == Ensemble(2, MAP(epochs=5))
