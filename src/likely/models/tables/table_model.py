"""TableModel: a model whose X is a table. It holds the encoding of the columns and the model of the target.

p(target | row) = model( table(row) )
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any, Self

import narwhals as nw
import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.utils import Tags, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted
from torch import Tensor
from torch.distributions import Distribution

from ...core.errors import DataError, SpecError
from ...core.estimator import Estimator
from ...data.frame import as_frame, column_of
from ...data.reading import Reading
from ...data.table import Table
from ...data.target import beside_of, is_missing, labels_of, numbers_of, weights_of
from ...data.text_column import TextColumn
from ..labels import is_ordered, order_of
from ..supervised.coefficients import summarise
from ..supervised.linear_reports import LinearReports
from ..supervised.summary import Summary
from ..supervised.terms import Columns

__all__ = ["TableModel"]


class TableModel(Estimator):
    """A `Regressor`, `Classifier` or other model with `fit(X, y)`, on the rows of a table.

    Rows are pandas or polars frames, or dicts of columns, in any order of columns. Where scikit-learn's tools hand over
    the target apart from the rows, `y` takes its place.

    Parameters
    ----------
    model : what is fitted; it stays as it is.
    target : the column to predict. Training rows without a value there do not count; rows to predict need no such
        column.
    table : how columns become numbers: `Table(…)`, or `TextColumn(name)`, which gives the model the texts of a column.
    exposure : the column that says for how long, or among how many, the events of a row were counted.
    offset : the column that is added to η. Both are no features, and read again from the rows of every question.

    Learned: `table_`, the encoding of the training rows (`table_.describe()`), and `model_`, the fitted model.

    See also
    --------
    FrameModel : a model of the rows themselves. likely.formula : chosen terms of a frame. data.read_table : files.

    >>> from likely import Regressor
    >>> rows = {"area": [40, 60, 80, 90], "city": ["Oslo", "Voss", "Oslo", "Voss"], "price": [4.0, 3.0, 8.0, 6.0]}
    >>> model = TableModel(Regressor(), target="price").fit(rows)
    >>> model.predict({"area": [40, 60], "city": ["Oslo", "Voss"]}).round(2)
    array([4., 3.])
    >>> claims = {"age": [20, 30, 40, 50], "years": [1, 2, 1, 4], "claims": [3, 4, 1, 2]}
    >>> counts = TableModel(Regressor(likelihood="poisson"), target="claims", exposure="years").fit(claims)
    >>> (counts.predict({"age": [30], "years": [20]}) / counts.predict({"age": [30], "years": [2]})).round(6)
    array([10.])
    """

    reading_: Mapping[str, Any] = MappingProxyType({})
    """How the text of tables is read, where the command line learned from one that had to be told."""

    def __init__(
        self,
        model: Any,
        target: str,
        table: Table | TextColumn | None = None,
        offset: str | None = None,
        exposure: str | None = None,
    ) -> None:
        self.model = model
        self.target = target
        self.table = table
        self.offset = offset
        self.exposure = exposure

    # --- fitting ------------------------------------------------------------------------------------------------
    def fit(self, frame: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn the encoding and the model. `sample_weight` is an array, or the name of a column (then no feature)."""
        self._check_arguments()
        rows = as_frame(frame)
        target = self._target_series(rows, y)
        keep = ~is_missing(target)
        if keep.sum() < 2:
            known = f"{keep.sum()} of {len(keep)} rows" if len(keep) else "no row"
            raise DataError(f"Target column {self.target!r} has a value in {known}; at least 2 are needed.")
        weight = weights_of(rows, sample_weight)
        beside = self._beside(rows, keep)
        apart = [self.target, *([sample_weight] if isinstance(sample_weight, str) else []), *self._known.values()]
        features = rows.drop([name for name in apart if name in rows.columns])
        if not features.columns:
            raise DataError(
                f"The table has no column besides the target {self.target!r}; there is nothing to learn from."
            )
        self.table_ = clone(self.table) if self.table is not None else Table()
        X = self.table_.fit_transform(features if keep.all() else features.filter(keep.tolist()))
        self.model_ = clone(self.model)
        if isinstance(self.model_, LinearReports):
            self.model_.raw_columns_ = self._raw_columns()
        arguments = {} if weight is None else {"sample_weight": weight[keep]}
        with self._naming(keep):
            self.model_.fit(X, self._with_order(target, keep), **arguments, **beside)
        self._mirror()
        return self

    # --- questions ----------------------------------------------------------------------------------------------
    def predict(self, frame: Any) -> np.ndarray:
        """What the model answers for each row: the mean, or the most probable class."""
        return self.model_.predict(self._rows(frame), **self._beside(frame))

    def predict_dist(self, frame: Any) -> Distribution:
        """p(target | row, data) of each row."""
        return self.model_.predict_dist(self._rows(frame), **self._beside(frame))

    def predict_interval(self, frame: Any, level: float = 0.9) -> tuple[np.ndarray, np.ndarray]:
        """The central interval that holds the target with probability `level`: (lower, upper)."""
        return self.model_.predict_interval(self._rows(frame), level, **self._beside(frame))

    def predict_proba(self, frame: Any) -> np.ndarray:
        """The probability of each class, in the order of `classes_`."""
        if not hasattr(self.model, "predict_proba"):
            raise SpecError(f"{type(self.model).__name__} has no classes, so no predict_proba; use predict_dist.")
        return self.model_.predict_proba(self._rows(frame), **self._beside(frame))

    def sample(self, frame: Any, n: int = 1, random_state: Any = None) -> np.ndarray:
        """Draw n targets for each row from p(target | row, data): (n, rows)."""
        return self.model_.sample(self._rows(frame), n, random_state=random_state, **self._beside(frame))

    @property
    def log_prob_kind_(self) -> str:
        """Whether `log_prob` is "exact", a "bound" or an "estimate": as the model says."""
        return str(self.model.log_prob_kind_)

    @available_if(lambda own: callable(own.model.log_prob))
    def log_prob(self, frame: Any, y: Any = None) -> np.ndarray:
        """log p(target | row, data) of each row; a missing target counts 0."""
        X, values, keep = self._questions(frame, y)
        out = np.zeros(len(keep))
        with self._naming(keep):
            out[keep] = self.model_.log_prob(X, values, **self._beside(frame, keep))
        return out

    def score(self, frame: Any, y: Any = None, sample_weight: Any = None) -> float:
        """The model's score (R², or accuracy) over the rows that have a target."""
        X, values, keep = self._questions(frame, y)
        weight = weights_of(as_frame(frame), sample_weight)
        with self._naming(keep):
            weight = None if weight is None else weight[keep]
            return float(self.model_.score(X, values, weight, **self._beside(frame, keep)))

    def summary(
        self,
        frame: Any = None,
        y: Any = None,
        sample_weight: Any = None,
        *,
        errors: str = "model",
        clusters: Any = None,
        level: float = 0.95,
    ) -> Summary:
        """The table of a linear model in the units of the columns; see `Regressor.summary`.

        `frame` holds the rows of the fit. A category is told against its reference level, a date in days since the
        first one; the intercept (and cut points) are those of columns at 0, so that the terms add up to what the model
        predicts. `sample_weight` and `clusters` may be names of columns.
        """
        check_is_fitted(self, "table_")
        columns = self._raw_columns()
        if frame is None:
            return summarise(self.model_, None, None, None, errors, clusters, level, columns)
        X, values, keep = self._questions(frame, y)
        rows = as_frame(frame)
        weight = weights_of(rows, sample_weight)
        groups = column_of(rows, clusters).to_numpy() if isinstance(clusters, str) else clusters
        groups = None if groups is None else np.asarray(groups)[keep]
        weight = None if weight is None else weight[keep]
        with self._naming(keep):
            beside = self._beside(rows, keep)
            return summarise(self.model_, X, values, weight, errors, groups, level, columns, **beside)

    def _raw_columns(self) -> Columns | None:
        """How the columns of the table became numbers; None for texts."""
        if not isinstance(self.table_, Table):
            return None
        own = self.table_.columns_
        units, centres = (np.array([n for c in own for n in getattr(c, part)]) for part in ("units", "centres"))
        return Columns(self.table_.feature_names_, units, centres)

    def targets(self, frame: Any) -> np.ndarray:
        """The target column as the model takes it: numbers (missing ones are NaN) or labels (missing ones are None)."""
        target = self._target_series(as_frame(frame), None)
        keep = ~is_missing(target)
        values = self._values(target, keep)
        if keep.all():
            return values
        out = np.full(len(keep), None if is_classifier(self.model) else np.nan)
        out[keep] = values
        return out

    # --- the target ---------------------------------------------------------------------------------------------
    def _check_arguments(self) -> None:
        if not hasattr(self.model, "fit") or isinstance(self.model, type):
            raise SpecError(f"TableModel(model={self.model!r}): model must be a model such as Regressor().")
        if not isinstance(self.target, str):
            raise SpecError(f"TableModel(target={self.target!r}): target must be the name of a column.")
        if self.table is not None and not isinstance(self.table, Table | TextColumn):
            raise SpecError(f"TableModel(table={self.table!r}): table must be a Table(), a TextColumn() or None.")
        for role in ("offset", "exposure"):
            name = getattr(self, role)
            if name is not None and not isinstance(name, str):
                raise SpecError(f"TableModel({role}={name!r}): {role} must be the name of a column.")
            if name is not None and role not in inspect.signature(self.model.fit).parameters:
                raise SpecError(
                    f"TableModel({role}={name!r}): {type(self.model).__name__} takes none; Regressor and Classifier do."
                )
            if name is not None and name == self.target:
                raise SpecError(f"TableModel({role}={name!r}): that is the target; {role} is another column.")

    def _target_series(self, rows: nw.DataFrame[Any], y: Any) -> nw.Series[Any]:
        if y is None:
            return column_of(rows, self.target)
        given = column_of(as_frame({self.target: y}), self.target)
        if len(given) != len(rows):
            raise DataError(f"y has {len(given)} values and the table has {len(rows)} rows; they must agree.")
        return given

    def _values(self, target: nw.Series[Any], keep: np.ndarray) -> np.ndarray:
        return labels_of(target, keep) if is_classifier(self.model) else numbers_of(target, keep)

    def _with_order(self, target: nw.Series[Any], keep: np.ndarray) -> Any:
        """The values to fit, as a column that knows the order of its labels if the target is one."""
        ordered = is_ordered(getattr(self.model, "likelihood", None)) and order_of(target.to_native()) is not None
        return target.filter(keep.tolist()).to_native() if ordered else self._values(target, keep)

    def _questions(self, frame: Any, y: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        check_is_fitted(self, "table_")
        rows = as_frame(frame)
        target = self._target_series(rows, y)
        keep = ~is_missing(target)
        if not keep.any():
            raise DataError(f"Target column {self.target!r} has no value in any of the {len(keep)} rows.")
        return self._rows(rows)[keep], self._values(target, keep), keep

    @property
    def _known(self) -> dict[str, str]:
        """The columns that join η."""
        given = {"offset": self.offset, "exposure": self.exposure}
        return {role: name for role, name in given.items() if name is not None}

    def _beside(self, frame: Any, keep: np.ndarray | slice = slice(None)) -> dict[str, np.ndarray]:
        """Their numbers, in the rows to keep, as the model takes them."""
        if not self._known:
            return {}
        rows = as_frame(frame)
        return {role: beside_of(rows, name, role)[keep] for role, name in self._known.items()}  # type: ignore[arg-type]

    def _rows(self, frame: Any) -> np.ndarray:
        check_is_fitted(self, "table_")
        return self.table_.transform(frame)

    @contextmanager
    def _naming(self, keep: np.ndarray) -> Iterator[None]:
        """Errors of the model speak of y and of the rows it got; a person knows the column and the table's rows."""
        try:
            yield
        except DataError as error:
            rows = np.flatnonzero(keep)
            message = re.sub(r"^y\b", f"Target column {self.target!r}", str(error))
            message = re.sub(r"\brow (\d+)", lambda match: f"row {rows[int(match[1])]}", message)
            raise DataError(message) from error

    # --- scikit-learn and files ---------------------------------------------------------------------------------
    def _mirror(self) -> None:
        self.n_features_in_ = self.table_.n_features_in_
        self.feature_names_in_ = self.table_.feature_names_in_
        if hasattr(self.model_, "classes_"):
            self.classes_ = self.model_.classes_

    def __sklearn_tags__(self) -> Tags:
        tags, inner = super().__sklearn_tags__(), get_tags(self.model)
        tags.estimator_type = inner.estimator_type
        tags.classifier_tags, tags.regressor_tags = inner.classifier_tags, inner.regressor_tags
        return tags

    def _state(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        table, _ = self.table_._state()
        model, tensors = self.model_._state()
        return {"table": table, "model": model, **({"reading": self.reading_} if self.reading_ else {})}, tensors

    def _restore(self, learned: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
        self._check_arguments()
        self.table_ = clone(self.table) if self.table is not None else Table()
        self.table_._restore(learned["table"], {})
        self.reading_ = Reading.of(learned.get("reading", {})).given()
        self.model_ = clone(self.model)
        if isinstance(self.model_, LinearReports):
            self.model_.raw_columns_ = self._raw_columns()
        self.model_._restore(learned["model"], tensors)
        self._mirror()
