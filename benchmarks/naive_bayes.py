"""Gaussian naive Bayes of 1,000,000 × 50 in float64, fit and predict, against scikit-learn."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from sklearn.naive_bayes import GaussianNB

from likely import NaiveBayes

from .timing import Result, compare, interleave, show

__all__ = ["run"]

ROWS, COLUMNS = 1_000_000, 50


def run(repeats: int = 3) -> list[Result]:
    return [result for classes in (2, 10) for result in _with(classes, repeats)]


def _with(classes: int, repeats: int) -> list[Result]:
    rng = np.random.default_rng(0)
    y = rng.integers(classes, size=ROWS)
    x = rng.standard_normal((ROWS, COLUMNS))
    x += (0.2 * rng.standard_normal((classes, COLUMNS)))[y]

    def answer(model: NaiveBayes | GaussianNB) -> Callable[[], np.ndarray]:
        return lambda: model.fit(x, y).predict(x)

    def quality(mine: np.ndarray, other: np.ndarray) -> tuple[str, bool]:
        same = float((mine == other).mean())
        accuracy = float((mine == y).mean())
        return f"made data, {classes} classes: {same:.6%} of predictions equal, accuracy {accuracy:.4f}", same == 1.0

    calls = {"likely": answer(NaiveBayes()), "scikit-learn GaussianNB": answer(GaussianNB(var_smoothing=0.0))}
    return compare(f"naive_bayes_{classes}", interleave(calls, repeats), quality, {"scikit-learn GaussianNB": 1.0})


if __name__ == "__main__":
    show(run())
