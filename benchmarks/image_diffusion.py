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
EPOCHS, DRAWN, MINUTES = 8, 2_000, 20.0
"""Of MNIST: epochs of training, images that are drawn (so that chance alone moves a class by 0.7 %), time allowed."""
COPIED = 0.53
"""The fraction of draws that may lie nearer to training images: half, and what chance may add with so many draws."""


class Read(NamedTuple):
    """What a classifier reads in images."""

    confidence: float
    uneven: float
    nearer: float
    accuracy: float
    """Of the classifier, on the test set."""


def run(repeats: int = 1) -> list[Result]:
    """Both sizes; less than an hour of one core."""
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
    """Models of images given their class: draws of each class, of guidance, and without a class (guidance 0)."""
    data = mnist(60_000)
    reader = image_reader().fit(images(data.x), data.y)
    diffusion, minutes = fitted(image_diffusion(), data)
    results = []
    for name, guidance in (("given the class", 1.0), ("given the class, guidance 2", 2.0), ("without a class", 0.0)):
        diffusion.set_params(guidance=guidance)
        results += judged(f"MNIST, diffusion {name}", drawn(diffusion), reader, data, minutes)
    flow, minutes = fitted(image_flow(), data)
    return results + judged("MNIST, flow matching given the class", drawn(flow), reader, data, minutes)


def image_reader() -> Classifier:
    """The convolutional network of `mnist_networks`."""
    inference = MAP(Adam(2e-3), epochs=12, batch_size=128, schedule=Cosine())
    return Classifier(network=ConvNet((32, 64), dropout=0.3, hidden=(128,)), inference=inference, random_state=0)


def image_diffusion() -> Diffusion:
    return Diffusion(pixel_network(), sampler=DDIM(30), inference=training(EPOCHS, 64, 2e-3, 0.998), random_state=0)


def image_flow() -> Flow:
    inference = training(EPOCHS, 64, 2e-3, 0.998)
    return Flow("continuous(tol=1e-2)", network=pixel_network(), dequantise=False, inference=inference, random_state=0)


def pixel_network() -> UNet:
    return UNet((32, 64), activation="silu", patch=2)


def fitted(model: Any, data: Split) -> tuple[Any, float]:
    """The model, and the minutes of one core that it took."""
    start = time.process_time()
    model.fit(images(data.x), data.y)
    return model, (time.process_time() - start) / 60


def drawn(model: Any) -> np.ndarray:
    """As many images of every class."""
    return pixels(model.sample(DRAWN, np.arange(DRAWN) % 10, random_state=1))


def judged(name: str, draws: np.ndarray, reader: Classifier, data: Split, minutes: float) -> list[Result]:
    """What is not sure, how uneven the classes are, copies, and the time, beside what is allowed."""
    seen = read(draws, reader, data)
    words = (
        f"{data.source}: {DRAWN} draws, mean confidence {seen.confidence:.1%} of a classifier with {seen.accuracy:.2%}"
        f"; {EPOCHS} epochs"
    )
    return [
        Result(name, "not sure", 1 - seen.confidence, 1 - SURE, words, True, 1.0, ""),
        Result(name, "classes off uniform", seen.uneven, UNEVEN, words, True, 1.0, ""),
        Result(name, "chance to be nearer to training", seen.nearer, 0.5, words, True, COPIED / 0.5, ""),
        Result(name, "the time allowed", minutes, MINUTES, words, True, 1.0, "min of CPU"),
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
