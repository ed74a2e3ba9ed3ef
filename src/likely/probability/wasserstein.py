"""Wasserstein-1: the least mean distance that mass must be moved to turn one distribution into another.

    W(p, q) = min over joints with marginals p and q of E‖x − y‖        on the line: ∫ |F(x) − G(x)| dx

It knows how far apart outcomes are: W(δ₀, δ_θ) = |θ|, where KL is ∞ and JS is log 2 for every θ ≠ 0.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike
from scipy.optimize import linear_sum_assignment, linprog
from scipy.sparse import coo_array
from scipy.spatial.distance import cdist
from torch import Tensor
from torch.distributions import Distribution, Transform

from ..core.errors import DataError
from .density import as_distribution, draw, is_discrete, outcomes
from .estimate import Estimate
from .quantiles import cdf, quantile

__all__ = ["wasserstein"]

_LEVELS = np.array([0.0, 1e-9, 1e-6, 1e-4, 1e-3, 0.01, *np.arange(0.05, 0.5, 0.05), 0.5])
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(12)
_TOLERANCE, _NARROW = 1e-11, 2.0**-22


class Atoms(NamedTuple):
    """A discrete distribution: points (n, d) and their masses, which sum to 1."""

    points: np.ndarray
    mass: np.ndarray


class Curve(NamedTuple):
    """A continuous distribution on the line: F, and points between which F is smooth and nearly all mass lies."""

    cdf: Callable[[np.ndarray], np.ndarray]
    edges: np.ndarray
    has_mean: bool


def wasserstein(
    p: Distribution | ArrayLike | Tensor,
    q: Distribution | ArrayLike | Tensor,
    *,
    p_weights: ArrayLike | Tensor | None = None,
    q_weights: ArrayLike | Tensor | None = None,
) -> Estimate:
    """W₁(p, q), exact: on the line for everything, in any dimension for discrete distributions.

    Each is a torch distribution (labels are the numbers 0, 1, …), or an array of points, (n,) or (n, d), which are
    points here and not probabilities: a sample, or the outcomes of a discrete distribution with their `weights`. In
    more than one dimension distances are Euclidean, and a transport problem of n·m unknowns is solved.

    >>> wasserstein([0.0], [3.0])
    3.0
    >>> wasserstein([0.0, 1.0], [0.0, 1.0], q_weights=[0.25, 0.75])
    0.25
    >>> from torch.distributions import Normal
    >>> round(wasserstein(Normal(0.0, 1.0), Normal(2.0, 1.0)), 6)
    2.0
    """
    first, second = _read(p, p_weights, "p"), _read(q, q_weights, "q")
    if isinstance(first, Atoms) and isinstance(second, Atoms):
        if first.points.shape[1] != second.points.shape[1]:
            raise DataError(
                f"p and q must lie in one space; points of p have {first.points.shape[1]} coordinates, of q "
                f"{second.points.shape[1]}."
            )
        return Estimate(_on_line(first, second) if first.points.shape[1] == 1 else _transport(first, second))
    for part, name in ((first, "p"), (second, "q")):
        if isinstance(part, Atoms) and part.points.shape[1] > 1:
            raise DataError(f"{name} has points of {part.points.shape[1]} coordinates, the other is on the line.")
    return Estimate(_integral(_as_curve(first), _as_curve(second)))


# --- what is given ------------------------------------------------------------------------------------------------
def _read(value: Any, weights: Any, name: str) -> Atoms | Curve:
    if not isinstance(value, Distribution):
        return _points(value, weights, name)
    if weights is not None:
        raise DataError(f"{name}_weights belong to points; {name} is a torch distribution.")
    distribution = _double(as_distribution(value, name))
    finite = outcomes(distribution)
    if finite is not None:
        points = finite.values.double().numpy().reshape(len(finite.values), -1)
        return Atoms(points, np.exp(finite.log_probs))
    if distribution.event_shape:
        raise DataError(
            f"{name} is a continuous distribution of vectors, for which no exact answer is known; give draws of it: "
            f"{name}.sample((1000,))."
        )
    return _counts(distribution, name) if is_discrete(distribution) else _curve(distribution, name)


def _points(value: Any, weights: Any, name: str) -> Atoms:
    points = _array(value, name)
    if points.ndim not in (1, 2) or 0 in points.shape:
        raise DataError(
            f"{name} must be a torch distribution or points (n,) or (n, d); found an array of shape {points.shape}."
        )
    points = points.reshape(len(points), -1)
    if weights is None:
        return Atoms(points, np.full(len(points), 1 / len(points)))
    mass = _array(weights, f"{name}_weights")
    if mass.shape != (len(points),) or (mass < 0).any() or not mass.sum() > 0:
        raise DataError(
            f"{name}_weights must be {len(points)} numbers of 0 or more, one for each point and not all 0; found shape "
            f"{mass.shape}{f' with a {mass.min():g}' if mass.size and mass.min() < 0 else ''}."
        )
    return Atoms(points[mass > 0], mass[mass > 0] / mass.sum())


def _array(value: Any, name: str) -> np.ndarray:
    array = np.asarray(value.detach().cpu() if isinstance(value, Tensor) else value)
    if array.dtype.kind not in "fiub":
        raise DataError(f"{name} must be a torch distribution or hold numbers; found {type(value).__name__}.")
    if not np.isfinite(array).all():
        raise DataError(f"{name} must hold finite numbers; found {array[~np.isfinite(array)][0]}.")
    return array.astype(np.float64)


def _counts(distribution: Distribution, name: str) -> Atoms:
    """Counts 0, 1, 2, … as far as float64 can tell their tail from nothing."""
    high = 16 + int(_asked(lambda: quantile(distribution, 1 - 1e-15), name))
    values = np.arange(high + 1.0)
    below = _asked(lambda: cdf(distribution, torch.from_numpy(values)), name).double().numpy()
    mass = np.diff(below, prepend=0.0)
    return Atoms(values[:, None], mass / mass.sum())


def _curve(distribution: Distribution, name: str) -> Curve:
    inside = draw(distribution, 2, 0)[0].double()

    def function(x: np.ndarray) -> np.ndarray:
        points = torch.from_numpy(x)
        try:
            possible = distribution.support.check(points)  # type: ignore[union-attr]
        except NotImplementedError:
            possible = torch.ones_like(points, dtype=torch.bool)
        probabilities = cdf(distribution, torch.where(possible, points, inside)).double()
        return torch.where(possible, probabilities, (points > inside).double()).numpy()

    levels = torch.from_numpy(np.concatenate([_LEVELS, 1 - _LEVELS[-2::-1]]))
    edges = _asked(lambda: quantile(distribution, levels), name).double().numpy()
    has_mean = math.isfinite(float(distribution.mean))
    if not has_mean:  # so far out in its tails, rounding of F is larger than what is integrated
        edges = edges[2:-2]
    edges = np.unique(edges[np.isfinite(edges)])
    _asked(lambda: function(edges), name)
    return Curve(function, edges, has_mean)


def _double(part: Any) -> Any:
    """A copy of a distribution with its numbers in float64: differences of its cdf are small."""
    if isinstance(part, Tensor):
        return part.detach().double() if part.is_floating_point() else part
    if isinstance(part, list):
        return [_double(entry) for entry in part]
    if not isinstance(part, Distribution | Transform):
        return part
    twin = copy.copy(part)
    vars(twin).update({name: _double(value) for name, value in vars(part).items()})
    return twin


def _asked(function: Callable[[], Any], name: str) -> Any:
    try:
        with torch.no_grad():
            return function()
    except NotImplementedError as error:
        raise DataError(
            f"{name} has no distribution function to integrate; give draws of it: {name}.sample((1000,))."
        ) from error


# --- the answers --------------------------------------------------------------------------------------------------
def _on_line(p: Atoms, q: Atoms) -> float:
    """∫|F − G| of two step functions."""
    points = np.concatenate([p.points[:, 0], q.points[:, 0]])
    order = points.argsort(kind="stable")
    gap = np.cumsum(np.concatenate([p.mass, -q.mass])[order])
    return float(np.abs(gap[:-1]) @ np.diff(points[order]))


def _transport(p: Atoms, q: Atoms) -> float:
    """The linear programme: mass ≥ 0 from each point to each, with the given sums, at the least cost."""
    cost = cdist(p.points, q.points)
    n, m = cost.shape
    if n == m and np.ptp(p.mass) == 0 and np.ptp(q.mass) == 0:
        rows, columns = linear_sum_assignment(cost)  # equal masses are moved whole
        return float(cost[rows, columns].mean())
    pair = np.arange(n * m)
    sums = coo_array((np.ones(2 * n * m), (np.r_[pair // m, n + pair % m], np.r_[pair, pair])), shape=(n + m, n * m))
    # one of the sums follows from the others; left in, rounding could make them contradict
    solution = linprog(cost.ravel(), A_eq=sums.tocsr()[:-1], b_eq=np.r_[p.mass, q.mass][:-1], method="highs")
    if not solution.success:
        raise DataError(f"The transport problem of {n} × {m} points was not solved: {solution.message}")
    return float(solution.fun)


def _as_curve(part: Atoms | Curve) -> Curve:
    """A discrete distribution on the line as its step function."""
    if isinstance(part, Curve):
        return part
    order = part.points[:, 0].argsort()
    points, total = part.points[order, 0], np.r_[0.0, np.cumsum(part.mass[order])]
    total[-1] = 1.0  # a rounded sum would differ from 1 all the way to infinity
    return Curve(lambda x: total[np.searchsorted(points, x, side="right")], np.unique(points), True)


def _integral(p: Curve, q: Curve) -> float:
    """∫|F − G|: between the edges of both as it is, and beyond the last ones with x = edge ± width·t/(1 − t)."""
    if p.has_mean != q.has_mean:
        return math.inf
    edges = np.union1d(p.edges, q.edges)
    edges = np.union1d(edges, _crossings(p, q, edges))
    width = edges[-1] - edges[0]

    def gap(x: np.ndarray) -> np.ndarray:
        return np.abs(p.cdf(x) - q.cdf(x))

    def beyond(end: float, sign: float) -> Callable[[np.ndarray], np.ndarray]:
        return lambda t: gap(end + sign * width * t / (1 - t)) * width / (1 - t) ** 2

    unit = np.linspace(0, 1, 9)
    middle = _quadrature(gap, edges, 0.0)
    return middle + sum(_quadrature(beyond(end, sign), unit, middle) for end, sign in ((edges[0], -1), (edges[-1], 1)))


def _crossings(p: Curve, q: Curve, edges: np.ndarray) -> np.ndarray:
    """Where F − G changes its sign between two edges, by bisection: |F − G| has a kink there."""

    def sign(x: np.ndarray) -> np.ndarray:
        return np.sign(p.cdf(x) - q.cdf(x))

    left, right = edges[:-1], np.nextafter(edges[1:], -np.inf)  # before the step that a distribution has at its edge
    first = sign(left)
    between = first * sign(right) < 0
    left, right, first = left[between], right[between], first[between]
    for _ in range(60 if len(left) else 0):
        middle = 0.5 * (left + right)
        before = sign(middle) == first
        left, right = np.where(before, middle, left), np.where(before, right, middle)
    return right


def _quadrature(function: Callable[[np.ndarray], np.ndarray], edges: np.ndarray, scale: float) -> float:
    """Gauss-Legendre on each piece; a piece is halved until its halves say the same as the whole.

    What is small beside `scale` and the integral is left, and so are pieces too narrow to tell from rounding.
    """

    def pieces(left: np.ndarray, right: np.ndarray) -> np.ndarray:
        half = 0.5 * (right - left)
        points = (0.5 * (left + right))[:, None] + half[:, None] * _NODES
        return half * (function(points.ravel()).reshape(points.shape) @ _WEIGHTS)

    left, right = edges[:-1], edges[1:]
    whole, settled = pieces(left, right), 0.0
    allowed = _TOLERANCE * max(scale, float(whole.sum())) / len(edges)
    while len(left):
        middle = 0.5 * (left + right)
        first, second = pieces(left, middle), pieces(middle, right)
        halved = first + second
        wrong = (np.abs(halved - whole) > allowed) & (right - left > _NARROW * (edges[-1] - edges[0]))
        settled += float(halved[~wrong].sum())
        left, right = np.r_[left[wrong], middle[wrong]], np.r_[middle[wrong], right[wrong]]
        whole = np.r_[first[wrong], second[wrong]]
    return settled
