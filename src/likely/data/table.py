"""Table: the rows of a table as numbers, by an encoding that is learned from the training rows only.

x = (column₁ encoded, column₂ encoded, …) ∈ ℝᵈ        `columns.py` says how each kind of column is encoded
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import median
from typing import Any, Literal, Self, TypeVar

import narwhals as nw
import numpy as np
from sklearn.base import TransformerMixin
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from ..core.errors import DataError, ModelFileError, SpecError
from ..core.estimator import Estimator
from ..core.plural import counted
from .columns import (
    Category,
    Column,
    Constant,
    Date,
    Number,
    as_numbers,
    as_text,
    column_from_json,
    describe,
    kind_of,
)
from .dates import as_days, cycles_in
from .frame import as_frame, column_of, is_number, some
from .notes import note, together
from .text_values import TextForm, read_written

__all__ = ["Table"]

SENTENCE = 4
"""Words from which on a value of text is more likely something to read than a name."""
MANY = 20
"""Rows from which on a column with another value in each of them looks like an identifier."""
IDENTIFIER = re.compile(r"(^|[^A-Za-z])(?i:ids?|nr|idx|index|key|uuid)$|[a-z]I[dD]s?$")
"""Names of columns of integers that are more likely labels of rows than quantities: id, customer_id, customerId."""

T = TypeVar("T")
R = TypeVar("R")


class Table(TransformerMixin, Estimator):
    """Encodes frames (pandas, polars, a dict of columns) as float32 arrays.

    Columns are matched by name, in any order. A column that training had and a frame lacks is an error; columns that
    training did not have are not looked at, since tables to predict often carry more (an identifier, the target).
    Constant columns become 0 and are listed in `constant_`. Text that is written as numbers (`52,353.57`, `12 %`,
    `€ 5`) or dates (`31.12.2020`) is read as `read_table` reads it, with a `ReadingNote`; text of plain digits stays a
    category: whoever made it text may have meant that (postcodes). Rows in messages are counted from 0.

    Parameters
    ----------
    standardize : numbers and dates are centred and scaled by the mean and deviation of the training rows.
    max_categories : text with more different values than this is refused, since it is likely an identifier.
    reference : the most frequent level of a category is zero in every column, so that the columns of a category and a
        constant are not collinear; `False` gives each level a column.
    unseen : `"error"` refuses, when transforming, a category or a gap that the training rows did not show; `"ignore"`
        encodes an unseen category as the reference (zeros) and an unseen gap as the training mean.
    categories : columns that are categories although they hold numbers (codes).
    ignore : columns to leave out.

    >>> table = Table().fit({"area": [40.0, 60.0, 80.0], "city": ["Oslo", "Oslo", "Bergen"]})
    >>> table.transform({"city": ["Bergen"], "area": [60.0]})
    array([[0., 1.]], dtype=float32)
    >>> print(table.describe())
    2 columns become 2 numbers
      area  number    (x − 60) / 16.33
      city  category  1 if Bergen; 0 for Oslo
    """

    def __init__(
        self,
        standardize: bool = True,
        max_categories: int = 50,
        reference: bool = True,
        unseen: Literal["error", "ignore"] = "error",
        categories: Sequence[str] = (),
        ignore: Sequence[str] = (),
    ) -> None:
        self.standardize = standardize
        self.max_categories = max_categories
        self.reference = reference
        self.unseen = unseen
        self.categories = categories
        self.ignore = ignore

    def fit(self, frame: Any, y: Any = None) -> Self:
        """Learn the encoding of each column. `y` is not looked at."""
        self._check_arguments()
        rows = as_frame(frame)
        for name in (*self.categories, *self.ignore):
            column_of(rows, name)
        names = [name for name in rows.columns if name not in self.ignore]
        if not names:
            raise DataError("The table has no column to learn from besides those left out.")
        if len(rows) < 2:
            raise DataError(f"The table has {counted(len(rows), 'row')}; at least 2 are needed to learn from.")
        with together():
            self._keep(all_of(lambda name: self._learn(column_of(rows, name)), names))
        return self

    def transform(self, frame: Any) -> np.ndarray:
        """The rows as a float32 array, (n, features)."""
        check_is_fitted(self, "columns_")
        rows = as_frame(frame)
        absent = [column.name for column in self.columns_ if column.name not in rows.columns]
        if len(absent) > 1:
            raise DataError(f"The table lacks {len(absent)} columns that training had: {some(map(repr, absent))}.")
        out = np.empty((len(rows), len(self.feature_names_)), dtype=np.float32)
        start = 0

        def encoded(column: Column) -> np.ndarray:
            block = column.encode(column_of(rows, column.name, "The table"), self.unseen)
            _check_size(column, block)
            return block

        with together():
            blocks = all_of(encoded, self.columns_)
        for block in blocks:
            out[:, start : start + block.shape[1]] = block
            start += block.shape[1]
        return out

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """The names of the numbers, in the order of `transform`."""
        check_is_fitted(self, "columns_")
        return np.asarray(self.feature_names_, dtype=object)

    def describe(self) -> str:
        """What was learned, one line per column."""
        check_is_fitted(self, "columns_")
        return describe(self.columns_)

    def _check_arguments(self) -> None:
        if self.unseen not in ("error", "ignore"):
            raise SpecError(f'Table(unseen={self.unseen!r}): unseen must be "error" or "ignore".')
        if not isinstance(self.max_categories, int) or self.max_categories < 2:
            raise SpecError(f"Table(max_categories={self.max_categories!r}): max_categories must be 2 or more.")
        for name in ("categories", "ignore"):
            if isinstance(getattr(self, name), str):
                raise SpecError(f"Table({name}={getattr(self, name)!r}): {name} must be a list of column names.")

    def _learn(self, series: nw.Series[Any]) -> Column:
        form = TextForm()
        if series.name not in self.categories:
            series, form = read_written(series)
        kind = kind_of(series)
        if kind == "empty":
            return Constant(series.name)
        if kind == "category" or series.name in self.categories:
            return self._learn_category(series)
        if kind == "date":
            return self._learn_date(series, form.date)
        values = as_numbers(series)
        mean, centre, scale, gaps = self._moments(values, series.name, standardize=kind != "boolean")
        if scale == 0 and not gaps:
            return Constant(series.name, "true" if kind == "boolean" and mean else f"{mean:g}")
        if series.dtype.is_integer() and IDENTIFIER.search(series.name) and _all_differ(values):
            note(
                f"`{series.name}` has another integer in each row, which looks like an identifier, and is read as a "
                f"number. Leave it out: Table(ignore=[{series.name!r}]), or --ignore on the command line."
            )
        return Number(series.name, kind, mean, centre, scale, gaps, form.decimal, form.thousands)

    def _learn_date(self, series: nw.Series[Any], form: str) -> Column:
        days, aware = as_days(series)
        first = float(np.nanmin(days))
        mean, centre, scale, gaps = self._moments(days - first, series.name)
        if scale == 0 and not gaps:
            return Constant(series.name, str(series[0]))
        return Date(series.name, first, aware, mean, centre, scale, gaps, cycles_in(days), form)

    def _moments(self, values: np.ndarray, name: str, standardize: bool = True) -> tuple[float, float, float, bool]:
        """Mean, centre, scale (0 if constant), and whether values are missing."""
        present = values[~np.isnan(values)]
        with np.errstate(over="ignore", invalid="ignore"):
            mean, deviation = float(present.mean()), float(present.std())
        if not np.isfinite(deviation):
            raise DataError(f"Column {name!r} has values too large to standardise (up to {np.abs(present).max():g}).")
        gaps = present.size < values.size
        if present.min() == present.max():
            return float(present[0]), float(present[0]), 0.0, gaps
        return (mean, mean, deviation, gaps) if self.standardize and standardize else (mean, 0.0, 1.0, gaps)

    def _learn_category(self, series: nw.Series[Any]) -> Column:
        text = as_text(series)
        table = text.drop_nulls().value_counts(name="count")
        counts: dict[str, int] = dict(table.iter_rows())
        gaps = bool(text.is_null().any())
        if len(counts) == 1 and not gaps:
            return Constant(series.name, next(iter(counts)))
        self._check_levels(series, counts)
        if series.dtype == nw.String and series.name not in self.categories and all(map(is_number, counts)):
            note(
                f"`{series.name}` is text, so its numbers are categories; make them numbers if they are a quantity, or "
                f"say that it is as it should be: Table(categories=[{series.name!r}])."
            )
        reference = min(counts, key=lambda level: (-counts[level], level)) if self.reference else None
        return Category(series.name, tuple(sorted(counts)), reference, gaps)

    def _check_levels(self, series: nw.Series[Any], counts: dict[str, int]) -> None:
        identifier = len(counts) == len(series) >= MANY and series.name not in self.categories
        if len(counts) <= self.max_categories and not identifier:
            return
        column = f"Column {series.name!r} is text with {len(counts)} different values in {len(series)} rows"
        if all(is_number(level) for level in counts):
            remedy = "make it numbers if it is a quantity"
        elif median(len(level.split()) for level in counts) >= SENTENCE:
            text = f"table=TextColumn({series.name!r}) of TableModel, or likely fit --text {series.name}"
            remedy = f"let a model read its words and no other column ({text})"
        elif identifier:
            remedy = f"keep it as groups (Table(categories=[{series.name!r}]) or --category)"
        else:
            remedy = "group its values or raise max_categories"
        more = "which looks like an identifier" if identifier else f"more than max_categories={self.max_categories}"
        out = f"Table(ignore=[{series.name!r}]) or --ignore on the command line"
        raise DataError(f"{column}, {more}. Leave it out ({out}), or {remedy}.")

    def _keep(self, columns: list[Column]) -> None:
        self.columns_ = columns
        self.feature_names_ = [feature for column in columns for feature in column.features]
        self.constant_ = [column.name for column in columns if isinstance(column, Constant)]
        self.n_features_in_ = len(columns)
        self.feature_names_in_ = np.asarray([column.name for column in columns], dtype=object)
        twice = [name for name, count in Counter(self.feature_names_).items() if count > 1]
        if twice:
            raise DataError(f"Two columns would both give a number named {twice[0]!r}; rename one of them.")

    def _state(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        return {"columns": [column.to_json() for column in self.columns_]}, {}

    def _restore(self, learned: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
        for column in learned["columns"]:
            for name in ("mean", "centre", "scale", "first"):
                if not (isinstance(column.get(name, 0), int | float) and math.isfinite(column.get(name, 0))):
                    raise ModelFileError(f"The file has a column with {name}={column[name]!r}; it must be a number.")
        self._keep([column_from_json(column) for column in learned["columns"]])


def all_of(learn: Callable[[T], R], columns: Iterable[T]) -> list[R]:
    """What is learned of each column, or one error that names all columns that do not fit."""
    learned, problems = [], []
    for column in columns:
        try:
            learned.append(learn(column))
        except DataError as error:
            problems.append(error)
    if len(problems) == 1:
        raise problems[0]
    if problems:
        listed = "\n".join(f"- {problem}" for problem in problems)
        raise DataError(f"{len(problems)} columns do not fit:\n{listed}") from problems[0]
    return learned


def _all_differ(values: np.ndarray) -> bool:
    """Whether no two rows have the same number, in a column long enough to tell."""
    return len(values) >= MANY and len(np.unique(values)) == len(values)


def _check_size(column: Column, block: np.ndarray) -> None:
    large = np.abs(block).max(axis=1, initial=0.0) > np.finfo(np.float32).max
    if large.any():
        row = int(np.argmax(large))
        raise DataError(
            f"Column {column.name!r} has a value too far from those of training (row {row}, counted from 0); fix it."
        )
