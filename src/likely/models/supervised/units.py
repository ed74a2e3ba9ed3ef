"""Units of a network's inputs, taken from the training rows, and whether a fit can hold those of both sides."""

from __future__ import annotations

import warnings
from collections.abc import Mapping

import torch
from torch import Tensor

from ...core.errors import ApproximationWarning, DataError, ModelFileError
from ...data.rows import Inputs, Rows
from ...networks.layers.graph import mostly_zero
from ...networks.layers.standardise import Statistics, statistics
from .build import Plan

__all__ = ["check_restored", "check_units", "input_units"]

COARSE = 0.01
"""Steps between the numbers of a column, in units of its scale, from which on rounding is worth a word."""


def input_units(plan: Plan, x: Inputs, weight: Tensor | None) -> Statistics | None:
    """What the inputs are standardised by; None where they are taken as they are."""
    if plan.columns is None or (isinstance(x, Rows) and not x.positional):
        return None  # what is mostly 0 stays so
    if isinstance(x, Rows) and x.kind == "graph" and mostly_zero(x.features):
        return None  # they go through sparse products, which a centre would end
    rows = x.flatten(1) if plan.flatten and isinstance(x, Tensor) else x
    return statistics(rows, plan.columns, weight, limited=isinstance(rows, Tensor) and rows.ndim == 2)


def check_restored(buffers: Mapping[str, Tensor]) -> None:
    """Raise a `ModelFileError` for units that no fit gives.

    >>> check_restored({"inputs.scale": torch.zeros(1, 3)})
    Traceback (most recent call last):
    likely.core.errors.ModelFileError: The file has units of the inputs that are not above 0.
    """
    scale = buffers.get("inputs.scale")
    if scale is not None and not bool((scale > 0).all()):
        raise ModelFileError("The file has units of the inputs that are not above 0.")


def check_units(inputs: Statistics | None, unit: Tensor | None, dtype: torch.dtype) -> None:
    """Raise where targets would end as 0 or infinity; warn where rounding would hide what a column says."""
    _check_targets(unit, dtype)
    _warn_of_rounding(inputs, dtype)


def _check_targets(unit: Tensor | None, dtype: torch.dtype) -> None:
    """Targets far beyond the range of the fit's numbers would end as 0 or infinity."""
    if unit is None:
        return
    range_ = torch.finfo(dtype)
    for size in (float(unit.min()), float(unit.max())):
        if not range_.tiny < size < range_.max:
            kind = str(dtype).removeprefix("torch.")
            raise DataError(f"y varies by about {size:.1g}, beyond what {kind} training can hold; rescale y first.")


def _warn_of_rounding(inputs: Statistics | None, dtype: torch.dtype) -> None:
    """Small differences between large numbers are lost when those are rounded."""
    if inputs is None:
        return
    rounding = inputs.centre.abs() * torch.finfo(dtype).eps / inputs.scale
    column = int(rounding.argmax())
    if float(rounding.reshape(-1)[column]) > COARSE:
        centre, scale = (float(part.reshape(-1)[column]) for part in inputs[:2])
        kind = str(dtype).removeprefix("torch.")
        warnings.warn(
            f"Column {column} of X varies by about {scale:.3g} around {centre:.6g}, which {kind} training rounds to "
            "steps that are not small beside it; subtract a number near its mean first.",
            ApproximationWarning,
            stacklevel=5,
        )
