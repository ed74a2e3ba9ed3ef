"""A restricted Boltzmann machine 784 × 128 by persistent contrastive divergence against scikit-learn; log Z annealed.

Both take the same steps on the same rows: stochastic gradient descent, batches of 100, 100 chains, one Gibbs step each.
Quality is log p of other rows, by annealed importance sampling in either case.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from sklearn.datasets import load_digits
from sklearn.neural_network import BernoulliRBM

from likely import EnergyModel
from likely.core.random import drawing
from likely.inference import MAP
from likely.models.generative import PCD, RBM
from likely.models.generative.rbm import RBMModule
from likely.optim import SGD

from .datasets import mnist
from .timing import Result, compare, interleave, show

__all__ = ["run"]

HIDDEN, BATCH, EPOCHS, RATE = 128, 100, 5, 0.05
ASKED = 1000
"""Rows whose log p is compared."""
REPEATS, ERRORS = 10, 2.0
"""Runs of annealing beside the exact log Z, and the standard errors that they may be off by."""


def machine(weight: Any, visible_bias: Any, hidden_bias: Any) -> RBMModule:
    """With these parameters, in float64."""
    rbm = RBMModule((len(visible_bias),), len(hidden_bias)).double()
    with torch.no_grad():
        for own, value in zip(rbm.parameters(), (weight, visible_bias, hidden_bias), strict=True):
            own.copy_(torch.as_tensor(value))
    return rbm


@torch.no_grad()
def log_prob(rbm: RBMModule, rows: np.ndarray) -> float:
    """The mean of log p of rows, with log Z by 100 annealed chains."""
    with drawing(0):
        log_z, _ = rbm.log_normaliser(100)
    return float(-rbm.free_energy(torch.from_numpy(rows).double()).mean() - log_z)


def training(repeats: int) -> list[Result]:
    """The same number of passes over the rows."""
    data = mnist()
    rows, asked = ((part.reshape(len(part), -1) > 0.5).astype(np.float32) for part in (data.x, data.x_test[:ASKED]))

    def likely_fit() -> RBMModule:
        by = MAP(SGD(RATE), epochs=EPOCHS, batch_size=BATCH)
        model = EnergyModel(RBM(HIDDEN), PCD(1, chains=BATCH), inference=by, random_state=0).fit(rows)
        fitted = model.posterior_.module_of(0).energy
        return machine(fitted.weight, fitted.visible_bias, fitted.hidden_bias)

    def sklearn_fit() -> RBMModule:
        model = BernoulliRBM(HIDDEN, learning_rate=RATE, batch_size=BATCH, n_iter=EPOCHS, random_state=0).fit(rows)
        return machine(model.components_.T, model.intercept_visible_, model.intercept_hidden_)

    def quality(mine: RBMModule, other: RBMModule) -> tuple[str, bool]:
        own, theirs = log_prob(mine, asked), log_prob(other, asked)
        words = f"{data.source}, {len(rows):,} rows in float32: log p of other rows {own:.1f} and {theirs:.1f}"
        return words, own >= theirs - 1.0

    timed = interleave({"likely": likely_fit, "scikit-learn": sklearn_fit}, repeats)
    return compare(f"RBM 784 × {HIDDEN}, PCD-1, {EPOCHS} epochs", timed, quality, {"scikit-learn": 1 / 1.2})


def annealing() -> Result:
    """log Z of a machine 64 × 16 of binarised digits, by annealing and as a sum."""
    rows = (load_digits().data > 7).astype(float)
    by = MAP(SGD(RATE), epochs=20, batch_size=BATCH)
    model = EnergyModel(RBM(16), PCD(1, chains=BATCH), inference=by, random_state=0).fit(rows)
    rbm = model.posterior_.module_of(0).energy.double()
    exact = float(rbm.summed_log_normaliser())
    gaps = []
    for seed in range(REPEATS):
        with drawing(seed):
            value, error = rbm.annealed_log_normaliser(100, 1000)
        gaps.append(abs(float(value) - exact) / float(error))
    within = sum(gap <= ERRORS for gap in gaps)
    words = f"log Z {exact:.2f}: within {ERRORS:g} standard errors in {within} of {REPEATS} runs of 100 chains"
    # of a normal error 95 % are, so that 8 of 10 or more are in 99 % of benchmarks
    name, peer = "AIS, RBM 64 × 16: mean error in standard errors", f"{ERRORS:g} standard errors"
    return Result(name, peer, float(np.mean(gaps)), ERRORS, words, within >= REPEATS - 2, 1.0, "")


def run(repeats: int = 5) -> list[Result]:
    """Time against scikit-learn, and log Z against the exact one."""
    return [*training(repeats), annealing()]


if __name__ == "__main__":
    show(run())
