"""Dropout left on at prediction."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest
import torch
from torch import nn

import likely
from likely import Classifier, Regressor
from likely.core.errors import ApproximationWarning, SpecError
from likely.core.spec import registered
from likely.data import Graph
from likely.inference import MAP, DropoutPosterior, Ensemble, MCDropout
from likely.inference.training import mc_dropout
from likely.likelihoods import Normal
from likely.networks import GCN, LSTM, MLP, DeepSets, Transformer
from likely.optim import SGD, Adam


@pytest.fixture
def X(rng):
    return rng.normal(size=(30, 3))


@pytest.fixture
def y(rng, X):
    return X @ [1.0, -1.0, 0.5] + 0.1 * rng.normal(size=30)


BRIEF = MAP(epochs=2)


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


def fitted(network, X, y=None, by=BRIEF, draws=8):
    y = np.arange(len(X)) % 5 + 0.1 if y is None else y
    return Regressor(network=network, inference=MCDropout(draws, by), random_state=0).fit(X, y)


def check_rows_are_alone(model, X, start=7, stop=9):
    """The answers to some rows are those of the whole, whatever rows are beside them, and draws differ."""
    whole = model.predict(X)
    close = {"rtol": 1e-4, "atol": 1e-5 * np.abs(whole).max()}
    np.testing.assert_allclose(model.predict(X[start:stop]), whole[start:stop], **close)
    np.testing.assert_allclose(model.predict(X[:1]), whole[:1], **close)
    np.testing.assert_allclose(model.predict_dist(X[:1]).variance, model.predict_dist(X).variance[:1], rtol=1e-3)
    assert model.predict_dist(X).component_distribution.mean.std(-1).max() > 0


DROPPING = {
    name: replace(cls.example(), dropout=0.4)
    for name, cls in registered("network").items()
    if "dropout" in {field.name for field in fields(cls)}
} | {"DeepSets": DeepSets((4, 3), after=(4,), dropout=0.4)}


@pytest.mark.parametrize("name", DROPPING)
def test_a_slice_of_the_rows_gets_that_slice_of_the_answers(name):
    """A draw is one function of the row, in every network: so a block, a batch or a row alone is answered alike."""
    network = DROPPING[name]
    X = network.example_inputs(12, torch.Generator().manual_seed(0))
    check_rows_are_alone(fitted(network, X), X)


def test_a_draw_of_a_member_is_one_function_of_the_row(X, y):
    check_rows_are_alone(fitted(MLP((16,), dropout=0.3), X, y, Ensemble(2, BRIEF)), X)


@pytest.mark.parametrize("network", [LSTM(4, layers=2, dropout=0.4), Transformer(4, 2, 1, hidden=4, dropout=0.4)])
def test_shorter_sequences_have_the_same_masks_beside_longer_ones(network, rng):
    X = [rng.normal(size=(length, 2)) for length in (3, 9, 5, 2, 7, 3, 4, 2, 3, 6)]
    check_rows_are_alone(fitted(network, X), X)


def test_channels_are_dropped_for_all_rows_alike(rng):
    """Also by layers of torch, in whose place ours are put."""

    def network(in_shape, out_features):
        return nn.Sequential(
            nn.Conv2d(1, 6, 3), nn.Dropout2d(0.4), nn.Flatten(), nn.Dropout(0.2), nn.Linear(96, out_features)
        )

    X = rng.normal(size=(12, 1, 6, 6))
    check_rows_are_alone(fitted(network, X), X)


def test_sparse_and_dense_features_of_nodes_share_the_mask(rng):
    """The few entries of some graphs are multiplied by the mask of their columns, as the whole matrix is."""
    features = rng.normal(size=(12, 4, 40)) * (rng.random((12, 4, 40)) < 0.05)
    features[3] = rng.normal(size=(4, 40))  # alone, it is dense
    X = [Graph(h, [[0, 1, 2], [1, 2, 3]]) for h in features]
    model = fitted(GCN((4,), level="graph", dropout=0.4), X)
    check_rows_are_alone(model, X)
    check_rows_are_alone(model, X, 3, 4)


def test_blocks_have_the_masks_of_the_whole(X, y, monkeypatch):
    model = fitted(MLP((16,), dropout=0.3), X, y)
    whole = model.predict(X)
    monkeypatch.setattr(mc_dropout, "BLOCK", 100)
    np.testing.assert_allclose(model.predict(X), whole, rtol=1e-5, atol=1e-6)


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
