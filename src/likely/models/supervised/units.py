"""Units of a network's inputs, taken from the training rows, and whether a fit can hold those of both sides."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor

from ...core.errors import ApproximationWarning, DataError, ModelFileError, TrainingError
from ...data.rows import Inputs, Rows
from ...inference import Inference, Posterior
from ...likelihoods.special import exp_limit
from ...networks.layers.graph import mostly_zero
from ...networks.layers.standardise import SMALLEST, Statistics, statistics
from .build import Plan

__all__ = ["check_parameters", "check_restored", "check_units", "in_range", "input_units"]

COARSE = 0.01
"""Steps between the numbers of a column, in units of its scale, from which on rounding is worth a word."""
PRECISE = 1e3
"""How many times smaller than the unit of y the σ of a good fit may be."""
FURTHER = 1e3
"""How many times as far as its unit a value of a column may lie."""


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


def check_units(inputs: Statistics | None, unit: Tensor | None, dtype: torch.dtype, y: Tensor | None = None) -> None:
    """Raise where numbers would end as 0 or infinity; warn where rounding would hide what a column or y says."""
    _check_targets(unit, dtype)
    if y is not None and len(y) > 1 and y.is_floating_point():
        _warn_of_rounded_targets(y.reshape(len(y), -1), dtype)
    if inputs is not None:
        _check_inputs(inputs, dtype)
        _warn_of_rounding(inputs, dtype)


@contextmanager
def in_range(inference: Inference) -> Iterator[None]:
    """Numbers beyond what the machine can hold are an error that says what to do."""
    try:
        yield
    except (torch.linalg.LinAlgError, OverflowError, ZeroDivisionError) as error:  # type: ignore[attr-defined]
        raise TrainingError(
            f"{inference!r} cannot solve for the parameters: X or y has numbers that are too large, or too different "
            "in size; standardise them first."
        ) from error


def check_parameters(posterior: Posterior) -> None:
    """Raise a `TrainingError` for a fit that left the numbers."""
    for name, value in posterior.parameters.items():
        if not bool(torch.isfinite(value).all()):
            raise TrainingError(
                f"The fit ended with parameters that are not finite ({name}); standardise X and y first."
            )


def _check_targets(unit: Tensor | None, dtype: torch.dtype) -> None:
    """Targets in units whose square the fit's numbers cannot hold would have a wrong σ, or end as 0 or infinity."""
    if unit is None:
        return
    most = exp_limit(dtype)
    for size in (float(unit.min()), float(unit.max())):
        if not PRECISE / most < size < most:
            kind = str(dtype).removeprefix("torch.")
            raise DataError(f"y varies by about {size:.1g}, beyond what {kind} training can hold; rescale y first.")


def _check_inputs(inputs: Statistics, dtype: torch.dtype) -> None:
    """Columns that a cast would make infinite, or nothing."""
    kind, scale = str(dtype).removeprefix("torch."), inputs.scale.reshape(-1)
    size = torch.maximum(scale, inputs.centre.abs().reshape(-1))
    column = int(size.argmax())
    if not float(size[column]) < torch.finfo(dtype).max / FURTHER:
        about = f" of about {float(size[column]):.1g}" if bool(size[column].isfinite()) else ""
        raise DataError(
            f"Column {column} of X has values{about} beyond what {kind} training can hold; standardise it first."
        )
    column = int(scale.argmin())
    if float(scale[column]) <= SMALLEST:
        warnings.warn(
            f"Column {column} of X varies by {SMALLEST:.0g} or less, which {kind} training cannot tell from nothing; "
            "multiply it by a large number first.",
            ApproximationWarning,
            stacklevel=5,
        )


def _warn_of_rounded_targets(y: Tensor, dtype: torch.dtype) -> None:
    """Small differences between large targets (n, columns) are lost when those are rounded."""
    lowest, highest = y.amin(0), y.amax(0)
    size = torch.maximum(lowest.abs(), highest.abs()) * torch.finfo(dtype).eps
    coarse = (size > COARSE * y.std(0)) & (lowest < highest) & (y.dtype != dtype)
    if bool(coarse.any()):
        own = y[:, int(coarse.nonzero()[0])]
        _say("y" if y.shape[1] == 1 else f"Column {int(coarse.nonzero()[0])} of y", own.mean(), own.std(), dtype)


def _warn_of_rounding(inputs: Statistics, dtype: torch.dtype) -> None:
    """Small differences between large numbers are lost when those are rounded."""
    rounding = inputs.centre.abs() * torch.finfo(dtype).eps / inputs.scale
    column = int(rounding.argmax())
    if float(rounding.reshape(-1)[column]) > COARSE:
        centre, scale = (part.reshape(-1)[column] for part in inputs[:2])
        _say(f"Column {column} of X", centre, scale, dtype)


def _say(name: str, centre: Tensor, scale: Tensor, dtype: torch.dtype) -> None:
    warnings.warn(
        f"{name} varies by about {float(scale):.3g} around {float(centre):.6g}, which "
        f"{str(dtype).removeprefix('torch.')} training rounds to steps that are not small beside it; subtract a number "
        "near its mean first.",
        ApproximationWarning,
        stacklevel=6,
    )
