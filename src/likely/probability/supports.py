"""The ends of a support: between them a number may change a little."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor
from torch.distributions import constraints

__all__ = ["ends_of"]

INSIDE = 1e-30
"""How near to an end that is not of the support itself numbers come, also in float32."""


def ends_of(support: Any) -> tuple[float, float]:
    """The least and the largest number of a support, of each entry of a vector; NaN where it is no interval.

    >>> ends_of(constraints.real), ends_of(constraints.nonnegative), ends_of(constraints.boolean)
    ((-inf, inf), (0.0, inf), (nan, nan))
    """
    own = getattr(support, "base_constraint", support)
    low, high = (getattr(own, name, None) for name in ("lower_bound", "upper_bound"))
    if own.is_discrete or own.event_dim or (low is None and high is None and own is not constraints.real):
        return math.nan, math.nan
    return _end(own, low, -1), _end(own, high, 1)


def _end(support: Any, end: Any, side: int) -> float:
    """An end on this side, or the number beside it if the end itself is not of the support."""
    if end is None:
        return side * math.inf
    place: Tensor = torch.as_tensor(end, dtype=torch.float32)
    beside = torch.nextafter(place, torch.tensor(-side * math.inf)) if place else torch.tensor(-side * INSIDE)
    return float(place if bool(support.check(place)) else beside)
