"""Baum–Welch on sequences of any lengths: its time grows with their total length, not with their number."""

from __future__ import annotations

import warnings

import numpy as np

from likely import HiddenMarkov
from likely.inference import EM
from likely.likelihoods import Normal

from .hidden_markov import STATES, made, start
from .timing import Result, interleave, show

__all__ = ["run"]

STEPS, ITERATIONS = 100_000, 10


def ragged(x: np.ndarray, count: int) -> list[np.ndarray]:
    """The rows in `count` sequences of very different lengths."""
    cuts = np.random.default_rng(0).choice(np.arange(1, len(x)), count - 1, replace=False)
    return np.split(x, np.sort(cuts))


def run(repeats: int = 3) -> list[Result]:
    x = made(2 * STEPS)
    first = start(x)

    def fit(sequences: list[np.ndarray]) -> float:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = HiddenMarkov(Normal(), STATES, inference=EM(max_iter=ITERATIONS, tol=0), smoothing=0.0)
            return model.fit(sequences, start=first).log_likelihood_

    few, many, double = ragged(x[:STEPS], 10), ragged(x[:STEPS], 1000), ragged(x, 2000)
    calls = {"10": lambda: fit(few), "1000": lambda: fit(many), "2000": lambda: fit(double)}
    timed = interleave(calls, repeats)
    split = abs(timed["1000"].value / timed["10"].value - 1)
    grown = abs(timed["2000"].value / timed["1000"].value / 2 - 1)
    return [
        Result(
            *("ragged_sequences", "the same steps in 10 sequences instead of 1,000"),
            *(timed["1000"].median, timed["10"].median),
            *(f"log-likelihoods within {100 * split:.1g} %", split < 0.01),
            target=1.25,
            least=(timed["1000"].least, timed["10"].least),
        ),
        Result(
            *("ragged_sequences", "twice the steps in 2,000 sequences against twice the time of 1,000"),
            *(timed["2000"].median, 2 * timed["1000"].median),
            *(f"log-likelihoods a step within {100 * grown:.1g} %", grown < 0.01),
            target=1.25,
            least=(timed["2000"].least, 2 * timed["1000"].least),
        ),
    ]


if __name__ == "__main__":
    show(run())
