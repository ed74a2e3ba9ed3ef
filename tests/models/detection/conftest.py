from __future__ import annotations

import numpy as np
import pytest

from likely import Detector
from likely.data.augment import Flip
from likely.inference import EMA, MAP
from likely.networks import ResNet
from likely.optim import Adam, Cosine


def scenes(count, seed, sides=(24, 32)):
    """Noise with bright squares and dark, larger ones: images (n, 1, h, w), boxes and labels."""
    rng = np.random.default_rng(seed)
    images = rng.normal(size=(count, 1, *sides))
    boxes, labels = [], []
    for image in images:
        own, words = [], []
        for column in range(2):
            if rng.random() < 0.2:
                continue
            bright = rng.random() < 0.5
            size = rng.integers(5, 8) if bright else rng.integers(9, 13)
            x = rng.integers(16 * column, 16 * (column + 1) - size)
            y = rng.integers(0, sides[0] - size)
            image[0, y : y + size, x : x + size] += 4 if bright else -4
            own.append([x, y, x + size, y + size])
            words.append("bright" if bright else "dark")
        boxes.append(np.array(own, float).reshape(-1, 4))
        labels.append(words)
    return images, boxes, labels


@pytest.fixture(scope="session")
def fitted():
    """A detector of the scenes, with the scenes it has not seen."""
    inference = MAP(Adam(0.01), epochs=12, batch_size=8, schedule=Cosine(), average=EMA(0.9), augment=Flip())
    model = Detector(ResNet((8, 16, 16), blocks=1), strides=(4, 8), inference=inference, random_state=0)
    return model.fit(*scenes(80, 0)), scenes(20, 1)


TINY = MAP(Adam(0.01), epochs=1, batch_size=8)
FEW = scenes(8, 3, (16, 32))
