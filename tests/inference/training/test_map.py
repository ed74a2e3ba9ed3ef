"""Gradient training finds the optimum that closed forms and Newton's method find."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.special import expit
from sklearn.linear_model import Ridge
from torch import nn

from likely import Classifier, Regressor
from likely.core.errors import DataError, SpecError
from likely.core.spec import Spec
from likely.inference import MAP, Exact, Newton, Noise
from likely.likelihoods import Normal, Poisson
from likely.networks import MLP, Linear
from likely.optim import LBFGS, SGD, Adam, AdamW, GradientDescent, HeavyBall, RMSprop
from likely.optim import Linear as LinearSchedule
from likely.priors import Laplace, Prior
from likely.priors import Normal as NormalPrior

EPS = float(np.finfo(np.float32).eps)


def coefficients(model):
    parameters = model.posterior_.parameters
    return np.column_stack([parameters["network.weight"][0].numpy(), parameters["network.bias"][0].numpy()])


@pytest.fixture
def X(rng):
    return rng.normal(size=(60, 3))


@pytest.fixture
def labels(rng, X):
    return rng.binomial(1, expit(X @ [1.0, -1.0, 0.5]))


@pytest.fixture
def y(rng, X):
    return X @ [1.0, -2.0, 0.5] + 3.0 + 0.5 * rng.normal(size=60)


# --- the same optimum -----------------------------------------------------------------------------------------------
def test_gradient_descent_with_a_tolerance_is_the_exact_solution(X, y):
    descent = MAP(GradientDescent(), epochs=500, batch_size=None, tol=2e-4)  # float32 sees losses fall to about here
    model = Regressor(Normal(scale=1.0), inference=descent).fit(X, y)
    exact = Regressor(Normal(scale=1.0), inference=Exact()).fit(X, y)
    assert len(model.posterior_.info["history"]["loss"]) < 500
    np.testing.assert_allclose(coefficients(model), coefficients(exact), atol=1e-3)


@pytest.mark.parametrize("tol", [1e-2, 1e-3])
def test_a_tolerance_stops_at_the_first_gradient_below_it(tol, X, y):
    """The gradient of the mean loss over all numbers, worked out here, is at most tol at the end and not before."""
    seen = []

    def gradient(model):
        weight, bias = coefficients(model)[0, :3], coefficients(model)[0, 3]
        gap = X @ weight + bias - y
        return np.linalg.norm(np.append(X.T @ gap, gap.sum()) / len(y))

    stop = MAP(GradientDescent(), epochs=500, batch_size=None, tol=tol, callbacks=(lambda e: seen.append(e.epoch),))
    model = Regressor(Normal(scale=1.0), inference=stop).fit(X, y)
    assert gradient(model) <= tol * 1.01
    assert 1 < seen[-1] < 500
    earlier = Regressor(Normal(scale=1.0), inference=stop(epochs=seen[-1] - 1, callbacks=())).fit(X, y)
    assert gradient(earlier) > tol * 0.99


@pytest.mark.parametrize(("prior", "rate"), [("flat", 0.0), (NormalPrior(0.5), 4.0)], ids=repr)
def test_quasi_newton_training_is_newton_for_logistic_regression(prior, rate, X, labels):
    """In the digits of float32: over 120 fits the energies were apart by half an ε at most."""
    trained = Classifier(prior=prior, inference=MAP(LBFGS(), epochs=20, batch_size=None)).fit(X, labels)
    newton = Classifier(prior=prior, inference=Newton()).fit(X, labels)

    def energy(model):
        weight, bias = coefficients(model)[0, :3].astype(float), coefficients(model)[0, 3].astype(float)
        eta = X @ weight + bias
        return np.logaddexp(0, eta).sum() - labels @ eta + rate * weight @ weight / 2

    assert energy(newton) <= energy(trained) <= energy(newton) * (1 + 4 * EPS)


@pytest.mark.parametrize("optimizer", [SGD(0.3), HeavyBall(0.1), Adam(0.1)], ids=repr)
def test_a_normal_prior_is_ridge(optimizer, X, y):
    training = MAP(optimizer, epochs=400, batch_size=None, schedule=LinearSchedule())
    model = Regressor(Normal(scale=0.7), prior=NormalPrior(0.2), inference=training).fit(X, y)
    peer = Ridge(alpha=0.7**2 / 0.2**2).fit(X, y)
    np.testing.assert_allclose(coefficients(model)[0], [*peer.coef_, peer.intercept_], atol=1e-3)


def test_weight_decay_shrinks_the_optimum_of_a_quadratic(X, y):
    """With curvature H and decay μ, θ = (H + μI)⁻¹H θ*, direction by direction λ/(λ + μ)."""
    decay = 0.5
    training = MAP(SGD(0.3, weight_decay=decay), epochs=300, batch_size=None)
    model = Regressor(Normal(scale=1.0), Linear(bias=False), inference=training).fit(X, y)
    curvature, best = X.T @ X / len(X), np.linalg.lstsq(X, y)[0]
    shrunk = np.linalg.solve(curvature + decay * np.eye(3), curvature @ best)
    np.testing.assert_allclose(model.posterior_.parameters["network.weight"][0, 0], shrunk, atol=1e-5)
    values, vectors = np.linalg.eigh(curvature)
    np.testing.assert_allclose(vectors.T @ shrunk, values / (values + decay) * (vectors.T @ best), atol=1e-10)


def test_mini_batches_reach_the_optimum_as_the_step_falls(X, labels):
    training = MAP(SGD(0.5), epochs=300, batch_size=20, schedule=LinearSchedule())
    trained = Classifier(prior=NormalPrior(1.0), inference=training, random_state=0).fit(X, labels)
    newton = Classifier(prior=NormalPrior(1.0), inference=Newton()).fit(X, labels)
    np.testing.assert_allclose(coefficients(trained), coefficients(newton), atol=0.03)


@pytest.mark.parametrize(
    "optimizer", [SGD(0.5), SGD(0.1, momentum=0.8), RMSprop(0.02), Adam(0.05), AdamW(0.05, weight_decay=0.0)], ids=repr
)
def test_proximal_steps_reach_exact_zeros_and_newtons_optimum(optimizer, rng, labels):
    X = rng.normal(size=(60, 6))
    X[:, 0] += 1.5 * labels
    training = MAP(optimizer, epochs=700, batch_size=None, schedule=LinearSchedule())
    trained = coefficients(Classifier(prior=Laplace(0.15), inference=training).fit(X, labels))
    newton = coefficients(Classifier(prior=Laplace(0.15), inference=Newton()).fit(X, labels))
    np.testing.assert_allclose(trained, newton, atol=1e-3)
    np.testing.assert_array_equal(trained == 0, newton == 0)
    assert 0 < (newton[:, :-1] == 0).sum() < 6


def test_an_optimiser_with_a_closure_meets_l1_by_subgradients(X, labels):
    trained = Classifier(prior=Laplace(0.5), inference=MAP(LBFGS(), epochs=30, batch_size=None)).fit(X, labels)
    newton = Classifier(prior=Laplace(0.5), inference=Newton()).fit(X, labels)

    def energy(model):
        weight, bias = coefficients(model)[0, :3], coefficients(model)[0, 3]
        eta = X @ weight + bias
        return np.logaddexp(0, eta).sum() - labels @ eta + np.abs(weight).sum() / 0.5

    assert energy(trained) == pytest.approx(energy(newton), abs=0.05)


class _Heavy(Prior):
    """A prior of one's own, with nothing but its density: −log(1 + θ²) of every number."""

    def log_prob(self, parameters):
        return -sum(value.square().log1p().sum() for value in parameters.values())


