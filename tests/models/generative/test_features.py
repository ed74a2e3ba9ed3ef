"""Rows as inputs of networks."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from likely import Autoencoder
from likely.inference import MAP
from likely.likelihoods import Bernoulli, Categorical, Normal
from likely.models.generative.features import Features
from likely.models.generative.observed import columns_of
from likely.networks import MLP
from likely.optim import Adam

X = torch.tensor([[10.0, 1.0, 2.0], [20.0, 0.0, 0.0], [30.0, 1.0, 1.0]], dtype=torch.float64)
MIXED = [Normal(), Bernoulli(), Categorical(3)]


def features(x, likelihood=MIXED, missing=False):
    module = Features(columns_of(likelihood, x), tuple(x.shape[1:]), missing).double()
    module.adapt(x, None)
    return module


def test_numbers_are_standardised_bits_stay_labels_are_one_hot():
    out = features(X)(X)
    np.testing.assert_allclose(out[:, 0], [-np.sqrt(1.5), 0.0, np.sqrt(1.5)])
    assert out[:, 1].tolist() == [1.0, 0.0, 1.0]
    assert out[:, 2:].tolist() == [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]


def test_a_gap_is_zero_beside_an_indicator():
    holes = X.clone()
    holes[0, 0] = holes[1, 2] = torch.nan
    module = features(holes, missing=True)
    out = module(holes)
    assert out.shape == (3, module.size) == (3, 8)
    assert out[0, 0] == 0.0
    assert out[1, 2:5].tolist() == [0.0, 0.0, 0.0]
    assert out[:, 5:].tolist() == [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, 0.0, 0.0]]


def test_images_keep_their_shape_in_units_of_a_channel():
    x = torch.randn(40, 2, 3, 3, dtype=torch.float64) * torch.tensor([1.0, 9.0]).view(2, 1, 1) + 4.0
    module = features(x, Normal())
    out = module(x)
    assert out.shape == x.shape
    assert module.out_shape == (2, 3, 3)
    np.testing.assert_allclose(out.mean((0, 2, 3)), 0.0, atol=1e-9)
    np.testing.assert_allclose(out.std((0, 2, 3), correction=0), 1.0, rtol=1e-9)


def test_a_constant_column_stays_finite():
    x = torch.tensor([[5.0, 1.5], [5.0, 2.5]], dtype=torch.float64)
    assert bool(features(x, Normal())(x).isfinite().all())


@pytest.mark.parametrize("kind", ["numbers", "gaps", "table"])
def test_a_weight_is_a_number_of_repetitions(kind):
    rng = np.random.default_rng(0)
    x, weight = rng.normal(size=(30, 3)), rng.integers(1, 4, size=30)
    if kind == "gaps":
        x[::7, 1] = np.nan
    table = {"size": x[:, 0], "colour": np.array(["red", "blue", "green"])[np.arange(30) % 3]}
    X = table if kind == "table" else x
    again = np.repeat(np.arange(30), weight)
    repeated = {name: column[again] for name, column in table.items()} if kind == "table" else x[again]
    whole = MAP(Adam(0.01), epochs=5, batch_size=None)
    models = [Autoencoder(2, MLP((8,)), MLP((8,)), inference=whole, random_state=0) for _ in range(2)]
    weighted, plain = models[0].fit(X, sample_weight=weight), models[1].fit(repeated)
    np.testing.assert_allclose(weighted.score(X), plain.score(X), rtol=1e-5)
    np.testing.assert_allclose(weighted.transform(X), plain.transform(X), rtol=1e-4, atol=1e-5)
