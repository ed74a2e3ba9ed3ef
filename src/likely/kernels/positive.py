"""Positive hyperparameters of a kernel as parameters: their logarithms, free or held."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from ..core.errors import DataError
from ..core.spec import Spec, require

__all__ = ["Positive", "columns_of", "require_positive"]


class Positive(nn.Module):
    """A positive number, or one for each of d columns, as exp of a parameter.

    >>> Positive(2.0)()
    tensor(2., dtype=torch.float64, grad_fn=<ExpBackward0>)
    """

    def __init__(self, value: float | Sequence[float], learn: bool = True) -> None:
        super().__init__()
        self.start = value
        self.log = nn.Parameter(_log(value), requires_grad=learn)

    def forward(self) -> Tensor:
        return self.log.exp()

    def number(self) -> Any:
        """As it stands in a spec: a float, or a tuple of them. What was not learned is what was given, to the bit."""
        if torch.equal(self.log.detach(), _log(self.start).to(self.log)):
            return self.start
        value = self.log.detach().double().exp()
        return float(value) if value.ndim == 0 else tuple(float(entry) for entry in value)


def _log(value: float | Sequence[float]) -> Tensor:
    return torch.tensor(value, dtype=torch.float64).log()


def require_positive(spec: Spec, name: str, several: bool = False) -> None:
    """Raise a `SpecError` unless this argument is a positive number (or, if allowed, several)."""
    value = getattr(spec, name)
    values = value if several and isinstance(value, tuple) else (value,)
    numbers = all(isinstance(v, int | float) and not isinstance(v, bool) and 0 < v < math.inf for v in values)
    words = "a positive number" + (", or one for each column" if several else "")
    require(bool(values) and numbers, spec, name, words)


def columns_of(spec: Any, value: Any, x: Tensor) -> None:
    """Refuse rows with another number of columns than there are length scales."""
    if isinstance(value, tuple) and len(value) != x.shape[-1]:
        raise DataError(f"{spec!r} has {len(value)} length scales, but rows of {x.shape[-1]} columns.")