def test_a_prior_with_only_a_density_is_enough(X, y):
    """A step of √ε from the optimum changes no digit of the mean loss in float32; that of the gradient is 60√ε."""
    training = MAP(LBFGS(), epochs=30, batch_size=None)
    model = Regressor(Normal(scale=1.0), prior=_Heavy(), inference=training).fit(X, y)
    theta = coefficients(model)[0]
    design = np.column_stack([X, np.ones(60)])
    np.testing.assert_allclose(design.T @ (y - design @ theta), 2 * theta / (1 + theta**2), atol=60 * EPS**0.5)


# --- rows that do not count -----------------------------------------------------------------------------------------
@pytest.mark.parametrize("network", [Linear(), MLP((4,), "tanh")], ids=repr)
def test_weight_zero_is_removal_and_weight_two_repetition(network, X, y):
    count = np.arange(60) % 3
    training = MAP(SGD(0.1), epochs=20, batch_size=None)
    weighted = Regressor(network=network, inference=training, random_state=0).fit(X, y, sample_weight=count)
    repeated = Regressor(network=network, inference=training, random_state=0)
    repeated.fit(np.repeat(X, count, 0), np.repeat(y, count))
    np.testing.assert_allclose(weighted.predict(X), repeated.predict(X), rtol=1e-4, atol=1e-4)


