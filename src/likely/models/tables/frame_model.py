"""FrameModel: a model of the rows of a table themselves; no column is a target.

p(row) = model( columns of the row ),   rows of one sequence in the order of the table
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from inspect import signature
from types import MappingProxyType
from typing import Any, Self

import narwhals as nw
import numpy as np
import polars as pl
from sklearn.base import clone
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from ...core.draws import Form, count_of, form_of
from ...core.errors import DataError, ModelFileError, SpecError
from ...core.estimator import Estimator
from ...data.coded import Coded, coded_from_json, table_of
from ...data.columns import as_text
from ...data.frame import as_frame, column_of
from ...data.notes import together
from ...data.reading import Reading
from ...likelihoods import Bernoulli, Categorical, Likelihood
from ..generative.rows import RowForm

__all__ = ["FrameModel"]


class FrameModel(Estimator):
    """A `Mixture`, `HiddenMarkov`, `KMeans`, `PCA`, … on the rows of a table.

    Numbers are taken as they are, text as codes 0, 1, … in the order of the alphabet: where the model has one
    likelihood for all columns, text gets `Categorical()` and booleans get `Bernoulli()` instead. Gaps are missing
    values. `sequence` names the column that says to which sequence a row belongs; without it, all rows are one.

    >>> from likely import Mixture
    >>> from likely.likelihoods import Normal
    >>> rows = {"size": [1.0, 1.2, 9.0, 9.3], "colour": ["red", "red", "blue", "blue"]}
    >>> model = FrameModel(Mixture(Normal(), n_components=2, random_state=0)).fit(rows)
    >>> first, second, third, fourth = model.predict(rows)
    >>> bool(first == second != third == fourth)
    True
    """

    form_: Form
    reading_: Mapping[str, Any] = MappingProxyType({})
    """How the text of tables is read, where the command line learned from one that had to be told."""

    def __init__(self, model: Any, columns: Sequence[str] | None = None, sequence: str | None = None) -> None:
        self.model = model
        self.columns = columns
        self.sequence = sequence

    # --- fitting ------------------------------------------------------------------------------------------------
    def fit(self, frame: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn how columns are coded, and the model of the rows; a weight for each row, or for each sequence."""
        if not hasattr(self.model, "fit") or isinstance(self.model, type):
            raise SpecError(f"FrameModel(model={self.model!r}): model must be a model such as Mixture(Normal(), 3).")
        rows, self.form_ = as_frame(frame), "pandas" if form_of(frame) == "pandas" else "polars"
        if isinstance(self.columns, str):
            raise SpecError(f"FrameModel(columns={self.columns!r}): columns must be a list of column names.")
        names = list(self.columns) if self.columns is not None else [n for n in rows.columns if n != self.sequence]
        if not names or not len(rows):
            raise DataError("The table has no rows or no column to learn from besides those left out.")
        with together():
            self.coded_ = [Coded.of(column_of(rows, name)) for name in names]
        self._name()
        self.model_ = self._suited()
        weight = {} if sample_weight is None else {"sample_weight": sample_weight}
        self.model_.fit(self._rows(rows), **weight)
        return self

    def _suited(self) -> Any:
        """The model, with likelihoods of labels for text and booleans where it has one likelihood for all columns."""
        model = clone(self.model)
        if self._whole:
            return model
        text = [column.kind == "category" for column in self.coded_]
        given = getattr(model, "likelihood", None)
        if isinstance(given, Likelihood) and not given.event_dim and not given.labels:
            own = {"category": lambda c: Categorical(len(c.levels)), "boolean": lambda c: Bernoulli()}
            likelihoods = [own.get(column.kind, lambda c: given)(column) for column in self.coded_]
            return model if set(likelihoods) == {given} else model.set_params(likelihood=likelihoods)
        if any(text) and given is None:
            name = self.coded_[text.index(True)].name
            raise DataError(
                f"Column {name!r} is text, and {type(model).__name__} takes numbers; leave it out "
                "(FrameModel(columns=…), or --ignore on the command line)."
            )
        return model

    # --- questions ----------------------------------------------------------------------------------------------
    def predict(self, frame: Any) -> np.ndarray:
        """What the model says of each row: its component, cluster or state, in the order of the table."""
        return self._in_order(frame, self.model_.predict)

    def predict_proba(self, frame: Any) -> np.ndarray:
        """The probability of each component or state, (n, k)."""
        return self._in_order(frame, self.model_.predict_proba)

    def transform(self, frame: Any) -> np.ndarray:
        """The latent code of each row."""
        return self._in_order(frame, self.model_.transform)

    def decode(self, frame: Any, method: str = "viterbi") -> np.ndarray:
        """The hidden state of each row, in the order of the table."""
        if not hasattr(self.model, "decode"):
            raise DataError(f"{type(self.model).__name__} has no hidden states to decode; HiddenMarkov has.")
        return self._in_order(frame, lambda rows: self.model_.decode(rows, method=method))

    @property
    def log_prob_kind_(self) -> str:
        """Whether `log_prob` is "exact", a "bound" or an "estimate": as the model says."""
        return str(self.__dict__.get("model_", self.model).log_prob_kind_)

    @available_if(lambda own: callable(own.model.log_prob))
    def log_prob(self, frame: Any) -> np.ndarray:
        """log p of each row, or of each sequence."""
        check_is_fitted(self, "model_")
        return np.atleast_1d(self.model_.log_prob(self._rows(as_frame(frame))))

    def score(self, frame: Any, y: Any = None, sample_weight: Any = None) -> float:
        """The model's own score of the rows."""
        check_is_fitted(self, "model_")
        weight = {} if sample_weight is None else {"sample_weight": sample_weight}
        return float(self.model_.score(self._rows(as_frame(frame)), **weight))

    def impute(self, frame: Any, draws: int | None = None, random_state: Any = None) -> Any:
        """The columns of the model, as a table of the kind that was fitted, with gaps filled in by the model.

        With `draws`, a list of so many tables, whose gaps are filled by draws given what is known.
        """
        check_is_fitted(self, "model_")
        if self._whole:
            return self.model_.impute(self._rows(as_frame(frame)), draws=draws, random_state=random_state)
        if draws is None:
            rows = as_frame(frame)
            gaps = np.column_stack([np.isnan(c.encode(column_of(rows, c.name, "The table"))) for c in self.coded_])
            return table_of(self.coded_, self._in_order(frame, self.model_.impute), self.form_, gaps)

        def ask(rows: Any) -> Any:
            several = self.model_.impute(rows, draws=draws, random_state=random_state)
            return [np.moveaxis(part, 0, 1) for part in several] if self._sequential else np.moveaxis(several, 0, 1)

        return [self._table(values) for values in np.moveaxis(self._in_order(frame, ask), 1, 0)]

    def _table(self, values: np.ndarray) -> Any:
        return table_of(self.coded_, values, self.form_)

    def sample(
        self, n: int = 1, condition: Any = None, random_state: Any = None, *, return_hidden: bool = False
    ) -> Any:
        """n new rows (of one sequence, if the model is of sequences) as a table of the kind that was fitted.

        `condition` fixes some columns: a dict or a table of their values, of 1 row or n. With `return_hidden`, a column
        more says which component or state each row came from.
        """
        check_is_fitted(self, "model_")
        if not hasattr(self.model_, "sample"):
            raise DataError(f"{type(self.model_).__name__} cannot make new rows.")
        count = count_of(n)
        if self._whole:
            return self.model_.sample(count, condition, random_state)
        steps = {"n": 1, "length": count} if self._sequential else {"n": count}
        if condition is not None:
            steps["condition"] = self._fixed(condition, count)
        rows, hidden = self.model_.sample(**steps, random_state=random_state, return_hidden=True)
        values = np.asarray(rows).reshape(count, len(self.coded_))
        table = self._table(values)
        if not return_hidden or np.size(hidden) != count:
            return table
        own = np.ravel(hidden)
        return (
            table.assign(**{self.hidden_name: own})
            if self.form_ == "pandas"
            else table.with_columns(pl.Series(self.hidden_name, own))
        )

    def _fixed(self, condition: Any, count: int) -> Any:
        """Rows that are NaN where the model is to choose."""
        if self._sequential or "condition" not in signature(self.model_.sample).parameters:
            raise DataError(f"{type(self.model_).__name__} cannot hold some columns of new rows and draw the rest.")
        return RowForm("polars", (len(self.coded_),), tuple(self.coded_)).fixed(condition, count).numpy()

    @property
    def hidden_name(self) -> str:
        """The column that says what is hidden: the state of a sequence, the component of a mixture."""
        name = "state" if self._sequential else "component"
        return name if name not in {column.name for column in self.coded_} else f"hidden_{name}"

    # --- rows ---------------------------------------------------------------------------------------------------
    @property
    def _sequential(self) -> bool:
        return any(hasattr(self.model, verb) for verb in ("decode", "smooth"))

    @property
    def _whole(self) -> bool:
        """Whether the model takes tables itself, text and all."""
        return bool(getattr(self.model, "takes_tables", False))

    def _rows(self, rows: nw.DataFrame[Any]) -> Any:
        if self._whole:
            own = rows.select([column_of(rows, column.name, "The table").name for column in self.coded_]).to_native()
            return own if form_of(own) != "array" else pl.DataFrame({c: _listed(rows[c]) for c in rows.columns})
        columns = [column.encode(column_of(rows, column.name, "The table")) for column in self.coded_]
        values = np.column_stack(columns)
        if not self._sequential:
            return values
        return [values[index] for index in self._order(rows)]

    def _order(self, rows: nw.DataFrame[Any]) -> list[np.ndarray]:
        """The row numbers of each sequence, in the order in which they first appear."""
        if self.sequence is None:
            return [np.arange(len(rows))]
        names = as_text(column_of(rows, self.sequence, "The table")).to_list()
        if None in names:
            raise DataError(
                f"Column {self.sequence!r} names the sequence of each row; row {names.index(None)} has none."
            )
        rows_of: dict[str, list[int]] = {}
        for row, name in enumerate(names):
            rows_of.setdefault(name, []).append(row)
        return [np.array(index) for index in rows_of.values()]

    def _in_order(self, frame: Any, ask: Any) -> np.ndarray:
        """Answers for each row of the table, also where the model answers sequence by sequence."""
        check_is_fitted(self, "model_")
        rows = as_frame(frame)
        answer = ask(self._rows(rows))
        if not self._sequential:
            return np.asarray(answer)
        pieces = [np.asarray(piece) for piece in answer]
        out = np.empty((len(rows), *pieces[0].shape[1:]), dtype=pieces[0].dtype)
        for index, piece in zip(self._order(rows), pieces, strict=True):
            out[index] = piece
        return out

    # --- scikit-learn and files ---------------------------------------------------------------------------------
    def _name(self) -> None:
        self.n_features_in_ = len(self.coded_)
        self.feature_names_in_ = np.asarray([column.name for column in self.coded_], dtype=object)

    def __sklearn_is_fitted__(self) -> bool:
        return "model_" in self.__dict__

    def _state(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        model, tensors = self.model_._state()
        learned = {"coded": [column.to_json() for column in self.coded_], "form": self.form_, "model": model}
        return learned | ({"reading": self.reading_} if self.reading_ else {}), tensors

    def _restore(self, learned: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
        self.coded_ = list(coded_from_json(learned["coded"]))
        if learned["form"] not in ("pandas", "polars"):
            raise ModelFileError(f"The file has a table of an unknown kind {learned['form']!r}.")
        self.form_ = learned["form"]
        self.reading_ = Reading.of(learned.get("reading", {})).given()
        self._name()
        self.model_ = self._suited()
        self.model_._restore(learned["model"], tensors)
        if getattr(self.model_, "n_features_in_", len(self.coded_)) != len(self.coded_):
            raise ModelFileError(f"The file has {len(self.coded_)} columns for a model of other rows.")


def _listed(series: nw.Series[Any]) -> list[Any]:
    """The values of a column, None where there is a gap."""
    gaps = series.is_null().to_list()
    return [None if gap else value for value, gap in zip(series.to_list(), gaps, strict=True)]
