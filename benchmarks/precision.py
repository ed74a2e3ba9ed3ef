"""Training in bfloat16 against our own float32: a ConvNet and a ResNet on images, where the processor has units.

10,000 × 1 × 28 × 28, batches of 128, 2 epochs of Adam(1e-3), in CPU seconds of one thread. Without such units there is
nothing to measure.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import torch

from likely import Classifier
from likely.inference import MAP
from likely.inference.training.precision import has_bfloat16
from likely.networks import ConvNet, Network, ResNet
from likely.optim import Adam

from .datasets import Split, mnist
from .timing import Result, compare, interleave, show, with_threads

__all__ = ["run"]

BATCH, EPOCHS, ROWS = 128, 2, 10_000
NETWORKS: dict[str, Network] = {"ConvNet": ConvNet((32, 64)), "ResNet": ResNet()}
MARGIN = 0.001
TARGET = 1 / 1.6


def run(repeats: int = 3, rows: int = ROWS, epochs: int = EPOCHS) -> list[Result]:
    if not has_bfloat16(torch.device("cpu")):
        print("\nprecision: this processor has no units for bfloat16.", flush=True)
        return []
    return with_threads(1, lambda: measure(mnist(rows), repeats, epochs))


def measure(data: Split, repeats: int, epochs: int) -> list[Result]:
    results = []
    for name, network in NETWORKS.items():
        calls = {
            "likely": lambda network=network: fit(data, network, "bfloat16", epochs),
            f"{name} in float32": lambda network=network: fit(data, network, "float32", epochs),
        }
        timed = interleave(calls, repeats, clock=time.process_time)
        results += compare(
            "precision, one thread", timed, lambda a, b: quality(a, b, data), {f"{name} in float32": TARGET}
        )
    return results


def fit(data: Split, network: Network, precision: Any, epochs: int) -> Classifier:
    inference = MAP(Adam(1e-3), epochs=epochs, batch_size=BATCH, precision=precision)
    return Classifier(network=network, inference=inference, random_state=0).fit(images(data.x), data.y)


def images(x: np.ndarray) -> np.ndarray:
    return x.reshape(len(x), 1, 28, 28)


def quality(mine: Any, other: Any, data: Split) -> tuple[str, bool]:
    ours, theirs = (float(np.mean(model.predict(images(data.x_test)) == data.y_test)) for model in (mine, other))
    return f"{data.source}: test accuracy {ours:.4f} and {theirs:.4f}", ours >= theirs - MARGIN


if __name__ == "__main__":
    show(run())
