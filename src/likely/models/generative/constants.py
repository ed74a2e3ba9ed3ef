"""Columns with one value in all rows, which a density of numbers would raise to infinity."""

from __future__ import annotations

import warnings
from typing import Any

import torch
from torch import Tensor

from ...core.errors import ApproximationWarning

__all__ = ["warn_of_constants"]


def warn_of_constants(model: Any, x: Tensor) -> None:
    """Say which column of a table has no width; its model holds it at a small one. NaN does not count."""
    flat = x.flatten(1).double()
    lowest, highest = (part.amin(0) for part in (flat.nan_to_num(torch.inf), -flat.nan_to_num(-torch.inf)))
    constant = (lowest == -highest).nonzero().ravel().tolist()
    if constant and len(model.form_.shape) == 1:
        warnings.warn(
            f"Column {model._name(constant[0])} of X has one value in all rows: its density has no bound, so it is "
            "held at a small width; leave it out.",
            ApproximationWarning,
            stacklevel=5,
        )
