"""The range that changed rows stay in, and whether a radius is in its units.

    low ≤ x′ ≤ high,   entry by entry;     no two rows between them are further apart than  (high − low) d^(1/p)

A radius beyond that is in other units than X: 8 where 8/255 was meant.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from ..core.errors import DataError

__all__ = ["Bounds", "bounds_of", "check_radius"]

FEW = 10
"""Rows whose own range says too little of that of X to refuse a radius."""
ADVICE = "If rows may go further, say so by bounds=(low, high)."


class Bounds(NamedTuple):
    """The least and the largest value of each number of a row; None where there is none."""

    low: Any = None
    high: Any = None

    def clip(self, x: Tensor) -> Tensor:
        """The nearest point inside."""
        if self.low is None and self.high is None:
            return x
        return x.clamp(*(None if end is None else torch.as_tensor(end).to(x) for end in self))  # in the dtype of x

    def room(self, x: Tensor, direction: Tensor) -> Tensor | None:
        """How far each number of x may go to the side that the sign of the direction says; None where all the way.

        >>> Bounds(low=torch.tensor(0.0)).room(torch.tensor([[1.0, 2.0]]), torch.tensor([[-1.0, 1.0]]))
        tensor([[1., inf]])
        """
        if self.low is None and self.high is None:
            return None
        below, above = (
            torch.full_like(x, math.inf) if end is None else (x - torch.as_tensor(end).to(x)).abs() for end in self
        )
        return torch.where(direction > 0, above, below)

    @property
    def range(self) -> tuple[float | None, float | None]:
        """The smallest and the largest number of all; None where there is none."""
        low, high = self
        return (
            None if low is None else float(torch.as_tensor(low).min()),
            None if high is None else float(torch.as_tensor(high).max()),
        )


def bounds_of(bounds: Any, x: Tensor) -> Bounds:
    """`(low, high)`: numbers, arrays of the shape of a row, or None for no bound; the rows x must lie inside.

    >>> bounds_of((0, 1), torch.tensor([[0.5]]))
    Bounds(low=tensor(0.), high=tensor(1.))
    """
    if bounds is None:
        return Bounds()
    shape = x.shape[1:]
    try:
        low, high = (_end(part, x) for part in bounds)
        least = torch.full_like(x[0], -math.inf) if low is None else low.expand(shape)
        most = torch.full_like(x[0], math.inf) if high is None else high.expand(shape)
    except (TypeError, ValueError, RuntimeError) as error:
        raise DataError(
            f"bounds={_short(bounds)} must be (low, high): numbers, arrays of the shape of a row {tuple(shape)}, or "
            "None for no bound."
        ) from error
    if not bool((least <= most).all()) or not bool((least < most).any()):
        raise DataError(f"bounds={_short(bounds)}: low must be below high.")
    beyond = ((x < least) | (x > most)).nonzero()
    if len(beyond):
        row, *place = beyond[0].tolist()
        ends = f"{float(least[tuple(place)]):g} to {float(most[tuple(place)]):g}"
        raise DataError(
            f"X goes from {float(x.min()):g} to {float(x.max()):g}, beyond bounds={_short(bounds)}: row {row} has "
            f"{float(x[(row, *place)]):g} where they are {ends}."
        )
    return Bounds(low, high)


def check_radius(
    radius: float,
    norm: float,
    x: Tensor,
    bounds: Bounds,
    learned: tuple[float, float] | None = None,
    advice: str = ADVICE,
) -> None:
    """Refuse a radius beyond the range of X, which is in other units.

    The range is that of the bounds; without them that of the rows x and of those that the model has `learned` from. Few
    rows of a model that does not know have none: one row may be anywhere in X.
    """
    low, high = bounds.range
    if (low is None or high is None) and learned is None and len(x) < FEW:
        return
    ends = [float(x.min()), float(x.max()), *(learned or ())]
    low, high = min(ends) if low is None else low, max(ends) if high is None else high
    reach = (high - low) * (1 if math.isinf(norm) else x[0].numel() ** (1 / norm))
    if 0 < reach < radius:
        across = "" if math.isinf(norm) else f", so that no two rows are further apart than {reach:.4g}"
        raise DataError(
            f"radius={radius:g} is beyond the range of X, which goes from {low:g} to {high:g}{across}: "
            f"radii are in the units of X. {advice}".rstrip()
        )


def _end(part: Any, x: Tensor) -> Tensor | None:
    if part is None:
        return None
    given = part.detach().cpu() if isinstance(part, Tensor) else part
    return torch.as_tensor(np.asarray(given, dtype=float)).to(x)


def _short(bounds: Any) -> str:
    """As it was given, but for arrays: their shape and range."""
    if not isinstance(bounds, tuple | list) or len(bounds) != 2:
        text = repr(bounds)
        return text if len(text) < 60 else f"a {type(bounds).__name__}"
    return f"({', '.join(_short_end(part) for part in bounds)})"


def _short_end(part: Any) -> str:
    if np.ndim(part) == 0:
        return repr(part)
    values = np.asarray(part)
    if values.dtype.kind not in "fiub" or not values.size:
        return f"an array {values.shape}"
    return f"an array {values.shape} from {values.min():g} to {values.max():g}"
