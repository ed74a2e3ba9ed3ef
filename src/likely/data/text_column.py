"""TextColumn: of all columns of a table, the one that has a text in each row. It stands where a `Table` would."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import narwhals as nw
import numpy as np
from sklearn.base import TransformerMixin
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from ..core.errors import DataError, SpecError
from ..core.estimator import Estimator
from .frame import as_frame, column_of

__all__ = ["TextColumn", "text_columns"]

WORDS = 3
"""On average, from which on the strings of a column are texts and not names."""


class TextColumn(TransformerMixin, Estimator):
    """The texts of one column, for models that take strings; other columns are not looked at. A missing text is empty.

    >>> TextColumn("review").fit_transform({"review": ["so warm", None], "stars": [5, 1]})
    array(['so warm', ''], dtype=object)
    """

    def __init__(self, text: str) -> None:
        self.text = text

    def fit(self, frame: Any, y: Any = None) -> Self:
        """Look whether there is such a column. `y` is not looked at."""
        if not isinstance(self.text, str):
            raise SpecError(f"TextColumn(text={self.text!r}): text must be the name of a column.")
        self._texts(frame)
        self._keep()
        return self

    def transform(self, frame: Any) -> np.ndarray:
        """The text of each row: (n,) of strings."""
        check_is_fitted(self, "feature_names_")
        return self._texts(frame)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """The name of the column."""
        return np.asarray([self.text], dtype=object)

    def describe(self) -> str:
        """What was learned: which column it is."""
        return f"texts of the column {self.text}"

    def _texts(self, frame: Any) -> np.ndarray:
        series = column_of(as_frame(frame), self.text, "The table")
        if series.dtype not in (nw.String, nw.Categorical, nw.Enum):
            raise DataError(f"Column {self.text!r} has values of the type {series.dtype}; texts are needed.")
        values = series.cast(nw.String).to_list()
        return np.array(["" if value is None else value for value in values], dtype=object)

    def _keep(self) -> None:
        self.columns_: list[Any] = []
        self.constant_: list[str] = []
        self.feature_names_ = [self.text]
        self.n_features_in_, self.feature_names_in_ = 1, np.asarray([self.text], dtype=object)

    def _state(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        return {"text": self.text}, {}

    def _restore(self, learned: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
        self._keep()


def text_columns(frame: Any) -> list[str]:
    """The columns of a table that look like texts: strings of several words, hardly any of them twice.

    >>> text_columns({"review": ["a warm film", "so dull a film"], "city": ["Oslo", "Rome"], "stars": [5, 1]})
    ['review']
    """
    rows = as_frame(frame)
    of_text = []
    for name in rows.columns:
        series = rows[name]
        if series.dtype != nw.String:
            continue
        values = series.drop_nulls().to_list()
        words = sum(len(value.split()) for value in values)
        if values and words >= WORDS * len(values) and 2 * len(set(values)) > len(values):
            of_text.append(name)
    return of_text
