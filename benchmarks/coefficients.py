"""Comparing solvers of one convex fit: each runs at the loosest tolerance that makes it exact to 1e-6."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping

import numpy as np

from .timing import Result, compare, interleave

__all__ = ["Solver", "flat", "solvers"]

Solver = Callable[[float], np.ndarray]
"""Takes a tolerance and returns [coefficients, intercept]."""

LADDER = (1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9, 1e-10, 1e-12)
EXACT = 1e-6


def flat(coefficients: np.ndarray, intercept: np.ndarray | float) -> np.ndarray:
    """[coefficients, intercept] as one vector."""
    return np.append(np.ravel(coefficients), np.ravel(intercept))


def solvers(
    benchmark: str,
    likely: Callable[[], np.ndarray],
    peers: Mapping[str, Solver],
    reference: np.ndarray,
    repeats: int,
    source: str,
) -> list[Result]:
    """Time Likely as it comes and each peer at its own loosest sufficient tolerance; the best peer sets the target."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        chosen = {name: _loosest(solver, reference) for name, solver in peers.items()}
        calls = {"likely": likely} | {f"{k}, tol {t:g}": (lambda s=peers[k], t=t: s(t)) for k, t in chosen.items()}
        timed = interleave(calls, repeats)

    def quality(mine: np.ndarray, other: np.ndarray) -> tuple[str, bool]:
        ours, theirs = _error(mine, reference), _error(other, reference)
        return f"{source}: coefficients off by {ours:.1e} and {theirs:.1e}", ours <= EXACT

    return compare(benchmark, timed, quality, dict.fromkeys(timed, 1.0))


def _loosest(solver: Solver, reference: np.ndarray) -> float:
    return next((tol for tol in LADDER if _error(solver(tol), reference) <= EXACT), LADDER[-1])


def _error(estimate: np.ndarray, reference: np.ndarray) -> float:
    return float(np.abs(estimate - reference).max() / np.abs(reference).max())
