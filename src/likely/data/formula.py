"""Formulas: columns of a frame as rows of numbers, in the notation of R, by the library formulaic.

    "y ~ x1 + C(group) + bs(age, df=4)"      y: the target,  1 + x₁ + dummies of group + a spline of age: the columns
    "y ~ . - id"                             all other columns but one
    "y ~ 1"                                  the intercept alone: the null model

What was learned from the first frame (levels, knots, means) stays the same for frames to come.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ..core.errors import DataError, LikelyWarning, SpecError
from ..core.plural import verb

__all__ = ["Formula", "encoded", "library", "right_side"]

DOT = re.compile(r"(?<![\w.)\]])\.(?![\w.])")
"""A dot that stands alone: of no number and no name."""


class Formula:
    """What `likely.formula` gives: columns X with their names, the target y, and the same columns for new frames.

    `Regressor().fit(design)` and `Classifier().fit(design)` take it as it is, and it unpacks to (X, y) for others;
    `design(frame)` are the columns of new rows. The intercept is that of the model, so X has no column for it: where
    the formula leaves it out (`- 1`), `intercept` is False, and `fit(design)` takes `Linear(bias=False)` for
    `Linear()`. So it does for the null model, `y ~ 1`, whose one column is the intercept. A dot is all columns that are
    not part of the target. Rows with a missing value are left out, with a warning; `kept` are the positions of the
    others. Weights, offsets and exposures beside `fit(design)` may have an entry for each row of the frame, or for
    each row kept. The model keeps the formula, also in its file, and takes frames in place of X from then on.

    >>> from likely import Regressor
    >>> rows = {"y": [1.0, 3.0, 2.0, 4.0], "x": [0.0, 1.0, 0.0, 1.0], "group": ["a", "a", "b", "b"]}
    >>> design = Formula("y ~ x + C(group)", rows)
    >>> model = Regressor().fit(design)
    >>> model.summary().terms, model.coef_.round(6)
    (('x', 'C(group)[T.b]', 'intercept'), array([2., 1.]))
    >>> model.predict({"x": [2.0], "group": ["b"]}).round(6)
    array([6.])
    """

    def __init__(self, formula: str, frame: Any) -> None:
        if not isinstance(formula, str) or not formula.strip():
            raise SpecError(f'formula={formula!r} must be text, such as "y ~ x1 + C(group)".')
        formulaic, table = library(), _as_pandas(frame)
        with _as_data_errors(formula, table):
            self.formula = formula = _without_dot(formula, [str(name) for name in table.columns])
            parsed = formulaic.Formula(formula)
            sides = parsed if hasattr(parsed, "rhs") else None
            matrix = right_side(parsed).get_model_matrix(table, context={"np": np})
            target = None if sides is None else _target(parsed.lhs, table)
        self._spec = matrix.model_spec
        kept = np.zeros(len(table), dtype=bool)
        kept[np.asarray(matrix.index)] = True
        if target is not None:
            kept &= ~np.asarray(target.isna())
        self.kept: np.ndarray = np.flatnonzero(kept)
        if not len(self.kept):
            raise DataError(f"{formula!r} has no row without a missing value.")
        if len(self.kept) < len(table):
            first = int(np.flatnonzero(~kept)[0])
            warnings.warn(
                f"{len(table) - len(self.kept)} of {len(table)} rows have a missing value in {formula!r} (the first is "
                f"row {first}) and are left out.",
                LikelyWarning,
                stacklevel=3,
            )
        self.X: Any = _columns(matrix.loc[self.kept], formula)
        self.y: Any = None if target is None else target.loc[self.kept]
        self.rows = len(table)
        self.null: bool = list(matrix.columns) == ["Intercept"]
        """Whether its one column is the intercept."""
        self.intercept: bool = "Intercept" in matrix.columns and not self.null

    @property
    def terms(self) -> tuple[str, ...]:
        """The names of the columns of X."""
        return tuple(self.X.columns)

    def __iter__(self) -> Iterator[Any]:
        if self.y is None:
            raise DataError(f'{self.formula!r} has no target; write it before a tilde, as in "y ~ x".')
        yield self.X
        yield self.y

    def __call__(self, frame: Any) -> Any:
        """The columns of new rows, by the levels, knots and means of the first ones."""
        return encoded(self._spec, self.formula, frame)

    def __repr__(self) -> str:
        return f"Formula({self.formula!r}, {len(self.kept)} rows, {', '.join(self.terms)})"


def encoded(spec: Any, formula: str, frame: Any) -> Any:
    """The columns of new rows, by what formulaic learned from the first ones."""
    table = _as_pandas(frame)
    used = [name for name in table.columns if name in spec.required_variables]
    for name in used:
        if table[name].isna().any():
            raise DataError(
                f"{name!r} has no value at row {table[name].isna().argmax()}: fill it, or leave the row out."
            )
    with _as_data_errors(formula, table):
        matrix = spec.get_model_matrix(table, context={"np": np}, na_action="ignore")
    columns = _columns(matrix, formula)
    gaps = np.argwhere(~np.isfinite(columns.to_numpy(dtype=float)))
    if len(gaps):
        row, column = gaps[0]
        raise DataError(f"{columns.columns[column]!r} has no value at row {row}: fill it, or leave the row out.")
    return columns


def right_side(parsed: Any) -> Any:
    """The terms of the columns."""
    return parsed.rhs if hasattr(parsed, "rhs") else parsed


def library() -> Any:
    """The module formulaic, or an error that says how to get it."""
    try:
        import formulaic
    except ImportError as error:
        raise SpecError("Formulas need the library formulaic: pip install 'likely[formula]'.") from error
    return formulaic


def _as_pandas(frame: Any) -> Any:
    """A frame as formulaic reads it, whose rows are numbered; categories of pandas and an Enum keep their order."""
    import pandas

    from .frame import as_frame  # a library of tables, which a fit of plain rows does without

    table = as_frame(frame)
    return pandas.DataFrame({name: _as_plain(table[name]) for name in table.columns}, index=range(len(table)))


def _as_plain(series: Any) -> Any:
    """A column in a type of numpy, which formulaic knows to be numbers, or as categories."""
    import narwhals as nw
    import pandas

    from .columns import as_numbers

    native = series.to_native()
    if (
        series.dtype != nw.Duration
        and isinstance(native, pandas.Series)
        and (isinstance(native.dtype, np.dtype | pandas.CategoricalDtype))
    ):
        return native.array
    if series.dtype == nw.Date:
        return pandas.to_datetime(series.to_list())
    if series.dtype.is_decimal() or series.dtype == nw.Duration:  # durations in days
        return as_numbers(series)
    order = list(native.dtype.categories) if type(native.dtype).__name__ == "Enum" else None
    values = series.to_list()
    if order is not None:
        return pandas.Categorical(values, categories=order, ordered=True)
    gaps = series.is_null().to_list()
    return pandas.Series([None if gap else value for value, gap in zip(values, gaps, strict=True)]).array


def _target(side: Any, table: Any) -> Any:
    """The left side as a column: as it is where it is a name, so that labels stay labels."""
    import pandas

    name = str(side)
    if name in table.columns:
        return table[name]
    matrix = side.get_model_matrix(table, context={"np": np}, na_action="ignore")
    if not hasattr(matrix, "columns") or [c for c in matrix.columns if c != "Intercept"] != [matrix.columns[-1]]:
        raise DataError(f"The left side of a formula must be one target; {name!r} is not a single column.")
    return pandas.Series(np.asarray(matrix.iloc[:, -1], dtype=float), index=table.index, name=name)


def _without_dot(formula: str, names: Sequence[str]) -> str:
    """The formula with a dot on its right side written out: all columns that are not part of the target.

    >>> _without_dot("np.log(y) ~ .^2 - b", ["y", "a", "b", "the year"])
    'np.log(y) ~ (a + b + `the year`)^2 - b'
    """
    left, tilde, right = formula.rpartition("~")
    parts = re.split(r"""(`[^`]*`|'[^']*'|"[^"]*")""", right)  # what is quoted stays as it is
    if not any(DOT.search(part) for part in parts[::2]):
        return formula
    used = library().Formula(left).required_variables if left.strip() else set()
    others = [name if name.isidentifier() else f"`{name}`" for name in names if name not in used]
    if not others:
        raise DataError(f"formula={formula!r}: the dot is all columns besides the target, and the frame has no other.")
    parts[::2] = [DOT.sub(f"({' + '.join(others)})", part) for part in parts[::2]]
    return f"{left}{tilde}{''.join(parts)}"


def _columns(matrix: Any, formula: str) -> Any:
    import pandas

    columns = matrix.drop(columns="Intercept", errors="ignore")
    if not columns.shape[1] and not matrix.shape[1]:
        raise DataError(f"{formula!r} has no column and no intercept; there is nothing to learn.")
    if not columns.shape[1]:
        return pandas.DataFrame({"intercept": np.ones(len(matrix))})
    return pandas.DataFrame(np.asarray(columns, dtype=float), columns=[str(name) for name in columns.columns])


class _as_data_errors:
    """What formulaic cannot read, in words of the frame."""

    def __init__(self, formula: str, table: Any) -> None:
        self.formula, self.table = formula, table

    def __enter__(self) -> None:
        from formulaic.errors import DataMismatchWarning

        self._caught = warnings.catch_warnings()
        self._caught.__enter__()
        warnings.simplefilter("error", DataMismatchWarning)

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        from formulaic.errors import DataMismatchWarning, FormulaicError

        self._caught.__exit__(None, None, None)
        if isinstance(error, DataMismatchWarning):
            level = str(error).partition(": ")[2].partition(".")[0]
            raise DataError(f"The frame has a category that was not seen before: {level.strip('{}')}.") from error
        dates = [name for name in self.table.select_dtypes(["datetime", "datetimetz"]) if name in self.formula]
        if isinstance(error, TypeError) and dates:
            raise DataError(
                f"formula={self.formula!r} takes numbers and categories, and {', '.join(map(repr, dates))} "
                f"{verb(len(dates), 'holds dates', 'hold dates')}: make days of them first, or use TableModel."
            ) from error
        if isinstance(error, FormulaicError):
            offset = (
                " An offset is given to fit and predict: offset= or exposure=." if "offset(" in self.formula else ""
            )
            reason = " ".join(str(error).partition("\n")[0].split())
            known = ", ".join(map(repr, list(self.table.columns)[:10]))
            raise DataError(f"formula={self.formula!r}: {reason} Columns are {known}.{offset}") from error
