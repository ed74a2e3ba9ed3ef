"""Predicting one row against the bare module call on it: at most 1.5 times that and 100 µs."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from likely import Classifier, Regressor
from likely.inference import MAP
from likely.networks import MLP

from .datasets import digits
from .timing import Result, Timed, show

__all__ = ["run"]

CALLS = 500


def run(repeats: int = 9) -> list[Result]:
    data = digits()
    inference = MAP(epochs=2)
    row = np.ascontiguousarray(data.x[:1])
    classifier = Classifier(network=MLP((100,)), inference=inference, random_state=0).fit(data.x, data.y)
    regressor = Regressor(network=MLP((100,)), inference=inference, random_state=0).fit(data.x, data.y)
    results = []
    for name, model, ask in (
        ("Classifier.predict_proba", classifier, classifier.predict_proba),
        ("Classifier.predict", classifier, classifier.predict),
        ("Regressor.predict", regressor, regressor.predict),
    ):
        bare = _bare(model)
        mine, peer = _microseconds(lambda ask=ask: ask(row), lambda bare=bare: bare(row), repeats)
        words, equal = _agreement(name, ask(row), bare(row))
        target = 1.5 + 100 / peer.median
        least = (mine.least, peer.least)
        title = f"predict_one, {name}"
        results.append(Result(title, "bare module", mine.median, peer.median, words, equal, target, "µs", least))
    return results


def _bare(model: Any) -> Callable[[np.ndarray], np.ndarray]:
    module = model.posterior_.module

    def call(row: np.ndarray) -> np.ndarray:
        with torch.inference_mode():
            return module(torch.from_numpy(row)).numpy()

    return call


def _agreement(name: str, answer: np.ndarray, eta: np.ndarray) -> tuple[str, bool]:
    if name == "Classifier.predict":
        return "the same class", bool(answer[0] == eta.argmax())
    expected = np.exp(eta[0]) / np.exp(eta[0]).sum() if name.startswith("Classifier") else eta[0, :1]
    apart = float(np.abs(answer.ravel() - expected).max())
    return f"answers {apart:.0e} apart", apart < 1e-5


def _microseconds(mine: Callable[[], Any], peer: Callable[[], Any], repeats: int) -> tuple[Timed, Timed]:
    timed = (Timed(), Timed())
    for repeat in range(-1, repeats):
        for call, side in zip((mine, peer), timed, strict=True):
            start = time.perf_counter()
            for _ in range(CALLS):
                call()
            if repeat >= 0:
                side.seconds.append((time.perf_counter() - start) / CALLS * 1e6)
    return timed


if __name__ == "__main__":
    show(run())
