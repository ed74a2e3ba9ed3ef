"""Ten small networks as one stacked program against ten fits, one after the other.

898 × 64 (every second digit), hidden 32, batches of 100, 40 epochs of Adam(1e-3).
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPClassifier

from likely import Classifier
from likely.inference import MAP, Ensemble
from likely.networks import MLP
from likely.optim import Adam

from .datasets import digits
from .timing import Result, compare, interleave, show

__all__ = ["run"]

MEMBERS, HIDDEN, BATCH, EPOCHS = 10, 32, 100, 40
TARGETS = {"ten fits of Likely": 1 / 3}
MARGIN = 0.02


def run(repeats: int = 5) -> list[Result]:
    data = digits()
    x, y, x_test, y_test = data.x[::2], data.y[::2], data.x[1::2], data.y[1::2]
    single = MAP(Adam(1e-3), epochs=EPOCHS, batch_size=BATCH)

    def stacked() -> Any:
        return Classifier(network=MLP((HIDDEN,)), inference=Ensemble(MEMBERS, by=single), random_state=0).fit(x, y)

    def one_by_one() -> list[Any]:
        return [Classifier(network=MLP((HIDDEN,)), inference=single, random_state=i).fit(x, y) for i in range(MEMBERS)]

    def sklearn_fits() -> list[Any]:
        options = {"batch_size": BATCH, "max_iter": EPOCHS, "alpha": 0.0, "tol": 0.0}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            return [MLPClassifier((HIDDEN,), random_state=i, **options).fit(x, y) for i in range(MEMBERS)]

    def quality(mine: Any, others: list[Any]) -> tuple[str, bool]:
        ours = float(np.mean(mine.predict(x_test) == y_test))
        average = np.mean([model.predict_proba(x_test) for model in others], axis=0)
        theirs = float(np.mean(average.argmax(1) == y_test))
        return f"{data.source}: test accuracy of the average {ours:.4f} and {theirs:.4f}", ours >= theirs - MARGIN

    calls = {"likely": stacked, "ten fits of Likely": one_by_one, "ten fits of scikit-learn": sklearn_fits}
    return compare("ensemble", interleave(calls, repeats), quality, TARGETS)


if __name__ == "__main__":
    show(run())
