"""Naive Bayes of sparse rows: from their entries where these suffice, else a block of them dense at a time."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

from ...core import distributed
from ...core.errors import DataError, SpecError
from ...core.validation import as_weights
from ..emissions import Columns
from ..emissions.part import blocks
from ..labels import encode_labels, several_classes, shown
from . import sparse_columns
from .text_classes import TextClasses, counted

__all__ = ["BACKGROUND", "SparseClasses", "add_rows", "numbered", "some_of"]

BACKGROUND = 1e-9
"""The weight, in rows, with which each class also sees the rows of all others: no spread is 0."""
DENSE = 1 << 22
"""Numbers of sparse rows that become dense at a time."""


class SparseClasses(TextClasses):
    """What `NaiveBayes` does with sparse rows."""

    likelihood: Any

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        raise NotImplementedError

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        raise NotImplementedError

    def _rows(self, X: Any, *, reset: bool) -> Tensor:
        raise NotImplementedError

    def _emission(self, x: Tensor, weight: Tensor) -> Columns:
        raise NotImplementedError

    def _learned(self, x: Tensor | None = None) -> Columns:
        raise NotImplementedError

    def _conclude(self, emission: Columns, totals: dict[str, Tensor], before: np.ndarray | None = None) -> Self:
        raise NotImplementedError

    def _fit_sparse(self, X: Any, y: Any, sample_weight: Any) -> Self:
        """Learn from rows of which most numbers are 0: from their entries, or a block of them dense at a time."""
        X = sparse_columns.as_table(X)
        labels, missing = self._labels(y, X.shape[0])
        weight = counted(missing, as_weights(sample_weight, labels))
        entries = self._entries(X, reset=True)
        if entries is None and X.shape[0] * X.shape[1] <= DENSE:
            return self.fit(X.toarray(), y, sample_weight)
        self.classes_, self.form_ = several_classes(labels[~missing], "y"), "array"
        index = encode_labels(labels, missing, self.classes_)
        if entries is not None:
            return self._learn_entries(*entries, index, weight)
        try:
            return self._learn_blocks(X, index, weight)
        except DataError:
            sparse_columns.check_columns(self.likelihood, X)  # which names the row among all
            raise

    def _learn_blocks(self, X: Any, index: np.ndarray, weight: Tensor) -> Self:
        """Add up rows that become dense a few at a time; what is left to the data is told by all of them."""
        least, most, mean = sparse_columns.moments_of(X)
        emission = self._emission(self._rows(np.stack([least, most]), reset=True), torch.ones(2))
        self._refuse_without_sums(emission, "fit to a sparse X of this size", "give dense rows, X.toarray()")
        totals = emission.zeros(1, len(self.classes_))
        for rows in some_of(np.flatnonzero(weight), X.shape[1]):
            x = self._rows(X[rows].toarray(), reset=False)
            emission.check(x)
            emission.bind(x, weight[rows])
            emission.origin = torch.from_numpy(mean)
            add_rows(emission, own := emission.zeros(1, len(self.classes_)), x, numbered(index[rows]), weight[rows])
            totals = {name: total + own[name] for name, total in totals.items()}
        return self._conclude(emission, totals)

    def _entries(self, X: Any, *, reset: bool) -> tuple[Columns, Any] | None:
        """The emission of sparse rows and their entries, where these alone are looked at."""
        names = getattr(self, "feature_names_in_", None)
        if reset:
            emission = sparse_columns.emission_of(self.likelihood, X.shape[1], names, BACKGROUND)
        else:
            emission = self._learned() if sparse_columns.by_entries(self._learned()) else None
        rows = None if emission is None or 0 in X.shape else sparse_columns.rows_of(X)
        if emission is None or rows is None:
            return None
        self._rows(X[:1].toarray(), reset=reset)
        return emission, rows

    def _learn_entries(
        self, emission: Columns, rows: Any, index: np.ndarray, weight: Tensor, before: np.ndarray | None = None
    ) -> Self:
        own = numbered(index).numpy()
        totals = sparse_columns.sums_of(emission, rows, own, weight.numpy(), len(self.classes_))
        return self._conclude(emission, totals, before)

    def _partial_sparse(self, X: Any, y: Any, classes: Any, sample_weight: Any) -> Self:
        """Learn from more sparse rows."""
        first, X = not self.__sklearn_is_fitted__(), sparse_columns.as_table(X)
        labels, missing = self._labels(y, X.shape[0])
        weight = counted(missing, as_weights(sample_weight, labels))
        entries = self._entries(X, reset=first)
        if entries is None:
            for rows in some_of(np.arange(X.shape[0]), X.shape[1]):
                self.partial_fit(X[rows].toarray(), labels[rows], classes, weight[rows].numpy())
            return self
        self.classes_, self.form_ = self._known(classes, first), "array"
        index = encode_labels(labels, missing, self.classes_)
        return self._learn_entries(*entries, index, weight, None if first else self.totals_)

    def _known(self, classes: Any, first: bool) -> np.ndarray:
        """The classes of all calls of `partial_fit`."""
        known = self.classes_ if classes is None else several_classes(np.asarray(classes), "classes")
        if not first and not np.array_equal(known, self.classes_):
            raise DataError(f"classes has {shown(known)}, but the first call said {shown(self.classes_)}.")
        return known

    def _refuse_without_sums(self, emission: Columns, whose: str, remedy: str) -> None:
        for part in emission.parts:
            if part.width() is None:
                raise SpecError(
                    f"{whose} cannot add rows to {part.likelihood!r}, which has no sufficient statistics; {remedy}."
                )


def add_rows(emission: Columns, totals: dict[str, Tensor], x: Tensor, index: Tensor, weight: Tensor) -> None:
    """Add the rows' statistics, each row's to the sums of its class; each process takes its part of the rows."""
    classes = totals["rows"].shape[1]
    shard, step = distributed.shard(len(x)), len(blocks(x)[0])
    for start in range(shard.start, shard.stop, step):
        rows = slice(start, min(start + step, shard.stop))
        own = torch.zeros(rows.stop - start, classes, dtype=torch.float64)
        own.scatter_(1, index[rows].unsqueeze(-1), weight[rows].unsqueeze(-1))
        emission.accumulate(totals, None, x[rows], own.unsqueeze(1), rows)
    distributed.sum_(*totals.values())


def numbered(index: np.ndarray) -> Tensor:
    """The class of each row; any of those without a label, which have no weight."""
    return torch.from_numpy(np.nan_to_num(index)).long()


def some_of(rows: np.ndarray, width: int) -> list[np.ndarray]:
    """Rows in groups that may become dense."""
    step = max(1, DENSE // width)
    return [rows[start : start + step] for start in range(0, len(rows), step)]
