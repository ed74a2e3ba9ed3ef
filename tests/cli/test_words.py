"""Descriptions in files as calls: what `repr` of the real thing says, without importing it."""

from __future__ import annotations

import inspect

import pytest

from likely import models
from likely.cli.words import Words
from likely.core.spec import Spec, axes, registered
from likely.inference import MAP, Ensemble
from likely.networks import MLP
from likely.optim import SGD

WORDS = Words()
SPECS = [spec for axis in axes() for spec in registered(axis).values() if spec.__module__.startswith("likely.")]
MODELS = [
    model
    for model in (getattr(models, name) for name in models.__all__)
    if all(p.default is not p.empty for p in inspect.signature(model).parameters.values())
]


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: f"{spec.axis}.{spec.__name__}")
def test_every_spec_is_written_as_its_repr(spec):
    example = spec.example()
    assert WORDS.of(example.to_json()) == repr(example)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_every_model_is_written_as_its_repr(model):
    assert WORDS.of(model()._describe()) == repr(model())


def test_specs_inside_specs_and_changed_arguments():
    spec: Spec = Ensemble(3, by=MAP(epochs=5, optimizer=SGD(0.5)))
    assert WORDS.of(spec.to_json()) == repr(spec)
    model = models.Regressor(network=MLP((4, 3), activation="tanh"), inference=spec)
    assert WORDS.of(model._describe()) == " ".join(repr(model).split())


def test_what_we_do_not_know_is_written_in_full():
    assert WORDS.of({"spec": "network.Theirs", "size": 3, "shape": [1]}) == "Theirs(size=3, shape=(1,))"
    assert WORDS.of({"model": "Theirs", "params": {"net": {"code": "Net"}}}) == "Theirs(net=<Net>)"
    assert WORDS.of({"a": [1.5, None]}) == "{'a': (1.5, None)}"
