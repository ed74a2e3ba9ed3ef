"""Training steps of networks for images and sequences, against the same module in other loops.

What Likely adds to a step must not be felt: a loop by hand, skorch, Lightning and Keras (on its torch backend) train
the very module that the network builds, with Adam(1e-3) on batches of 64.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import nn

from likely import Classifier
from likely.inference import MAP
from likely.networks import LSTM, ConvNet, Network, ResNet, Transformer, ViT
from likely.optim import Adam

from .datasets import mnist
from .loops import keras_fit, lightning_fit, predict_module, skorch_fit, torch_fit
from .timing import Result, compare, interleave, show

__all__ = ["run"]

ROWS, BATCH, EPOCHS = 2_048, 64, 2
IMAGE, STEPS = (1, 28, 28), (28, 28)
NETWORKS: dict[str, tuple[Network, tuple[int, ...]]] = {
    "ConvNet": (ConvNet((16, 32)), IMAGE),
    "ResNet": (ResNet((8, 16, 32), blocks=1), IMAGE),
    "ViT": (ViT(patch=4, width=32, layers=2), IMAGE),
    "LSTM": (LSTM(64), STEPS),
    "Transformer": (Transformer(width=32, layers=2), STEPS),
}
TARGETS = {"PyTorch loop": 1.05, "skorch": 1.0, "Lightning": 1.0, "Keras (torch)": 1.0}
MARGIN = 0.15
"""Two epochs of few rows tell little: accuracies this far apart are a matter of the start."""


def run(repeats: int = 9) -> list[Result]:
    data = mnist(ROWS)
    results = []
    for name, (network, shape) in NETWORKS.items():
        x, x_test = (rows.reshape(-1, *shape) for rows in (data.x, data.x_test[:2_000]))
        results += _compare(name, network, x, data.y, x_test, data.y_test[:2_000], repeats)
    return results


def _compare(
    name: str, network: Network, x: np.ndarray, y: np.ndarray, x_test: np.ndarray, y_test: np.ndarray, repeats: int
) -> list[Result]:
    def build() -> nn.Module:
        return network.build(x.shape[1:], 10)

    def likely_fit() -> Classifier:
        inference = MAP(Adam(1e-3), epochs=EPOCHS, batch_size=BATCH)
        return Classifier(network=network, inference=inference, random_state=0).fit(x, y)

    def accuracy(model: Any) -> float:
        if isinstance(model, nn.Module):
            return float(np.mean(predict_module(model.eval(), x_test) == y_test))
        return model.score(x_test, y_test)

    def quality(mine: Any, other: Any) -> tuple[str, bool]:
        ours, theirs = accuracy(mine), accuracy(other)
        return f"two epochs: test accuracy {ours:.3f} and {theirs:.3f}", ours >= theirs - MARGIN

    steps = (build, x, y, BATCH, EPOCHS)
    calls = {
        "likely": likely_fit,
        "PyTorch loop": lambda: torch_fit(*steps),
        "skorch": lambda: skorch_fit(*steps),
        "Lightning": lambda: lightning_fit(*steps),
        "Keras (torch)": lambda: keras_fit(*steps),
    }
    torch.manual_seed(0)
    return compare(f"two epochs of {name}", interleave(calls, repeats), quality, TARGETS)


if __name__ == "__main__":
    show(run())
