"""Platt's scaling: decision values become probabilities, and those of pairs of classes become those of all classes.

    p(y = 1 | f) = σ(a·f + b),   a ≥ 0, by maximum likelihood on values f of rows that were not fitted

Pairs are coupled as Wu, Lin and Weng (2004) do: p minimises Σᵢ Σ_{j≠i} (r_ji pᵢ − r_ij pⱼ)², where r_ij is the
probability of class i against j.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit

__all__ = ["couple", "fit_sigmoid", "folds"]


def fit_sigmoid(decision: np.ndarray, positive: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """(a, b). The targets are a little within 0 and 1, as if each class had been seen once more (Platt, 1999).

    >>> a, b = fit_sigmoid(np.array([-2.0, -1.0, 1.0, 2.0]), np.array([False, False, True, True]), np.ones(4))
    >>> bool(a > 0 and abs(b) < 1e-4)
    True
    """
    seen, unseen = weight[positive].sum(), weight[~positive].sum()
    target = np.where(positive, (seen + 1) / (seen + 2), 1 / (unseen + 2))
    unit = max(float(np.abs(decision).mean()), 1e-300)
    scaled = decision / unit

    def loss(parameters: np.ndarray) -> tuple[float, np.ndarray]:
        eta = parameters[0] * scaled + parameters[1]
        error = weight * (expit(eta) - target)
        value = weight @ (np.logaddexp(0.0, eta) - target * eta)
        return float(value) / weight.sum(), np.array([error @ scaled, error.sum()]) / weight.sum()

    start = np.array([1.0, np.log((seen + 1) / (unseen + 1))])
    optimum = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=[(0, None), (None, None)], tol=1e-12)
    return optimum.x / [unit, 1.0]


def couple(pairs: np.ndarray, classes: int) -> np.ndarray:
    """Probabilities (n, classes) from those of the later class of each pair (n, pairs), as `combinations` orders them.

    >>> couple(np.array([[0.25]]), 2)
    array([[0.75, 0.25]])
    """
    if classes == 2:
        return np.column_stack([1 - pairs[:, 0], pairs[:, 0]])
    against = np.zeros((len(pairs), classes, classes))  # [i, j]: of i against j
    for column, (i, j) in enumerate(combinations(range(classes), 2)):
        later = np.clip(pairs[:, column], 1e-7, 1 - 1e-7)
        against[:, j, i], against[:, i, j] = later, 1 - later
    # the conditions of the minimum with Σp = 1: [Q 1; 1ᵀ 0][p; λ] = [0; 1]
    system = np.ones((len(pairs), classes + 1, classes + 1))
    system[:, :-1, :-1] = -against * against.transpose(0, 2, 1)
    own = np.arange(classes)
    system[:, own, own] = (against**2).sum(1)
    system[:, -1, -1] = 0.0
    goal = np.zeros((len(pairs), classes + 1, 1))
    goal[:, -1] = 1.0
    probability = np.linalg.solve(system, goal)[:, :-1, 0].clip(0.0)
    return probability / probability.sum(1, keepdims=True)


def folds(labels: np.ndarray, most: int, seed: int) -> np.ndarray:
    """The fold of each row: each class is dealt out evenly, in random order, over at most `most` folds.

    There are as many folds as the smallest class has rows, so that no part lacks a class.
    """
    random = np.random.default_rng(seed)
    groups = [np.flatnonzero(labels == label) for label in np.unique(labels)]
    count = min(most, *(len(group) for group in groups))
    fold = np.zeros(len(labels), dtype=np.intp)
    for group in groups:
        fold[random.permutation(group)] = np.arange(len(group)) % count
    return fold
