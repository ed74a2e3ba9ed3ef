"""Gradient training of a network of usual size against a loop by hand, scikit-learn, skorch and Lightning.

10,000 × 784, hidden 256, batches of 128, 5 epochs of Adam(1e-3): the same steps on every side, with torch's own number
of threads, and with one in CPU seconds.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPClassifier
from threadpoolctl import threadpool_limits

from likely import Classifier
from likely.inference import MAP
from likely.networks import MLP
from likely.optim import Adam

from .datasets import Split, mnist
from .loops import lightning_fit, network, predict_module, skorch_fit, torch_fit
from .timing import Result, compare, interleave, show, with_threads

__all__ = ["run"]

HIDDEN, BATCH, EPOCHS = 256, 128, 5
FUSED = "PyTorch loop, fused Adam"
TARGETS = {"PyTorch loop": 1.0, FUSED: 1 / 1.15, "scikit-learn": 1 / 2, "skorch": 1 / 1.3, "Lightning": 1 / 1.8}
MARGIN = 0.01
"""Accuracies on 10,000 rows that differ by less than this are equal: starts differ, and one step of luck is 0.3 %."""


def run(repeats: int = 5) -> list[Result]:
    return [*measure("map_vs_loop", repeats), *with_threads(1, lambda: alone(repeats))]


def alone(repeats: int) -> list[Result]:
    with threadpool_limits(1):  # for scikit-learn's products too
        return measure("map_vs_loop, one thread", repeats, time.process_time)


def measure(name: str, repeats: int, clock: Callable[[], float] = time.perf_counter) -> list[Result]:
    data = mnist(10_000)
    data_and_steps = (lambda: network(data.x.shape[1], HIDDEN, 10), data.x, data.y, BATCH, EPOCHS)
    calls = {
        "likely": lambda: likely_fit(data),
        "PyTorch loop": lambda: torch_fit(*data_and_steps),
        FUSED: lambda: torch_fit(*data_and_steps, fused=True),
        "scikit-learn": lambda: sklearn_fit(data),
        "skorch": lambda: skorch_fit(*data_and_steps),
        "Lightning": lambda: lightning_fit(*data_and_steps),
    }
    timed = interleave(calls, repeats, clock=clock)

    def quality(mine: Any, other: Any) -> tuple[str, bool]:
        ours, theirs = accuracy(mine, data), accuracy(other, data)
        return f"{data.source}: test accuracy {ours:.4f} and {theirs:.4f}", ours >= theirs - MARGIN

    return compare(name, timed, quality, TARGETS)


def likely_fit(data: Split) -> Classifier:
    inference = MAP(Adam(1e-3), epochs=EPOCHS, batch_size=BATCH)
    return Classifier(network=MLP((HIDDEN,)), inference=inference, random_state=0).fit(data.x, data.y)


def sklearn_fit(data: Split) -> MLPClassifier:
    model = MLPClassifier((HIDDEN,), batch_size=BATCH, max_iter=EPOCHS, alpha=0.0, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(data.x, data.y)


def accuracy(model: Any, data: Split) -> float:
    labels = model.predict(data.x_test) if hasattr(model, "predict") else predict_module(model, data.x_test)
    return float(np.mean(labels == data.y_test))


if __name__ == "__main__":
    show(run())
