"""Modes that a GAN reaches on the ring of 8 and the grid of 25 Gaussians, and how many of its rows are near one.

Settings are the same for both sets: the non-saturating loss, with a penalty on the critic's gradient at real rows, and
networks of four layers: a generator must jump from mode to mode, which depth makes steep (explored on other seeds
than those that are reported). The published modes, of GANs without and with packing (PacGAN, Lin et al., 2018),
are from settings of their own.
"""

from __future__ import annotations

import time

import numpy as np

from likely import GAN
from likely.evaluate import modes
from likely.evaluate.generated.modes import Modes
from likely.inference import EMA, MAP
from likely.models.generative import Gradient
from likely.networks import MLP
from likely.optim import Adam, Cosine

from .timing import Result, show

__all__ = ["run"]

ROWS, DRAWN, BATCH, ROUNDS = 10_000, 2_500, 256, 10_000
DEPTH = 4
NEAR = 0.9
"""The fraction of rows within 3 σ of a mode that is asked for."""
PUBLISHED = {"ring of 8": "GAN 6.3, PacGAN 7.8 modes", "grid of 25": "GAN 17.3, PacGAN 24.8 modes"}


def sets() -> dict[str, tuple[np.ndarray, float]]:
    """Centres and the standard deviation around each."""
    angles = 2 * np.pi * np.arange(8) / 8
    steps = np.arange(-4.0, 5.0, 2.0)
    return {
        "ring of 8": (np.column_stack([np.cos(angles), np.sin(angles)]), 0.02),
        "grid of 25": (np.array([(x, y) for x in steps for y in steps]), 0.05),
    }


def played(centres: np.ndarray, scale: float, seed: int) -> Modes:
    """What a game on new rows of the set reaches."""
    rng = np.random.default_rng(seed)
    rows = centres[rng.integers(len(centres), size=ROWS)] + scale * rng.normal(size=(ROWS, 2))
    training = MAP(
        Adam(3e-3, betas=(0.0, 0.9)),
        epochs=ROUNDS * BATCH // ROWS,
        batch_size=BATCH,
        schedule=Cosine(),
        average=EMA(0.999),
    )
    model = GAN(
        MLP((64,) * DEPTH),
        MLP((64,) * DEPTH, activation="leaky_relu"),
        latent=2,
        penalty=Gradient(0.1, norm=0.0, at="real"),
        inference=training,
        random_state=seed,
    ).fit(rows)
    return modes(model.sample(DRAWN, random_state=seed), centres, scale)


def run(repeats: int = 5) -> list[Result]:
    """Both sets, with as many seeds as there are repeats."""
    results = []
    for name, (centres, scale) in sets().items():
        start = time.process_time()
        reached = [played(centres, scale, seed) for seed in range(repeats)]
        seconds = (time.process_time() - start) / repeats
        count, near, divergence = (
            float(np.mean([getattr(own, part) for own in reached])) for part in ("reached", "near", "reverse_kl")
        )
        quality = (
            f"{count:.1f} of {len(centres)} modes, {near:.1%} within 3 σ, reverse KL {divergence:.3f}; mean of "
            f"{repeats} seeds, {seconds:.0f} s of CPU each; published: {PUBLISHED[name]}"
        )
        good = count == len(centres) and near >= NEAR
        results.append(
            Result(f"GAN, {name}", f"{NEAR:.0%} near, all modes", 1 - near, 1 - NEAR, quality, good, 1.0, "")
        )
    return results


if __name__ == "__main__":
    show(run())
