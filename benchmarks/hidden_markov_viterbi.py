"""The most probable path of 200,000 steps through 8 states, against hmmlearn."""

from __future__ import annotations

import numpy as np
from hmmlearn.hmm import GaussianHMM

from .hidden_markov import STATES, made, start
from .timing import Result, compare, interleave, show

__all__ = ["run"]

STEPS = 200_000


def run(repeats: int = 5) -> list[Result]:
    x = made(STEPS)
    model = start(x)
    model.transition_ = 0.9 * np.eye(STATES) + 0.1 / STATES
    other = GaussianHMM(STATES, init_params="")
    other.n_features = x.shape[1]
    other.startprob_, other.transmat_ = model.initial_, model.transition_
    other.means_, other.covars_ = model.means_, np.exp(2 * model.eta_[:, 1::2])

    def likely_path() -> tuple[np.ndarray, float]:
        path, log_prob = model.decode(x, return_log_prob=True)
        return path, float(log_prob[0])

    def hmmlearn_path() -> tuple[np.ndarray, float]:
        log_prob, path = other.decode(x, algorithm="viterbi")
        return path, float(log_prob)

    def quality(mine: tuple[np.ndarray, float], theirs: tuple[np.ndarray, float]) -> tuple[str, bool]:
        same = float((mine[0] == theirs[0]).mean())
        apart = abs(mine[1] - theirs[1]) / abs(theirs[1])
        return f"{100 * same:.4g} % of states alike, log-probabilities {apart:.1e} apart", same == 1 and apart < 1e-10

    calls = {"likely": likely_path, "hmmlearn": hmmlearn_path}
    return compare("hidden_markov_viterbi", interleave(calls, repeats), quality, {"hmmlearn": 1.0})


if __name__ == "__main__":
    show(run())
