"""A supervised model in a file: nothing is lost on the way, and parts that do not fit each other are refused."""

from __future__ import annotations

import copy

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import clone

from likely import Classifier, Regressor
from likely.core.errors import ModelFileError
from likely.inference import MAP
from likely.models.supervised.files import restore, state_of
from likely.networks import MLP

RNG = np.random.default_rng(0)
X = pd.DataFrame(RNG.normal(size=(30, 2)), columns=["a", "b"])
SHORT = MAP(epochs=2)


def models():
    table = Classifier(network=MLP((3,)), inference=SHORT, random_state=0).fit(X, RNG.integers(0, 3, 30))
    several = Regressor(network=MLP((3,)), inference=SHORT, random_state=0).fit(X, RNG.normal(size=(30, 2)))
    return {"classes": table, "positions": several}


MODELS = models()


def restored(model, learned, tensors):
    other = clone(model)
    if hasattr(model, "classes_"):
        other.classes_ = model.classes_
    restore(other, learned, tensors)
    return other


@pytest.mark.parametrize("name", MODELS)
def test_state_and_restore_are_inverse(name):
    model = MODELS[name]
    learned, tensors = state_of(model)
    back = restored(model, copy.deepcopy(learned), {key: value.clone() for key, value in tensors.items()})
    again, same = state_of(back)
    assert again == learned
    assert all(torch.equal(same[key], value) for key, value in tensors.items())
    eta = model.posterior_.eta(torch.from_numpy(X.to_numpy(np.float32)))
    torch.testing.assert_close(back.posterior_.eta(torch.from_numpy(X.to_numpy(np.float32))), eta)
    assert back.feature_names_in_.tolist() == ["a", "b"]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"in_shape": [3]}, "its columns are not those of its network"),
        ({"feature_names_in": ["a"]}, "feature_names_in_ that are not the names of 2 columns"),
        ({"kind": "picture"}, "rows of an unknown kind: 'picture', False"),
        ({"per_position": 1}, "rows of an unknown kind: 'tensor', 1"),
        ({"positions": [0]}, r"The file has positions=\[0\]; it must be sizes above 0 that memory can hold"),
        ({"positions": [10**9]}, "sizes above 0 that memory can hold"),
        ({"in_shape": "two"}, "The file has in_shape='two'"),
        ({"positions": [5]}, r"its network gives \(3,\), not \(5, 3\)"),
    ],
)
def test_parts_that_do_not_fit_are_refused(changes, words):
    model = MODELS["classes"]
    learned, tensors = state_of(model)
    with pytest.raises(ModelFileError, match=words):
        restored(model, {**copy.deepcopy(learned), **changes}, tensors)


def test_the_numbers_of_the_likelihood_are_those_of_the_plan():
    model = MODELS["classes"]
    learned, tensors = state_of(model)
    plan = {**learned["plan"], "shared": 1}
    with pytest.raises(ModelFileError, match="has 3 numbers η"):
        restored(model, {**copy.deepcopy(learned), "plan": plan}, tensors)
