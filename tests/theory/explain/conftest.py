"""Small fitted models to explain."""

from __future__ import annotations

import numpy as np
import pytest

from likely import Classifier, Regressor
from likely.inference import MAP, Ensemble
from likely.networks import MLP, ConvNet, ViT
from likely.optim import Adam


@pytest.fixture(scope="package")
def table():
    """Four columns, of which the last does nothing, and three classes."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 4)) * [1.0, 3.0, 0.5, 1.0] + [2.0, 0.0, 0.0, 0.0]
    score = X[:, 0] - 2 + X[:, 1] * X[:, 2]
    return X, np.array(["low", "mid", "high"])[np.digitize(score, [-1, 1])], score


@pytest.fixture(scope="package")
def net(table):
    X, y, _ = table
    return Classifier(network=MLP((16, 16)), inference=MAP(Adam(0.03), epochs=30), random_state=0).fit(X, y)


@pytest.fixture(scope="package")
def ensemble(table):
    X, y, _ = table
    training = Ensemble(2, by=MAP(Adam(0.03), epochs=10))
    return Classifier(network=MLP((8,)), inference=training, random_state=0).fit(X, y)


@pytest.fixture(scope="package")
def linear(table):
    X, _, score = table
    return Regressor().fit(X, score)


@pytest.fixture(scope="package")
def stripes():
    """Images of noise with a patch of stripes at one of nine places; the class is how these run. And the places."""
    rng = np.random.default_rng(1)
    y, places = np.arange(60) % 2, rng.integers(3, size=(60, 2))
    X = 0.2 * rng.normal(size=(60, 1, 12, 12)).astype(np.float32)
    bars = np.tile([[1.5], [-1.5]], (2, 4)).astype(np.float32)
    for image, across, (down, right) in zip(X[:, 0], y, 4 * places, strict=True):
        image[down : down + 4, right : right + 4] += bars if across else bars.T
    return X, np.array(["upright", "across"])[y], 4 * places


@pytest.fixture(scope="package")
def convolutional(stripes):
    """Classes that are told apart by what is seen, wherever it is."""
    training = MAP(Adam(0.02), epochs=40, batch_size=20)
    network = ConvNet((8,), hidden=(), pool="mean")
    return Classifier(network=network, inference=training, random_state=0).fit(*stripes[:2])


@pytest.fixture(scope="package")
def vit(stripes):
    network = ViT(patch=4, width=8, heads=2, layers=2)
    training = MAP(Adam(0.01), epochs=5, batch_size=20)
    return Classifier(network=network, inference=training, random_state=0).fit(*stripes[:2])
