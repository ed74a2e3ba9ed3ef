"""Training in bfloat16: weights stay in float32, answers are near those of float32, and a word where there is none."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from likely import Classifier
from likely.core.errors import ApproximationWarning, SpecError
from likely.inference import MAP, Ensemble
from likely.inference.training import precision
from likely.networks import MLP, ConvNet, ResNet
from likely.optim import Adam


@pytest.fixture
def with_units(monkeypatch):
    """As if the processor had units for bfloat16: others compute the same numbers, slowly."""
    monkeypatch.setattr(precision, "has_bfloat16", lambda device: True)


def images(rng, rows=120):
    """Bright in the upper or in the lower half."""
    y = rng.integers(2, size=rows)
    x = rng.normal(size=(rows, 1, 8, 8))
    x[:, :, :4] += 1.5 * y[:, None, None, None]
    return x, y


@pytest.mark.parametrize("network", [ConvNet((4,)), MLP((16,)), ResNet((4, 8), blocks=1)], ids=repr)
@pytest.mark.parametrize("members", [1, 2])
def test_bfloat16_learns_as_float32_does(with_units, network, members, rng):
    """Probabilities differ by rounding, about 2⁻⁸ of each number along the way; nearly all labels agree."""
    x, y = images(rng)
    training = MAP(Adam(0.01), epochs=6, batch_size=30)

    def fitted(inference):
        return Classifier(network=network, inference=Ensemble(members, by=inference), random_state=0).fit(x, y)

    half, full = fitted(training(precision="bfloat16")), fitted(training)
    assert all(value.dtype == torch.float32 for value in half.posterior_.parameters.values())
    gap = np.abs(half.predict_proba(x) - full.predict_proba(x))
    assert 0 < gap.max() < 0.1
    assert np.mean(half.predict(x) == full.predict(x)) >= 0.97


def test_without_units_the_fit_is_in_float32_and_says_so(monkeypatch, rng):
    monkeypatch.setattr(precision, "has_bfloat16", lambda device: False)
    x, y = images(rng, 20)
    training = MAP(epochs=1)
    with pytest.warns(ApproximationWarning, match="this processor has no units for it"):
        half = Classifier(network=MLP((4,)), inference=training(precision="bfloat16"), random_state=0).fit(x, y)
    full = Classifier(network=MLP((4,)), inference=training, random_state=0).fit(x, y)
    assert np.array_equal(half.predict_proba(x), full.predict_proba(x))


def test_an_unknown_precision_is_refused():
    with pytest.raises(SpecError, match='"float32" or "bfloat16"'):
        MAP(precision="float16")
