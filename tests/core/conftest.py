"""Models of three kinds, and a file of one."""

import warnings

import numpy as np
import pytest

from likely import Classifier, Regressor
from likely.inference import MAP, Exact

ROWS = np.random.default_rng(0).normal(size=(30, 3))
TARGETS = ROWS @ [1.0, -2.0, 0.5] + 0.1


@pytest.fixture(scope="module")
def models():
    """Three kinds of model, with what their file holds."""
    network = Regressor(network="mlp([4], norm=batch)", inference=MAP(epochs=2), random_state=0).fit(ROWS, TARGETS)
    full = Regressor(inference=Exact("full")).fit(ROWS, np.stack([TARGETS, -TARGETS], 1))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the classes are separable
        labels = Classifier().fit(ROWS, np.where(TARGETS > 0, "yes", "no"))
    return {"network": network, "full": full, "labels": labels}


@pytest.fixture
def saved(models, tmp_path):
    path = tmp_path / "model.likely"
    models["network"].save(path)
    return path
