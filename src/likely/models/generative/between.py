"""Rows between two rows: the line between their codes, for models that go from rows to codes and back."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ...core.draws import count_of
from ...core.errors import DataError
from .base import _Generative

__all__: list[str] = []


class _Between(_Generative):
    """A model with `transform` and `inverse_transform`.

    A member of a posterior has codes of its own, which no mean over members has: the one with the largest weight
    answers.
    """

    inverse_transform: Any

    def interpolate(self, a: Any, b: Any, n: int = 10, condition: Any = None) -> Any:
        """n rows from row a to row b, both included: their codes are on the line between those of a and b.

        `a` and `b` are one row each, as X has them; a condition is that of all n.
        """
        check_is_fitted(self)
        count = count_of(n)
        single = isinstance(condition, str | int | float | bool | np.generic)
        told = [condition] if single else condition
        ends = [self.transform(self._one(row, name), told) for row, name in ((a, "a"), (b, "b"))]  # type: ignore[attr-defined]
        along = np.linspace(0.0, 1.0, count).reshape(-1, *(1 for _ in ends[0].shape[1:]))
        return self.inverse_transform(ends[0] * (1 - along) + ends[1] * along, condition)

    def _one(self, row: Any, name: str) -> Any:
        """A row by itself as X of one row."""
        if self.form_.columns:
            values = {key: np.atleast_1d(row[key]).tolist() for key in self.feature_names_in_}
            if any(len(value) != 1 for value in values.values()):
                raise DataError(f"{name} must be one row.")
            return values
        array = np.asarray(row)
        array = array[None] if array.shape == self.form_.shape else array
        if array.shape != (1, *self.form_.shape):
            raise DataError(f"{name} has shape {np.shape(row)}; it must be one row, of shape {self.form_.shape}.")
        return array

    def _best(self) -> int:
        """The member whose codes are spoken of."""
        return int(self.posterior_.weights.argmax())
