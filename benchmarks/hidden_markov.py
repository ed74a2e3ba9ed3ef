"""Baum–Welch of 8 states, diagonal Gaussians, 20,000 steps: against hmmlearn and pomegranate, from the same start."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import torch
from hmmlearn.hmm import GaussianHMM

from likely import HiddenMarkov
from likely.inference import EM
from likely.likelihoods import Normal

from .timing import Result, compare, interleave, show

__all__ = ["COLUMNS", "STATES", "STEPS", "made", "run", "start"]

STATES, COLUMNS, STEPS, ITERATIONS = 8, 4, 20_000, 30
FEW = 3
"""Steps of EM against pomegranate, which takes seconds for each."""


def made(steps: int = STEPS) -> np.ndarray:
    """States that stay for a while, and overlap so much that EM has work for all its steps."""
    random = np.random.default_rng(0)
    means = random.normal(size=(STATES, COLUMNS))
    states = random.integers(STATES, size=steps // 20).repeat(20)
    return means[states] + random.normal(size=(steps, COLUMNS))


def start(x: np.ndarray) -> HiddenMarkov:
    """Means at rows drawn by chance, everything else alike."""
    means = x[np.random.default_rng(1).choice(len(x), STATES, replace=False)]
    eta = np.stack([means, np.full_like(means, np.log(1.5))], -1).reshape(STATES, -1)
    even = np.full((STATES, STATES), 1 / STATES)
    return HiddenMarkov.from_parameters(Normal(), even[0], even, eta, smoothing=0.0)


def run(repeats: int = 5) -> list[Result]:
    x = made()
    first = start(x)

    def likely_fit(iterations: int = ITERATIONS) -> float:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = HiddenMarkov(Normal(), STATES, inference=EM(max_iter=iterations, tol=0), smoothing=0.0)
            model.fit(x, start=first)
        if model.n_iter_ != iterations:
            raise RuntimeError(f"Likely stopped after {model.n_iter_} of {iterations} steps")
        return float(model.log_prob(x)[0])

    def hmmlearn_fit(implementation: str) -> float:
        options: dict[str, Any] = {"min_covar": 0, "covars_prior": 0, "covars_weight": 0, "init_params": ""}
        model = GaussianHMM(STATES, n_iter=ITERATIONS, tol=-np.inf, implementation=implementation, **options)
        model.startprob_, model.transmat_ = first.initial_.copy(), first.transition_.copy()
        model.means_, model.covars_ = first.means_.copy(), np.exp(2 * first.eta_[:, 1::2])
        model.fit(x)
        return float(model.score(x))

    def pomegranate_fit() -> float:
        from pomegranate.distributions import Normal as Part
        from pomegranate.hmm import DenseHMM

        parts = [
            Part(torch.tensor(mean), torch.tensor(np.exp(2 * eta)), covariance_type="diag")
            for mean, eta in zip(first.means_, first.eta_[:, 1::2], strict=True)
        ]
        # It knows an end of sequences; a tiny, even chance of ending at each step is as good as none.
        ends = np.full(STATES, 1e-12)
        model = DenseHMM(parts, first.transition_, first.initial_, ends=ends, max_iter=FEW, tol=0.0)
        data = torch.from_numpy(x).unsqueeze(0)
        model = model.double()
        model.fit(data)
        return float(model.log_probability(data)[0])

    def quality(mine: float, other: float) -> tuple[str, bool]:
        apart = (mine - other) / abs(other)
        return f"log-likelihood {apart:.1e} above the peer's after as many steps", apart > -1e-6

    calls = {
        "likely": likely_fit,
        "hmmlearn, scaling": lambda: hmmlearn_fit("scaling"),
        "hmmlearn, log": lambda: hmmlearn_fit("log"),
    }
    results = compare(
        "hidden_markov", interleave(calls, repeats), quality, {"hmmlearn, scaling": 1 / 8, "hmmlearn, log": 1 / 8}
    )
    slow = {"likely": lambda: likely_fit(FEW), "pomegranate": pomegranate_fit}
    return results + compare("hidden_markov", interleave(slow, 1, 0), quality, {"pomegranate": 1 / 3})


if __name__ == "__main__":
    show(run())
