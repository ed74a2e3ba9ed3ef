"""Robustness: how many answers are still right when rows may be changed within a radius.

accuracy(r) = the fraction of rows with no x′, ‖x′ − x‖ₚ ≤ r, at which the attack found the model in error

An attack that fails proves nothing: the curve is an upper bound, and falls with a stronger attack.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..core.errors import DataError, SpecError
from ..core.random import seed_of, spread
from ..core.spec import as_spec
from ..data.frame import as_frame
from ..robust import Attack
from ..robust.attack import attacked, check_reach
from .protocol import as_array, take
from .result import Result

__all__ = ["Robustness", "robustness"]


@dataclass(frozen=True)
class Robustness(Result):
    """Accuracy without an attack and within each radius, in a p-norm of the units of X."""

    clean: float
    radii: np.ndarray
    accuracy: np.ndarray
    norm: float
    count: int

    def __str__(self) -> str:
        name = "∞" if math.isinf(self.norm) else f"{self.norm:g}"
        lines = [f"radius {r:g}: {a:.1%} right" for r, a in zip(self.radii, self.accuracy, strict=True)]
        return "\n".join([f"no attack: {self.clean:.1%} of {self.count} rows right", *lines, f"in the {name}-norm"])


def robustness(
    model: Any,
    X: Any,
    y: Any,
    method: Any = "pgd(0.1)",
    radii: Sequence[float] = (0.01, 0.03, 0.1),
    *,
    bounds: Any = None,
    threshold: Any = None,
    random_state: Any = None,
) -> Robustness:
    """Accuracy under an attack against its radius; what else is asked for is that of `robust.attack`.

    An attack with a radius, such as PGD, is run for each one (steps of a given size grow with it) on the rows that
    withstood the smaller ones. One that looks for the smallest change, such as DeepFool, is run once.

    >>> from likely import Classifier
    >>> from likely.robust import DeepFool
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], ["a", "a", "b", "b"]
    >>> model = Classifier(prior="normal(1.0)").fit(X, y)
    >>> robustness(model, X, y, DeepFool(), radii=[0.4, 0.6, 2.0]).accuracy  # the boundary is at 1.5
    array([1. , 0.5, 0. ])
    """
    spec = as_spec(method, Attack, "method")
    asked = _radii(radii)
    rows, targets = _rows(X), as_array(y)
    given = {"bounds": bounds, "threshold": threshold}
    if getattr(spec, "radius", None) is None:
        if spec.p not in (1, 2, math.inf):
            raise DataError(f"{spec!r} measures sizes in the {spec.p:g}-norm; use norm 1, 2 or inf.")
        outcome = attacked(model, rows, targets, spec, random_state=random_state, **given)
        fooled_at = np.where(outcome.success, outcome.size(spec.p), math.inf)
    else:
        check_reach(model, rows, spec, float(asked[-1]), **given)
        fooled_at = _one_by_one(model, rows, targets, spec, asked, spread(seed_of(random_state), len(asked)), given)
    right = np.array([float(np.mean(fooled_at > radius)) for radius in asked])
    return Robustness(float(np.mean(fooled_at > 0)), asked, right, spec.p, len(rows))


def _rows(X: Any) -> Any:
    """Tables as frames; all other rows as an array."""
    return as_frame(X).to_native() if isinstance(X, Mapping) or hasattr(X, "columns") else as_array(X)


def _radii(radii: Any) -> np.ndarray:
    """Positive numbers that rise."""
    try:
        asked = np.atleast_1d(np.asarray(radii, dtype=float))
        sound = asked.ndim == 1 and asked.size > 0 and bool((np.isfinite(asked) & (asked > 0)).all())
        sound = sound and not (np.diff(asked) <= 0).any()
    except (TypeError, ValueError):
        sound = False
    if not sound:
        raise SpecError(f"radii must be positive numbers that rise, in the units of X; found {radii!r}.")
    return asked


def _one_by_one(
    model: Any, X: Any, y: np.ndarray, spec: Any, radii: np.ndarray, seeds: list[int], given: dict[str, Any]
) -> np.ndarray:
    """The smallest of the radii at which each row is fooled: 0 where the model errs already, ∞ where at none."""
    fooled_at, left = np.full(len(X), math.inf), np.arange(len(X))
    for radius, seed in zip(radii.tolist(), seeds, strict=True):
        size = getattr(spec, "step_size", "auto")
        scaled = {} if isinstance(size, str) else {"step_size": size * radius / spec.radius}
        grown = spec.replace(radius=radius, **scaled)
        outcome = attacked(model, take(X, left), y[left], grown, random_state=seed, stacklevel=4, **given)
        moved = outcome.linf > 0
        fooled_at[left[outcome.success]] = np.where(moved, radius, 0.0)[outcome.success]
        left = left[~outcome.success]
        if not len(left):
            break
    return fooled_at
