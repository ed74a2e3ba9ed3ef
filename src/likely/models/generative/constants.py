"""Columns with one value in all rows, or that follow from others: a density of numbers would rise to infinity."""

from __future__ import annotations

import warnings
from typing import Any

import torch
from torch import Tensor

from ...core.errors import ApproximationWarning

__all__ = ["warn_of_constants", "warn_of_copies"]

ALIKE = 1e-7
"""Columns depend on each other if a direction has so little of their variance."""


def warn_of_constants(model: Any, x: Tensor) -> None:
    """Say which column of numbers has no width; its model holds it at a small one. NaN does not count."""
    flat = x.flatten(1).double()
    labels = [index for index, column in enumerate(model.form_.columns) if column.kind != "number"]
    lowest, highest = (part.amin(0) for part in (flat.nan_to_num(torch.inf), -flat.nan_to_num(-torch.inf)))
    constant = [column for column in (lowest == -highest).nonzero().ravel().tolist() if column not in labels]
    if constant and len(model.form_.shape) == 1:
        warnings.warn(
            f"Column {model._name(constant[0])} of X has one value in all rows: its density has no bound, so it is "
            "held at a small width; leave it out.",
            ApproximationWarning,
            stacklevel=5,
        )


def warn_of_copies(model: Any, x: Tensor, columns: list[int]) -> None:
    """Say which of these columns follows from others: a direction without width, where a density has no bound.

    Rows with a NaN do not count.
    """
    own = x[:, columns].double()
    own = own[~own.isnan().any(1)]
    if len(own) <= len(columns):
        return
    own = own - own.mean(0)
    size = own.abs().amax(0)
    own, columns = (own / size)[:, size > 0], [column for column, s in zip(columns, size, strict=True) if s > 0]
    if len(columns) < 2:
        return
    _, sizes, directions = torch.linalg.svd(own, full_matrices=False)
    if float(sizes[-1]) < ALIKE * float(sizes[0]):
        column = columns[int(directions[-1].abs().argmax())]
        warnings.warn(
            f"Column {model._name(column)} of X follows from the others (a copy, or a sum of them): its density "
            "given them has no bound but the one that the model sets; leave it out.",
            ApproximationWarning,
            stacklevel=5,
        )
