"""MNIST as sequences: digits row by row (28 steps of 28 numbers), and pixel by pixel (784 steps of one)."""

from __future__ import annotations

import time

import numpy as np

from likely import Classifier
from likely.inference import MAP
from likely.networks import LRU, LSTM, Network
from likely.optim import Adam, Cosine

from .datasets import mnist
from .timing import Result, show

__all__ = ["run"]

ROWS = 5_000
CHANCE = 0.9
"""The error of guessing."""


def run(repeats: int = 1) -> list[Result]:
    rows, pixels = (28, 28), (784, 1)
    return [
        _line("LSTM, row by row", LSTM(64), rows, 15),
        _line("LRU, row by row", LRU(64, layers=2), rows, 15),
        _line("LRU, pixel by pixel", LRU(32, state=32, layers=2, output="mean"), pixels, 20),
    ]


def _line(name: str, network: Network, shape: tuple[int, ...], epochs: int) -> Result:
    data = mnist(ROWS)
    inference = MAP(Adam(3e-3), epochs=epochs, batch_size=64, schedule=Cosine(), clip_norm=1.0)
    start = time.perf_counter()
    model = Classifier(network=network, inference=inference, random_state=0).fit(data.x.reshape(-1, *shape), data.y)
    seconds = time.perf_counter() - start
    parts = zip(np.split(data.x_test, 10), np.split(data.y_test, 10), strict=True)
    error = 1 - float(np.mean([model.score(x.reshape(-1, *shape), y) for x, y in parts]))
    words = f"{data.source}, {ROWS:,} rows, {epochs} epochs in {seconds:.0f} s: accuracy {1 - error:.4f}"
    return Result(f"sequential digits: {name}", "guessing", error, CHANCE, words, True, None, "error")


if __name__ == "__main__":
    show(run())
