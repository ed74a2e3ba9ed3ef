"""Images of one channel may come without it; images of other sizes where the network allows."""

from __future__ import annotations

import numpy as np
import pytest

from likely import Classifier
from likely.core.errors import DataError, LikelyWarning
from likely.inference import MAP
from likely.networks import MLP, ConvNet, ResNet

RNG = np.random.default_rng(0)
IMAGES, LABELS = RNG.normal(size=(20, 8, 8)), np.arange(20) % 2


@pytest.mark.parametrize("network", [ConvNet((4,)), ResNet((4,), blocks=1)])
def test_squares_are_grey_images_with_a_word(network):
    model = Classifier(network=network, inference=MAP(epochs=1), random_state=0)
    with pytest.warns(LikelyWarning, match=r"taken as grey images \(n, 1, 8, 8\)"):
        plain = model.fit(IMAGES, LABELS).predict_proba(IMAGES)
    assert model.in_shape_ == (1, 8, 8)
    np.testing.assert_array_equal(model.fit(IMAGES[:, None], LABELS).predict_proba(IMAGES), plain)


def test_series_and_flat_networks_are_as_they_were():
    series = Classifier(network=ConvNet((4,)), inference=MAP(epochs=1), random_state=0).fit(IMAGES[:, :3], LABELS)
    assert series.in_shape_ == (3, 8)
    with pytest.raises(DataError, match="8 features"):
        series.predict(IMAGES)
    flat = Classifier(network=MLP((4,)), inference=MAP(epochs=1), random_state=0).fit(IMAGES.reshape(20, -1), LABELS)
    assert flat.in_shape_ == (64,)
