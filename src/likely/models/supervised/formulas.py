"""A formula at the door: its columns and target, numbers of single rows cut to the rows it kept, and its intercept."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from torch import Tensor

from ...core.errors import LikelyWarning, SpecError
from ...data.formula import Formula
from ...data.kept_formula import KeptFormula
from ...networks import Linear, as_network
from ..labels import is_ordered

__all__ = ["opened", "unpacked"]


def unpacked(X: Any, y: Any, *beside: Any) -> tuple[Any, ...]:
    """(X, y, *beside) of a formula in place of X: each number of a row (weights, offsets …) for the rows it kept.

    What has an entry for each row of the frame, those that a missing value left out among them, is cut to the others.

    >>> design = Formula("y ~ x", {"y": [1.0, 2.0, 3.0], "x": [0.0, 1.0, 2.0]})
    >>> X, y, weight = unpacked(design, None, [1, 2, 1])
    >>> y.tolist(), weight
    ([1.0, 2.0, 3.0], [1, 2, 1])
    """
    if not isinstance(X, Formula):
        return (X, y, *beside)
    rows, target = tuple(X) if y is None else (X.X, _kept(X, y))
    return (rows, target, *(_kept(X, own) for own in beside))


def opened(model: Any, X: Any, y: Any, *beside: Any) -> tuple[Any, ...]:
    """The same for a fit, whose model keeps the formula, and knows whether it does without an intercept."""
    vars(model).pop("formula_", None)
    model.without_intercept_ = isinstance(X, Formula) and _without_intercept(model, X)
    if isinstance(X, Formula):
        model.formula_ = KeptFormula.of(X)
    return unpacked(X, y, *beside)


def _without_intercept(model: Any, design: Formula) -> bool:
    """Whether this formula asks for a network without a bias, and the model's is one that can do without."""
    network = as_network(model.network)
    if design.null and is_ordered(model.likelihood):
        raise SpecError(
            f"{design.formula!r} is an intercept alone, and likelihood={model.likelihood!r} has none: its cut points "
            "take that place. Use Classifier() for the fractions of the classes."
        )
    if design.intercept or isinstance(network, Linear):
        return not design.intercept
    if not design.null:
        warnings.warn(
            f"{design.formula!r} leaves out the intercept, and network={network!r} has biases of its own, which stay: "
            "only Linear() can do without. Leave `- 1` or `0 +` out of the formula to be rid of this warning.",
            LikelyWarning,
            stacklevel=4,
        )
    return False


def _kept(design: Formula, values: Any) -> Any:
    """The entries of the rows that the formula kept, of what has one for each row of the frame."""
    if isinstance(values, str) or not hasattr(values, "__len__") or getattr(values, "ndim", 1) == 0:
        return values
    if len(design.kept) == design.rows or len(values) != design.rows:
        return values
    if isinstance(values, Tensor):
        return values[design.kept]
    return values.iloc[design.kept] if hasattr(values, "iloc") else np.asarray(values)[design.kept]