def test_missing_labels_are_removal(X, labels):
    training = MAP(SGD(0.1), epochs=20, batch_size=None)
    gaps = labels.copy()
    gaps[::4] = -1
    with_gaps = Classifier(network=MLP((4,)), inference=training, random_state=0, missing_label=-1).fit(X, gaps)
    without = Classifier(network=MLP((4,)), inference=training, random_state=0).fit(X[gaps >= 0], labels[gaps >= 0])
    np.testing.assert_allclose(with_gaps.predict_proba(X), without.predict_proba(X), atol=1e-5)


def test_missing_numbers_are_removal(X, y):
    training = MAP(SGD(0.1), epochs=20, batch_size=None)
    gaps = y.copy()
    gaps[::4] = np.nan
    seen = ~np.isnan(gaps)
    with_gaps = Regressor(network=MLP((4,)), inference=training, random_state=0).fit(X, gaps)
    without = Regressor(network=MLP((4,)), inference=training, random_state=0).fit(X[seen], y[seen])
    np.testing.assert_allclose(with_gaps.predict(X), without.predict(X), rtol=1e-4, atol=1e-4)


# --- sizes ----------------------------------------------------------------------------------------------------------
def test_a_batch_larger_than_the_data_is_all_rows(X, y):
    models = [
        Regressor(network=MLP((4,)), inference=MAP(SGD(0.1), epochs=5, batch_size=size), random_state=0).fit(X, y)
        for size in (1000, 60, None)
    ]
    for model in models[1:]:
        np.testing.assert_array_equal(model.predict(X), models[0].predict(X))


@pytest.mark.parametrize("network", [Linear(), MLP((4,))], ids=repr)
def test_one_row(network):
    model = Regressor(Poisson(), network, inference=MAP(epochs=3), random_state=0).fit([[1.0, 2.0]], [4.0])
    assert np.isfinite(model.predict([[1.0, 2.0]])).all()


def test_one_row_cannot_be_split():
    with pytest.raises(DataError, match=r"validation=0.1 of 1 rows leaves nothing to train on; give \(X, y\)"):
        Regressor(inference=MAP(patience=3)).fit([[1.0]], [2.0])


# --- a user's own module --------------------------------------------------------------------------------------------
def half_frozen(in_shape, out_features):
    fixed = nn.Linear(in_shape[-1], 5)
    nn.init.constant_(fixed.weight, 0.25)
    nn.init.constant_(fixed.bias, -0.5)
    return nn.Sequential(fixed.requires_grad_(False), nn.Tanh(), nn.Linear(5, out_features))


@pytest.mark.parametrize("inference", [MAP(Adam(0.1), epochs=5), Newton()], ids=["MAP", "Newton"])
def test_frozen_parameters_stay(inference, X, y):
    prior = NormalPrior(1.0)
    model = Regressor(network=half_frozen, prior=prior, inference=inference, random_state=0).fit(X, y)
    parameters = model.posterior_.parameters
    assert (parameters["network.0.weight"] == 0.25).all()
    assert (parameters["network.0.bias"] == -0.5).all()
    assert (parameters["network.2.bias"] != 0).any()
    untrained = half_frozen((3,), 1)
    assert parameters["network.2.weight"].shape == (1, *untrained[2].weight.shape)


# --- the spec -------------------------------------------------------------------------------------------------------
def test_text_and_numbers_become_specs():
    assert MAP("sgd(lr=0.1)", schedule="cosine", noise=0.2) == MAP(
        SGD(0.1), schedule=Spec.from_json({"spec": "schedule.Cosine"}), noise=Noise(inputs=0.2)
    )


def test_data_and_code_inside_are_not_written():
    spec = MAP(augment=torch.sin, callbacks=(print,), checkpoint="here", validation=([[1.0]], [1.0]))
    written = spec.to_json()
    assert not {"augment", "callbacks", "checkpoint"} & set(written)
    assert Spec.from_json(written) == MAP()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"epochs": 0}, r"MAP\(epochs=0\): epochs must be a positive integer"),
        ({"epochs": 2.5}, "epochs must be a positive integer"),
        ({"batch_size": 0}, "batch_size must be a positive integer, or None for all rows at once"),
        ({"clip_norm": 0.0}, "clip_norm must be positive or None"),
        ({"tol": -1.0}, "tol must be positive or None"),
        ({"patience": 0}, "patience must be a positive number of epochs or None"),
        ({"validation": 1.5}, r"validation must be a fraction between 0 and 1, or \(X, y\)"),
        ({"noise": Noise}, "noise"),
        ({"optimizer": "adm"}, "Did you mean Adam"),
    ],
)
def test_bad_arguments_are_named(arguments, message):
    with pytest.raises(SpecError, match=message):
        MAP(**arguments)


def test_noise_is_not_negative():
    with pytest.raises(SpecError, match=r"Noise\(weights=-1\): weights must be 0 or more"):
        Noise(weights=-1)
