"""Dropout left on at prediction."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

import likely
from likely import Classifier, Regressor
from likely.core.errors import ApproximationWarning, SpecError
from likely.inference import MAP, DropoutPosterior, Ensemble, MCDropout
from likely.inference.training.mc_dropout import fixed_masks
from likely.likelihoods import Normal
from likely.networks import MLP
from likely.optim import SGD, Adam


@pytest.fixture
def X(rng):
    return rng.normal(size=(30, 3))


@pytest.fixture
def y(rng, X):
    return X @ [1.0, -1.0, 0.5] + 0.1 * rng.normal(size=30)


def linear_with_dropout(in_shape, out_features):
    """A linear function with dropout on its inputs."""
    return nn.Sequential(nn.Dropout(0.4), nn.Linear(in_shape[-1], out_features))


def test_the_expectation_over_masks_is_the_plain_pass_for_a_linear_network(X, y, seed):
    """E[mask/(1 − p)] = 1, so E η = η without dropout: within 5 standard errors of 4,000 masks."""
    by = MAP(Adam(0.05), epochs=30, batch_size=None)
    model = Regressor(Normal(1.0), linear_with_dropout, inference=MCDropout(4000, by), random_state=seed).fit(X, y)
    rows = torch.from_numpy(X).float()
    passes = model.posterior_.eta(rows)[..., 0]
    plain = Regressor(Normal(1.0), linear_with_dropout, inference=by, random_state=seed).fit(X, y)
    deviation = (passes.mean(0) - torch.from_numpy(plain.predict(X)).float()).abs()
    assert bool((deviation <= 5 * passes.std(0) / 4000**0.5 + 1e-6).all())
    assert passes.std(0).min() > 0


def test_the_variance_over_masks_is_that_of_bernoulli_masks(X, y, seed):
    """Var η = Σⱼ (wⱼxⱼ·unit)² p/(1 − p): within 15 %, for 4,000 masks over 6 standard errors."""
    by = MAP(Adam(0.05), epochs=30, batch_size=None)
    inference = MCDropout(4000, by)
    model = Regressor(Normal(1.0), linear_with_dropout, inference=inference, random_state=seed, standardise=False).fit(
        X, y
    )
    weight = model.posterior_.parameters["network.1.weight"][0, 0] * model.posterior_.buffers["unit"][0, 0]
    expected = (torch.from_numpy(X).float() * weight).square().sum(1) * 0.4 / 0.6
    variance = model.posterior_.eta(torch.from_numpy(X).float())[..., 0].var(0)
    np.testing.assert_allclose(variance, expected, rtol=0.15)


def test_what_is_unknown_of_the_mask_adds_to_the_predictive_variance(X, y):
    network, by = MLP((16,), dropout=0.3), MAP(Adam(0.02), epochs=20)
    averaged = Regressor(network=network, inference=MCDropout(50, by), random_state=0).fit(X, y)
    plain = Regressor(network=network, inference=by, random_state=0).fit(X, y)
    assert bool((averaged.predict_dist(X).variance > plain.predict_dist(X).variance).all())


def test_answers_are_repeatable_and_leave_the_random_state_alone(X, y):
    network, inference = MLP((16,), dropout=0.3), MCDropout(10, MAP(epochs=3))
    first, again = (Regressor(network=network, inference=inference, random_state=0).fit(X, y) for _ in range(2))
    before = torch.get_rng_state()
    answer = first.predict(X)
    assert torch.equal(torch.get_rng_state(), before)
    np.testing.assert_array_equal(first.predict(X), answer)
    np.testing.assert_array_equal(again.predict(X), answer)


def test_fixed_masks_are_one_function_of_the_row(X, y):
    """Then the answer to a row does not depend on those beside it, and each mask is that of its own unit everywhere."""
    for by in (MAP(epochs=3), Ensemble(2, MAP(epochs=2))):
        inference = MCDropout(10, by)
        model = Regressor(network=MLP((16,), dropout=0.3), inference=inference, random_state=0).fit(X, y)
        free = model.predict(X)
        with fixed_masks():
            whole, part = model.predict(X), model.predict(X[7:9])
            turned = model.predict(X[::-1])
            eta = model.posterior_.eta(torch.from_numpy(X))
        np.testing.assert_allclose(part, whole[7:9], rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(turned[::-1], whole, rtol=1e-4, atol=1e-5)
        assert eta[..., 0].std(0).min() > 0  # and draws still differ
        assert np.abs(whole - free).max() > 0
        np.testing.assert_array_equal(model.predict(X), free)


def test_a_file_keeps_the_masks(X, y, tmp_path):
    inference = MCDropout(10, MAP(epochs=3))
    model = Regressor(network=MLP((16,), dropout=0.3), inference=inference, random_state=0).fit(X, y)
    model.save(tmp_path / "model.likely")
    loaded = likely.load(tmp_path / "model.likely")
    assert isinstance(loaded.posterior_, DropoutPosterior)
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))


def test_class_probabilities_are_means_over_masks(X, y):
    inference = MCDropout(20, MAP(epochs=3))
    model = Classifier(network=MLP((8,), dropout=0.5), inference=inference, random_state=0).fit(X, y > 0)
    passes = model.posterior_.eta(torch.from_numpy(X))[..., 0].sigmoid()
    assert passes.shape == (20, 30)
    np.testing.assert_allclose(model.predict_proba(X)[:, 1], passes.mean(0), rtol=1e-5)


def test_batch_norm_stays_in_evaluation_mode(X, y):
    """Only dropout is left on: rows do not influence each other through the statistics of a batch."""
    inference = MCDropout(5, MAP(epochs=3))
    model = Regressor(network=MLP((8,), dropout=0.3, norm="batch"), inference=inference, random_state=0).fit(X, y)
    before = {name: value.clone() for name, value in model.posterior_.buffers.items()}
    model.predict(X)
    training = [
        layer for layer in model.posterior_.module.modules() if isinstance(layer, nn.BatchNorm1d) and layer.training
    ]
    assert not training
    assert all(torch.equal(before[name], value) for name, value in model.posterior_.buffers.items())


def test_an_ensemble_inside_has_masks_for_each_member(X, y):
    inference = MCDropout(6, Ensemble(3, MAP(epochs=2)))
    model = Regressor(network=MLP((8,), dropout=0.3), inference=inference, random_state=0).fit(X, y)
    assert model.posterior_.eta(torch.from_numpy(X)).shape[0] == 18
    mixed = model.predict_dist(X)
    torch.testing.assert_close(mixed.mixture_distribution.probs, torch.full((30, 18), 1 / 18))


def test_without_dropout_a_warning_says_what_to_do(X, y):
    with pytest.warns(ApproximationWarning, match=r"no dropout, .* use for example network=MLP\(dropout=0.1\)"):
        model = Regressor(network=MLP((4,)), inference=MCDropout(5, MAP(SGD(0.1), epochs=2)), random_state=0).fit(X, y)
    plain = Regressor(network=MLP((4,)), inference=MAP(SGD(0.1), epochs=2), random_state=0).fit(X, y)
    np.testing.assert_array_equal(model.predict(X), plain.predict(X))


def test_draws_are_a_positive_number():
    with pytest.raises(SpecError, match=r"MCDropout\(draws=0\): draws must be a positive integer"):
        MCDropout(0)
