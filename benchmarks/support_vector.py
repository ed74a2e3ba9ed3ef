"""Support vectors of 3,000 × 10 with an RBF kernel, against scikit-learn: classes, classes with probabilities, numbers.

The peer stops at its default tolerance of 1e-3; Likely goes on to the exact solution, which the quality reports.
"""

from __future__ import annotations

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.metrics import log_loss
from sklearn.svm import SVC, SVR

from likely.kernels import RBF
from likely.models.kernel.support_vector import SupportVector

from .timing import Result, compare, interleave, show

__all__ = ["run"]

ROWS, COLUMNS, LENGTH, C = 3_000, 10, 3.0, 1.0
GAMMA = 1 / (2 * LENGTH**2)


def run(repeats: int = 5) -> list[Result]:
    rng = np.random.default_rng(0)
    x, new = rng.normal(size=(ROWS, COLUMNS)), rng.normal(size=(ROWS, COLUMNS))
    signal, new_signal = (np.sin(rows[:, 0]) + rows[:, 1] * rows[:, 2] for rows in (x, new))
    y = signal + 0.3 * rng.normal(size=ROWS)
    label, new_label = y > 0, new_signal + 0.3 * rng.normal(size=ROWS) > 0

    def likely_classes() -> tuple[np.ndarray, float]:
        model = SupportVector(RBF(LENGTH), C, probability=False).fit(x, label)
        return model.decision_function(new), model.kkt_residual_

    def likely_numbers() -> tuple[np.ndarray, float]:
        model = SupportVector(RBF(LENGTH), C, epsilon=0.1).fit(x, y)
        return model.predict(new), model.kkt_residual_

    def quality(mine: tuple[np.ndarray, float], other: np.ndarray) -> tuple[str, bool]:
        apart, residual = float(np.abs(mine[0] - other).max()), mine[1]
        return f"answers {apart:.0e} apart, KKT residual {residual:.0e} of tol 1e-3", apart < 1e-2 and residual <= 1e-6

    def likely_probabilities() -> np.ndarray:
        return SupportVector(RBF(LENGTH), C, random_state=0).fit(x, label).predict_proba(new)[:, 1]

    def sklearn_probabilities() -> np.ndarray:
        calibrated = CalibratedClassifierCV(SVC(C=C, gamma=GAMMA), ensemble=False, cv=5)
        return calibrated.fit(x, label).predict_proba(new)[:, 1]

    def losses(mine: np.ndarray, other: np.ndarray) -> tuple[str, bool]:
        ours, theirs = log_loss(new_label, mine), log_loss(new_label, other)
        return f"log loss {ours:.4f}, peer {theirs:.4f}", ours <= theirs + 2e-3

    def sklearn_classes() -> np.ndarray:
        return SVC(C=C, gamma=GAMMA).fit(x, label).decision_function(new)

    def sklearn_numbers() -> np.ndarray:
        return SVR(C=C, gamma=GAMMA, epsilon=0.1).fit(x, y).predict(new)

    questions = (
        ("scikit-learn SVC", likely_classes, sklearn_classes, quality),
        ("scikit-learn SVR", likely_numbers, sklearn_numbers, quality),
        ("scikit-learn SVC, calibrated on 5 folds", likely_probabilities, sklearn_probabilities, losses),
    )
    results = []
    for peer, ours, theirs, judge in questions:
        timed = interleave({"likely": ours, peer: theirs}, repeats)
        results += compare("support_vector", timed, judge, {peer: 1.25})
    return results


if __name__ == "__main__":
    show(run())
