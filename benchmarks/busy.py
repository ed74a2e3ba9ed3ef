"""The same fit at rest and beside two busy processes on a machine of two cores: what waiting for each other costs.

A fair machine gives a process that shares it with two others two thirds of a core, so 1.5 × is the least to expect of
one thread; threads that wait for each other at every operation take a hundred times as long.
"""

from __future__ import annotations

import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from likely import Classifier, GaussianMixture, GaussianProcess, Regressor
from likely.inference import HMC, MAP
from likely.networks import LSTM, MLP
from likely.priors import Normal

from .timing import Result, interleave, show

__all__ = ["run"]

TARGET = 3.0
BUSY = 2
"""Processes that do nothing but compute."""


def fits() -> dict[str, Callable[[], Any]]:
    """Fits that take some tenths of a second each, on made data."""
    rng = np.random.default_rng(0)
    wide = rng.normal(size=(1400, 64))
    labels = (wide[:, :3].sum(1) > 0).astype(int)
    waves = rng.normal(size=(300, 30)).cumsum(1)
    few, many = rng.normal(size=(300, 3)), rng.normal(size=(20_000, 4)) + 3 * rng.integers(0, 3, (20_000, 1))
    y = few[:, 0] + 0.1 * rng.normal(size=300)
    train, short = MAP(epochs=20), MAP(epochs=5, batch_size=32)
    chains = HMC(chains=4, draws=100, warmup=100)
    return {
        "MLP": lambda: Classifier(network=MLP((100,)), inference=train, random_state=0).fit(wide, labels),
        "LSTM": lambda: Regressor(network=LSTM(32), inference=short, random_state=0).fit(waves, waves[:, -1]),
        "HMC": lambda: Classifier(prior=Normal(1.0), inference=chains, random_state=0).fit(wide[:, :8], labels),
        "GaussianProcess": lambda: GaussianProcess(random_state=0).fit(few, y),
        "GaussianMixture": lambda: GaussianMixture(3, random_state=0).fit(many),
    }


def run(repeats: int = 5) -> list[Result]:
    """Medians at rest, then medians beside the busy processes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        calls = fits()
        rest = interleave(calls, repeats)
        with busy(BUSY):
            loaded = interleave(calls, repeats)
    return [
        Result(
            f"busy, {name}",
            "the same fit at rest",
            loaded[name].median,
            rest[name].median,
            f"{BUSY} busy processes",
            True,
            TARGET,
            least=(loaded[name].least, rest[name].least),
        )
        for name in calls
    ]


@contextmanager
def busy(count: int) -> Iterator[None]:
    """Inside, so many processes keep the cores busy."""
    processes = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


if __name__ == "__main__":
    show(run())
