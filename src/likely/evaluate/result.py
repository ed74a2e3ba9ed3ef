"""What an evaluation returns: a frozen value that prints as a sentence and goes to plain data."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

__all__ = ["Result", "plus_minus"]

MOST_DIGITS = 8
"""After the point; smaller numbers are written with an exponent."""
LARGE = 1e6
"""Standard errors from which on numbers are printed in scientific notation."""


class Result:
    """Base of all results, which are frozen dataclasses."""

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, lists and dicts, ready for JSON."""
        return {field.name: _plain(getattr(self, field.name)) for field in dataclasses.fields(self)}  # type: ignore[arg-type]


def plus_minus(value: float, error: float) -> str:
    """A number with as many digits as its standard error deserves.

    >>> plus_minus(-1.23456, 0.0123)
    '-1.235 ± 0.012'
    >>> plus_minus(-1.4169e33, 1.411e33)
    '-1.4e+33 ± 1.4e+33'
    """
    if not np.isfinite(value) or not np.isfinite(error) or error <= 0:
        return f"{value:.4g}"
    if error >= LARGE:
        return f"{value:.2g} ± {error:.2g}"
    digits = max(0, 1 - int(np.floor(np.log10(error))))
    if digits > MOST_DIGITS:
        return f"{value:.2g} ± {error:.1g}"
    return f"{value:.{digits}f} ± {error:.{digits}f}"


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Result):
        return value.to_dict()
    if isinstance(value, dict):
        return {str(name): _plain(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    return value
