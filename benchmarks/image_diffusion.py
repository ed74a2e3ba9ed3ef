"""Images of digits by diffusion and by flow matching: can they be told from real ones, and would a reader know them?

8 × 8: the classifier test against held-out digits. 28 × 28: how sure a classifier of MNIST is of what it sees, how
evenly the ten classes come, and whether draws lie nearer to training images than to held-out ones. Draws are rounded to
the grid that pixels are stored on, since boosted trees would tell 0.01 from 0.
"""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import numpy as np
from sklearn.datasets import load_digits

from likely import Classifier, Diffusion, Flow
from likely.evaluate import closest_record, two_sample
from likely.inference import EMA, MAP
from likely.models.generative import DDIM, DDPM
from likely.networks import MLP, ConvNet, UNet
from likely.optim import Adam, Cosine

from .datasets import Split, mnist
from .timing import Result, show

__all__ = ["run"]

TOLD_APART, SURE, UNEVEN = 0.75, 0.95, 0.03
"""Targets: accuracy of the classifier test, mean confidence, distance of a class's fraction from 0.1."""
TRAINED = 1_200
"""Digits of 8 × 8 that teach; the other 597 are held out."""
EPOCHS, DRAWN = 2, 500
"""Of MNIST: epochs of training, and images that are drawn."""


class Read(NamedTuple):
    """What a classifier reads in images."""

    confidence: float
    uneven: float
    nearer: float
    accuracy: float
    """Of the classifier, on the test set."""


def run(repeats: int = 1) -> list[Result]:
    """Both sizes; about 20 minutes of one core."""
    return digits_lines() + mnist_lines()


# --- 8 × 8 ------------------------------------------------------------------------------------------------------------
def digits_lines(seed: int = 0) -> list[Result]:
    """The classifier test of both models, on a split of its own for each seed."""
    x = load_digits().data[np.random.default_rng(seed).permutation(1797)]
    train, held_out = x[:TRAINED], x[TRAINED:]
    models: dict[str, Any] = {"diffusion": small_diffusion(seed), "flow matching": small_flow(seed)}
    results = []
    for name, model in models.items():
        start = time.process_time()
        draws = model.fit(train).sample(len(held_out), random_state=seed + 1)
        seconds = time.process_time() - start
        new = np.clip(np.round(draws), 0, 16)
        test = np.mean([two_sample(held_out, new, random_state=own).accuracy for own in range(5)])
        near = closest_record(new, train, held_out)
        words = f"{near.nearer:.0%} nearer to training than to held-out digits; {seconds:.0f} s of CPU"
        results.append(
            Result(f"digits 8 × 8: {name}", "chance", float(test), 0.5, words, True, TOLD_APART / 0.5, "accuracy")
        )
    return results


def small_diffusion(seed: int = 0) -> Diffusion:
    return Diffusion(residual(), sampler=DDPM(200), inference=training(400, 128, 1e-3, 0.998), random_state=seed)


def small_flow(seed: int = 0) -> Flow:
    inference = training(400, 128, 1e-3, 0.998)
    return Flow("continuous(tol=1e-3)", network=residual(), dequantise=False, inference=inference, random_state=seed)


def residual() -> MLP:
    return MLP((512,) * 4, activation="silu", residual="preactivation", norm="layer")


def training(epochs: int, batch: int, rate: float, decay: float) -> MAP:
    return MAP(Adam(rate), epochs=epochs, batch_size=batch, schedule=Cosine(), clip_norm=1.0, average=EMA(decay))


# --- 28 × 28 ----------------------------------------------------------------------------------------------------------
def mnist_lines() -> list[Result]:
    """One model of images given their class: draws of each class, and draws without one (guidance 0)."""
    data = mnist(60_000)
    start = time.process_time()
    model = image_diffusion().fit(images(data.x), data.y)
    minutes = (time.process_time() - start) / 60
    reader = Classifier(
        network=ConvNet((16, 32), dropout=0.3, hidden=(128,)),
        inference=MAP(Adam(2e-3), epochs=4, batch_size=128, schedule=Cosine()),
        random_state=0,
    ).fit(images(data.x), data.y)
    classes = np.arange(DRAWN) % 10
    results = []
    for name, guidance in (("given the class", 1.0), ("given the class, guidance 2", 2.0), ("without a class", 0.0)):
        draws = model.set_params(guidance=guidance).sample(DRAWN, classes, random_state=1)
        results += judged(f"MNIST, diffusion {name}", pixels(draws), reader, data, minutes)
    return results


def image_diffusion() -> Diffusion:
    network = UNet((32, 64), activation="silu", norm="layer", patch=2)
    return Diffusion(network, sampler=DDIM(50), inference=training(EPOCHS, 64, 2e-3, 0.995), random_state=0)


def judged(name: str, draws: np.ndarray, reader: Classifier, data: Split, minutes: float) -> list[Result]:
    """What is not sure, and how uneven the classes are, beside what is allowed."""
    seen = read(draws, reader, data)
    words = (
        f"{data.source}: mean confidence {seen.confidence:.1%} of a classifier with {seen.accuracy:.2%}, "
        f"{seen.nearer:.0%} nearer to training than to held-out images; {EPOCHS} epochs in {minutes:.1f} min of CPU"
    )
    return [
        Result(name, "not sure", 1 - seen.confidence, 1 - SURE, words, True, 1.0, ""),
        Result(name, "classes off uniform", seen.uneven, UNEVEN, words, True, 1.0, ""),
    ]


def read(draws: np.ndarray, reader: Classifier, data: Split) -> Read:
    probabilities = reader.predict_proba(draws)
    fractions = np.bincount(probabilities.argmax(1), minlength=10) / len(draws)
    near = closest_record(draws.reshape(len(draws), -1), data.x, data.x_test)
    accuracy = float(reader.score(images(data.x_test), data.y_test))
    return Read(float(probabilities.max(1).mean()), float(np.abs(fractions - 0.1).max()), near.nearer, accuracy)


def images(x: np.ndarray) -> np.ndarray:
    return x.reshape(-1, 1, 28, 28)


def pixels(draws: np.ndarray) -> np.ndarray:
    """As they are stored: 256 levels of grey from 0 to 1."""
    return np.clip(np.round(255 * draws), 0, 255).astype(np.float32) / np.float32(255)


if __name__ == "__main__":
    show(run())
