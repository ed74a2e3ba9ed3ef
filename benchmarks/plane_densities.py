"""Densities of the plane: can a classifier tell draws of a model from the rows that it is a density of?

Moons, rings, a checkerboard and spirals; 5,000 rows teach a flow or a diffusion, 5,000 others are compared with 5,000
draws by the classifier test. Nothing is chosen for a set: all have `inference="auto"`.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from likely import Diffusion, Flow
from likely.evaluate import two_sample
from likely.networks import MLP

from .timing import Result, show

__all__ = ["SETS", "run"]

COUNT, TARGET = 5_000, 0.55
SCORED = 500
"""Held-out rows whose log p is told."""


def moons(rng: np.random.Generator, count: int) -> np.ndarray:
    """Two half circles, one in the arm of the other."""
    angle, upper = np.pi * rng.random(count), rng.random(count) < 0.5
    x = np.where(upper, np.cos(angle), 1 - np.cos(angle))
    y = np.where(upper, np.sin(angle), 0.5 - np.sin(angle))
    return np.column_stack([x, y]) + 0.06 * rng.normal(size=(count, 2))


def rings(rng: np.random.Generator, count: int) -> np.ndarray:
    """Four circles around one centre."""
    angle, radius = 2 * np.pi * rng.random(count), rng.integers(1, 5, count) * 0.75
    return np.column_stack([np.cos(angle), np.sin(angle)]) * radius[:, None] + 0.06 * rng.normal(size=(count, 2))


def checkerboard(rng: np.random.Generator, count: int) -> np.ndarray:
    """Every second field of 4 × 4."""
    column, row = rng.integers(0, 4, count), rng.integers(0, 2, count)
    corner = np.column_stack([column, 2 * row + column % 2])
    return corner + rng.random((count, 2)) - 2.0


def spirals(rng: np.random.Generator, count: int) -> np.ndarray:
    """Two arms."""
    angle = 3 * np.pi * np.sqrt(rng.random(count))
    arm = np.column_stack([-np.cos(angle), np.sin(angle)]) * angle[:, None] / 3
    return arm * rng.choice([-1.0, 1.0], count)[:, None] + 0.1 * rng.normal(size=(count, 2))


SETS = {"moons": moons, "rings": rings, "checkerboard": checkerboard, "spirals": spirals}


def run(repeats: int = 1) -> list[Result]:
    """Splines by likelihood, a continuous flow by matching, and a diffusion, on each set."""
    results = []
    for name, draw in SETS.items():
        rng = np.random.default_rng(0)
        rows, held_out = draw(rng, COUNT), draw(rng, COUNT)
        for title, model in models().items():
            start = time.process_time()
            draws = model.fit(rows).sample(COUNT, random_state=1)
            seconds = time.process_time() - start
            accuracy = two_sample(held_out, draws).accuracy
            words = f"log p of held-out rows {model.score(held_out[:SCORED]):.3f}; {seconds:.0f} s of CPU"
            results.append(Result(f"{name}: {title}", "chance", accuracy, 0.5, words, True, TARGET / 0.5, "accuracy"))
    return results


def models(seed: int = 0) -> dict[str, Any]:
    """New ones, with the settings of the library."""
    field = MLP((128, 128, 128), "silu")
    return {
        "spline flow": Flow(random_state=seed),
        "flow matching": Flow("continuous", network=field, random_state=seed),
        "diffusion": Diffusion(random_state=seed),
    }


if __name__ == "__main__":
    show(run())
