"""The dual of a support vector machine: libsvm's answer, made exact, and how far it is from its own conditions.

    min over β of ½ βᵀKβ − βᵀt + ε‖β‖₁   with   Σβᵢ = 0,   lowerᵢ ≤ βᵢ ≤ upperᵢ

Classes: t = y = ±1, ε = 0, and βᵢ = yᵢαᵢ with 0 ≤ αᵢ ≤ C. Numbers: t = y and |βᵢ| ≤ C. With f = Kβ + b the solution
has f = t − ε sign(β) where β is free, and at a bound (or at 0, where ε‖β‖₁ has its corner) the derivative f − t + ε∂|β|
points out of what is allowed: these are the Karush–Kuhn–Tucker conditions.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning as SolverWarning
from sklearn.svm import SVC, SVR

from ...core.interrupt import interruptible
from ...core.quiet import quiet
from .platt import fit_sigmoid, folds

__all__ = [
    *("Dual", "Solution", "calibrated", "centred", "classes_dual", "intercept", "numbers_dual", "refine"),
    *("solve", "solve_hard"),
]

FOLDS = 5

STEPS = 200_000
"""Most steps of libsvm in one call; what is left to do then is better done by solving for what is free."""

ROWS = 100.0
"""How often libsvm looks at every row for each row there is, about."""

WORK = 5e10
"""About how many multiplications may be spent on making an answer exact."""

LEAST_MARGIN = 1e-4
"""A margin below this fraction of the spread of the rows, in feature space, counts as 0: libsvm keeps K in float32."""


class Dual(NamedTuple):
    """One problem: targets t, the width ε (None for classes), and the bounds of β."""

    target: np.ndarray
    epsilon: float | None
    lower: np.ndarray
    upper: np.ndarray

    @property
    def corner(self) -> float:
        """The derivative of ε‖β‖₁ on both sides of 0."""
        return self.epsilon or 0.0


class Solution(NamedTuple):
    """Multipliers β, the intercept b for the matrix they were found with, the largest violation, and the C in use."""

    beta: np.ndarray
    intercept: float
    residual: float
    C: float


def classes_dual(sign: np.ndarray, C: np.ndarray) -> Dual:
    """Two classes, ±1, with a bound for each row."""
    return Dual(sign, None, np.where(sign > 0, 0.0, -C), np.where(sign > 0, C, 0.0))


def numbers_dual(target: np.ndarray, epsilon: float, C: np.ndarray) -> Dual:
    """Numbers, within ε for free."""
    return Dual(target, epsilon, -C, C)


def intercept(K: np.ndarray, dual: Dual, beta: np.ndarray) -> tuple[float, float]:
    """The b that violates the conditions least, and by how much: the largest |violation| over rows.

    β may grow where it is below its upper bound, and then needs a right derivative ≥ 0; so b ≥ −(Kβ − t + ε·sign). β
    may fall where it is above its lower one, and then b ≤ the same. Half of what is between them is the violation.
    """
    gradient = K @ beta - dual.target
    right = gradient + np.where(beta >= 0, dual.corner, -dual.corner)
    left = gradient + np.where(beta > 0, dual.corner, -dual.corner)
    least = (-right[beta < dual.upper]).max(initial=-np.inf)
    most = (-left[beta > dual.lower]).min(initial=np.inf)
    return float((least + most) / 2), max(0.0, float((least - most) / 2))


def solve(K: np.ndarray, dual: Dual, weight: np.ndarray, C: float, tol: float, *, exact: bool = True) -> Solution:
    """The multipliers for a matrix that is centred (which changes no answer, and spares digits).

    libsvm finds them to a thousandth and the free ones are then solved for; where its guess of what is free was not
    good enough, it is asked again for more.
    """
    for precision in (1e-3, 1e-6):
        beta, finished = _libsvm(K, dual, weight, C, precision)
        beta = refine(K, dual, beta, tol) if exact else beta
        solution = Solution(beta, *intercept(K, dual, beta), C)
        if solution.residual <= tol or not (exact and finished):
            break
    return solution


def solve_hard(K: np.ndarray, target: np.ndarray, epsilon: float | None, tol: float) -> Solution | None:
    """The solution without slack: that of every C which no multiplier reaches. None if there is none.

    Any multipliers bound it: as the dual may be scaled, the hard w is at least (βᵀt − ε‖β‖₁)/√(βᵀKβ) long. For classes
    this says that the margin is at most the distance between two points of their hulls, 2‖Σβφ‖ / Σα.
    """
    level, weight = float(K.diagonal().mean()) or 1.0, np.ones(len(K))
    for C in 10.0 ** np.arange(1, 11, 2) / level:
        bound = np.full(len(K), C)
        dual = classes_dual(target, bound) if epsilon is None else numbers_dual(target, epsilon, bound)
        solution = solve(K, dual, weight, float(C), tol)
        if np.abs(solution.beta).max() < C:
            return solution
        size = np.sqrt(max(0.0, float(solution.beta @ K @ solution.beta)))
        gain = float(target @ solution.beta) - dual.corner * float(np.abs(solution.beta).sum())
        if 2 * size < LEAST_MARGIN * np.sqrt(level) * gain:
            break
    return None


def centred(K: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """K of features minus their mean, and k(xᵢ, mean): as Σβ = 0 only the intercept changes, by −Σβᵢ k(xᵢ, mean).

    If all rows are asked for, K itself is overwritten.
    """
    inner = K[np.ix_(rows, rows)] if len(rows) < len(K) else K
    mean = inner.mean(0)
    for part in np.array_split(np.arange(len(inner)), len(inner) // 256 + 1):  # while they are in the cache
        inner[part[0] : part[-1] + 1] -= mean + mean[part, None] - mean.mean()
    return inner, mean


def calibrated(K: np.ndarray, sign: np.ndarray, weight: np.ndarray, C: float, seed: int) -> np.ndarray:
    """The sigmoid of decision values on rows that were left out; NaN if a class has a single row."""
    fold = folds(sign, FOLDS, seed)
    if fold.max() == 0:
        return np.full(2, np.nan)
    decision = np.zeros(len(sign))
    for part in range(fold.max() + 1):
        left, kept = np.flatnonzero(fold == part), np.flatnonzero(fold != part)
        dual = classes_dual(sign[kept], C * weight[kept])
        solution = solve(np.ascontiguousarray(K[np.ix_(kept, kept)]), dual, weight[kept], C, 1e-3, exact=False)
        decision[left] = K[np.ix_(left, kept)] @ solution.beta + solution.intercept
    return fit_sigmoid(decision, sign > 0, weight)


def refine(K: np.ndarray, dual: Dual, start: np.ndarray, tol: float) -> np.ndarray:
    """Solve for the free multipliers, let go of bounds that are wrong, and again: an active-set method.

    Each step stays within the bounds and does not raise the objective. Several bounds are let go at once; where that
    leads nowhere, only the worst is, which always leads down.
    """
    beta = _snapped(dual, start)
    released, release_from, work = np.zeros(len(beta)), 0.5, 0.0
    while work < WORK:
        free = ((beta > dual.lower) & (beta < dual.upper) & ((beta != 0) | (dual.epsilon is None))) | (released != 0)
        work += float(free.sum()) ** 3 + 3.0 * len(beta) ** 2 + 5e6
        if not free.any() or work > WORK:
            break
        side = np.where(beta == 0, released, np.sign(beta))
        full, level = _step(K, dual, beta, free, side)
        fraction = _room(dual, beta, full, free, side)
        release_from = 1.0 if fraction == 0.0 and released.any() else 0.5
        beta, released = _snapped(dual, beta + fraction * full), np.zeros(len(beta))
        if fraction in (0.0, 1.0):
            if intercept(K, dual, beta)[1] <= 0.01 * tol:
                break
            released = _releases(K, dual, beta, level, release_from)
    better = np.isfinite(beta).all() and intercept(K, dual, beta)[1] < intercept(K, dual, start)[1]
    return beta if better else start


def _step(K: np.ndarray, dual: Dual, beta: np.ndarray, free: np.ndarray, side: np.ndarray) -> tuple[np.ndarray, float]:
    """The change of the free multipliers to where f = t − ε sign(β) and Σβ = 0, and the b that f then has."""
    rows = np.flatnonzero(free)
    inner = K[np.ix_(rows, rows)]
    system = np.ones((len(rows) + 1, len(rows) + 1))
    system[:-1, :-1] = inner
    # a breath of damping, so that equal rows share their multiplier; it changes the path, not the end
    system[np.arange(len(rows)), np.arange(len(rows))] += 1e-10 * max(inner.diagonal().mean(), 1e-300)
    system[-1, -1] = 0.0
    wanted = (dual.target - dual.corner * side - K @ beta)[rows]
    change = np.zeros(len(beta))
    try:
        solved = np.linalg.solve(system, np.append(wanted, -beta.sum()))
    except np.linalg.LinAlgError:
        return change, intercept(K, dual, beta)[0]
    change[rows] = solved[:-1]
    return change, float(solved[-1])


def _room(dual: Dual, beta: np.ndarray, change: np.ndarray, free: np.ndarray, side: np.ndarray) -> float:
    """The fraction of a step after which the first multiplier meets a bound or the corner at 0; at most 1."""
    corner = dual.epsilon is not None
    upper = np.where((side < 0) & corner, np.minimum(dual.upper, 0.0), dual.upper)
    lower = np.where((side > 0) & corner, np.maximum(dual.lower, 0.0), dual.lower)
    limit = np.where(change > 0, upper, lower)
    moving = free & (change != 0)
    return float(np.clip(((limit - beta)[moving] / change[moving]).min(initial=1.0), 0.0, 1.0))


def _releases(K: np.ndarray, dual: Dual, beta: np.ndarray, level: float, fraction: float) -> np.ndarray:
    """+1 where β should leave its bound upwards, −1 downwards: rows that violate by ≥ `fraction` of the worst."""
    gradient = K @ beta + level - dual.target
    fixed = (beta <= dual.lower) | (beta >= dual.upper) | ((beta == 0) & (dual.epsilon is not None))
    right = gradient + np.where(beta >= 0, dual.corner, -dual.corner)
    left = gradient + np.where(beta > 0, dual.corner, -dual.corner)
    up = np.where(fixed & (beta < dual.upper), -right, 0.0)
    down = np.where(fixed & (beta > dual.lower), left, 0.0)
    least = max(fraction * max(up.max(), down.max()), 1e-300)
    return (up >= least).astype(float) - (down >= least)


def _snapped(dual: Dual, beta: np.ndarray) -> np.ndarray:
    """What is at a bound or at 0 up to rounding is there exactly."""
    near = 1e-12 * np.maximum(np.abs(dual.lower), np.abs(dual.upper))
    near = np.minimum(near, 1e-12 * max(np.abs(beta).max(), 1e-300))
    beta = np.where(beta >= dual.upper - near, dual.upper, np.where(beta <= dual.lower + near, dual.lower, beta))
    return np.where(np.abs(beta) <= near, 0.0, beta)


def _libsvm(K: np.ndarray, dual: Dual, weight: np.ndarray, C: float, precision: float) -> tuple[np.ndarray, bool]:
    """Its multipliers, and whether it came to an end."""
    options = {"kernel": "precomputed", "C": C, "tol": precision, "max_iter": STEPS}
    model = SVC(**options) if dual.epsilon is None else SVR(**options, epsilon=dual.epsilon)

    def fit() -> None:
        with quiet(SolverWarning):  # what is not solved well enough is told by the residual
            model.fit(K, dual.target, sample_weight=weight)

    interruptible(float(len(K)) ** 2 * ROWS, fit)
    beta = np.zeros(len(K))
    beta[model.support_] = model.dual_coef_[0]
    return np.clip(beta, dual.lower, dual.upper), int(np.max(model.n_iter_)) < STEPS
