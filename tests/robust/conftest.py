"""Small fitted models to attack."""

from __future__ import annotations

import numpy as np
import pytest

from likely import Classifier
from likely.inference import MAP
from likely.networks import MLP
from likely.optim import Adam


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture(scope="session")
def clouds():
    """Three clouds in four columns of different scales, and their names."""
    rng = np.random.default_rng(0)
    y = np.arange(90) % 3
    centres = np.array([[0.0, 0.0, 1.0, 0.0], [3.0, 0.0, -1.0, 2.0], [0.0, 3.0, 0.0, -2.0]])
    X = (centres[y] + 0.8 * rng.normal(size=(90, 4))) * [1.0, 2.0, 0.5, 1.0] + [5.0, 0.0, 0.0, -3.0]
    return X, np.array(["a", "b", "c"])[y]


@pytest.fixture(scope="session")
def net(clouds):
    """A small network that standardises its inputs, in float32."""
    inference = MAP(Adam(0.03), epochs=40, batch_size=32)
    return Classifier(network=MLP((16, 16)), inference=inference, random_state=0).fit(*clouds)


@pytest.fixture(scope="session")
def linear(clouds):
    """Softmax regression, in float64."""
    return Classifier(prior="normal(1.0)").fit(*clouds)
