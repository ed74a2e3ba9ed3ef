"""The adding problem: steps of (value, mark) → the sum of the two marked values, first of 200 steps, then of 1,000.

Knowing nothing gives a mean squared error of 1/6. Solved is below 0.01, by every gated cell and by the linear recurrent
unit. And at 1,000 steps, batches of 32 and width 64: how long a training step of the linear recurrent unit takes, and
how long one of the LSTM, with one layer each and with two.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import nn

from likely import Regressor
from likely.inference import MAP
from likely.likelihoods import Normal
from likely.networks import GRU, LRU, LSTM, Network
from likely.optim import Adam, Cosine

from .timing import Result, interleave, show

__all__ = ["run"]

STEPS, ROWS, BATCH, CLIP = 200, 8_000, 64, 1.0
SOLVED, NOTHING = 0.01, 1 / 6
FITS: dict[str, tuple[Network, float, int]] = {
    "LSTM": (LSTM(32), 5e-3, 20),
    "GRU": (GRU(32), 5e-3, 12),
    "LRU": (LRU(32, 32, layers=2), 5e-3, 20),
}
"""Network, learning rate and epochs."""

LONG, WIDTH, LONG_BATCH = 1_000, 64, 32
TARGETS = {1: 1 / 3, 2: 1.0}
"""The share of the LSTM's time that a step may take, by layers."""


def run(repeats: int = 1) -> list[Result]:
    return [*solved(repeats), *speed(10 * repeats)]


def adding(rows: int, steps: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Values uniform on (0, 1), one mark in either half."""
    rng = np.random.default_rng(seed)
    values, marks = rng.random((rows, steps)), np.zeros((rows, steps))
    half = steps // 2
    for low, high in ((0, half), (half, steps)):
        marks[np.arange(rows), rng.integers(low, high, rows)] = 1
    return np.stack([values, marks], -1), (values * marks).sum(1)


def solved(seeds: int) -> list[Result]:
    """The median over seeds of the mean squared error on new sequences."""
    X, y = adding(ROWS, STEPS, seed=0)
    new_X, new_y = adding(2_000, STEPS, seed=1)
    results = []
    for name, (network, rate, epochs) in FITS.items():
        inference = MAP(Adam(rate), epochs=epochs, batch_size=BATCH, clip_norm=CLIP, schedule=Cosine())
        errors = [
            np.square(
                Regressor(Normal(), network, inference=inference, random_state=s).fit(X, y).predict(new_X) - new_y
            )
            for s in range(seeds)
        ]
        error = float(np.median([squares.mean() for squares in errors]))
        words = f"{STEPS} steps, {ROWS:,} sequences, {epochs} epochs; knowing nothing gives {NOTHING:.3f}"
        results.append(
            Result(f"adding_problem, {name}", "solved", error, SOLVED, words, error < NOTHING, 1.0, "squared error")
        )
    return results


def speed(repeats: int) -> list[Result]:
    """Forward and backward of one batch, on one core; both sides flush numbers too small to matter, or LSTMs crawl."""
    X, y = (torch.from_numpy(part).float() for part in adding(LONG_BATCH, LONG, seed=0))
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    try:
        results = []
        for layers, target in TARGETS.items():
            nets = {"LRU": LRU(WIDTH, WIDTH, layers=layers), "LSTM": LSTM(WIDTH, layers=layers)}
            calls = {name: _step(net.build((LONG, 2), 1), X, y) for name, net in nets.items()}
            timed = interleave(calls, repeats)
            ours, theirs = timed["LRU"], timed["LSTM"]
            words = f"a training step: {LONG:,} steps, batch {LONG_BATCH}, width {WIDTH}, {layers} layer(s) each"
            least = (ours.least, theirs.least)
            results.append(
                Result("adding_problem, LRU", "LSTM", ours.median, theirs.median, words, True, target, least=least)
            )
        return results
    finally:
        torch.set_num_threads(threads)
        torch.set_flush_denormal(False)


def _step(module: nn.Module, X: torch.Tensor, y: torch.Tensor) -> Callable[[], float]:
    def step() -> float:
        module.zero_grad()
        loss = (module(X).squeeze(-1) - y).square().mean()
        loss.backward()
        return float(loss.detach())

    return step


if __name__ == "__main__":
    show(run())
