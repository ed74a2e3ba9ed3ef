"""Binary density estimation with the published splits: mean test log-likelihood of `Autoregressive` in nats per row.

The validation rows choose among three trainings, and the epoch whose weights are kept, and chose the other settings,
which are one for all sets; test rows have no say in anything.
"""

from __future__ import annotations

import time
from typing import NamedTuple

import numpy as np

from likely import Autoregressive
from likely.inference import MAP
from likely.networks import MLP
from likely.optim import AdamW, Cosine

from .datasets import FOLDER
from .timing import Result, show

__all__ = ["binary_rows", "run"]

TARGETS = {"nltcs": -6.00, "dna": -84.5, "mushrooms": -11.9}
BATCH = 128


class Training(NamedTuple):
    """One order learned quickly, or several that share a wide layer."""

    orders: int
    units: int
    dropout: float
    rate: float
    steps: int


TRAININGS = (
    Training(1, 256, 0.3, 5e-3, 1_000),
    Training(8, 512, 0.1, 1e-3, 8_000),
    Training(32, 512, 0.2, 2e-3, 4_000),
)


def binary_rows(name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Training, validation and test rows of 0 and 1."""
    with np.load(FOLDER / "binary_density.npz", allow_pickle=False) as file:
        width = int(file[f"{name}_width"])
        parts = [np.unpackbits(file[f"{name}_{part}"], axis=1)[:, :width] for part in ("train", "valid", "test")]
    train, valid, test = (part.astype(np.float32) for part in parts)
    return train, valid, test


def model(train: np.ndarray, valid: np.ndarray, seed: int = 0) -> Autoregressive:
    """One wide layer with direct connections: the training and the epoch best on the validation rows."""
    fitted = [_fitted(train, valid, training, seed) for training in TRAININGS]
    return max(fitted, key=lambda one: one.score(valid))


def _fitted(train: np.ndarray, valid: np.ndarray, training: Training, seed: int) -> Autoregressive:
    inference = MAP(
        AdamW(training.rate, weight_decay=0.01),
        epochs=max(20, training.steps * BATCH // len(train)),
        batch_size=BATCH,
        schedule=Cosine(),
        validation=(valid, None),
    )
    network = MLP((training.units,), residual="dense", dropout=training.dropout)
    return Autoregressive(network=network, orders=training.orders, inference=inference, random_state=seed).fit(train)


def run(repeats: int = 1) -> list[Result]:
    """All three sets."""
    results = []
    for name, target in TARGETS.items():
        train, valid, test = binary_rows(name)
        scores, seconds = [], []
        for seed in range(repeats):
            began = time.process_time()
            fitted = model(train, valid, seed)
            seconds.append(time.process_time() - began)
            scores.append(fitted.score(test))
        score = float(np.mean(scores))
        words = (
            f"log p {score:.3f} on {len(test):,} test rows, validation {fitted.score(valid):.3f}, {min(seconds):.0f} s"
        )
        results.append(Result(f"binary density, {name}", "target", -score, -target, words, True, 1.0, unit="nats"))
    return results


if __name__ == "__main__":
    show(run())
