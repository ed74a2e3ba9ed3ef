"""Naive Bayes on sparse rows by their entries: what the zeros add is known without looking at them.

    log p(x | c) = Σⱼ log p(0 | ηcj) + Σ over entries [ log p(xⱼ | ηcj) − log p(0 | ηcj) ]
    Σᵢ wᵢ T(xᵢⱼ) = W T(0)            + Σ over entries w [ T(x) − T(0) ],       W the weight of all rows of the class

It is used for counts and labels, whose statistics are integers: sums lose no digits. (The variance of a column that is
nearly always 0 would lose all of them.) Time goes with the entries, not with rows × columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from scipy.sparse import csr_array
from torch import Tensor

from ...core.errors import DataError
from ...likelihoods import Likelihood
from ..emissions import Columns
from ..emissions.part import Part

__all__ = ["as_table", "by_entries", "check_columns", "emission_of", "log_prob_of", "moments_of", "rows_of", "sums_of"]


def emission_of(likelihood: Any, width: int, names: Sequence[str] | None, smoothing: float) -> Columns | None:
    """One likelihood of counts or labels for all columns; None where entries alone do not do.

    >>> from likely.likelihoods import Normal, Poisson
    >>> emission_of(Poisson(), 3, None, 0.0).width, emission_of(Normal(), 3, None, 0.0)
    (3, None)
    """
    known = likelihood.known_target() if isinstance(likelihood, Likelihood) and not likelihood.event_dim else None
    if known is None:
        return None
    shown = names if names is not None else range(width)
    labels = tuple(f"column {str(name)!r} of X" for name in shown) if width > 1 else ("X",)
    emission = Columns([Part(likelihood, slice(0, width), known, labels)], smoothing)
    return emission if by_entries(emission) else None


def by_entries(emission: Columns) -> bool:
    """Whether all columns have one likelihood, of counts or labels, with sufficient statistics."""
    first, *others = emission.parts
    if others or first.likelihood.event_dim or not first.likelihood.support.is_discrete:
        return False
    one = Part(first.likelihood, slice(0, 1), first.target, first.names[:1])
    return one.width() is not None


def as_table(X: Any) -> csr_array:
    """Sparse rows of real numbers; entries that are held twice add up as they do in a dense array."""
    if X.ndim != 2 or X.dtype.kind not in "biuf":
        raise DataError(f"X must be sparse rows (n, d) of real numbers; found shape {X.shape} of {X.dtype}.")
    if 0 in X.shape:
        raise DataError(f"X is empty: its shape is {X.shape}.")
    return csr_array(X)


def moments_of(X: csr_array) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The least, the largest and the mean number of each column, of those that are not missing.

    >>> [own.tolist() for own in moments_of(csr_array([[0.0, 3.0], [np.nan, 1.0]]))]
    [[0.0, 1.0], [0.0, 3.0], [0.0, 2.0]]
    """
    rows, width = csr_array(X, dtype=np.float64), X.shape[1]
    known = ~np.isnan(rows.data)
    gone = np.bincount(rows.indices[~known], minlength=width)
    total = np.bincount(rows.indices, np.where(known, rows.data, 0.0), width)
    ends = [own.toarray() if hasattr(own, "toarray") else own for own in (rows.nanmin(0), rows.nanmax(0))]
    least, most = (np.asarray(own, dtype=np.float64).ravel() for own in ends)
    return least, most, total / np.maximum(rows.shape[0] - gone, 1)


def rows_of(X: Any) -> csr_array | None:
    """The rows with each entry once, in float64; None where some are missing (NaN)."""
    rows = csr_array(X, dtype=np.float64)
    if not rows.has_canonical_format:
        rows = rows.copy()  # the caller's own stays as it is
        rows.sum_duplicates()
    return None if np.isnan(rows.data).any() else rows


def check_entries(emission: Columns, rows: csr_array) -> None:
    """Raise a `DataError` that names the column and row of an entry outside the support, or of a zero if 0 is."""
    (part,) = emission.parts
    values = torch.from_numpy(rows.data)
    if rows.nnz < rows.shape[0] * rows.shape[1]:
        part.likelihood.check(torch.zeros(1, dtype=torch.float64), "X is sparse and")
    try:
        part.likelihood.check(values)
    except DataError:
        first, last = 0, len(values)
        while last - first > 1:  # the first of them
            middle = (first + last) // 2
            first, last = (first, middle) if _bad(part.likelihood, values[first:middle]) else (middle, last)
        column = int(rows.indices[first])
        part.likelihood.check(torch.from_numpy(rows[:, [column]].toarray()[:, 0]), part.names[column])
        raise


def check_columns(likelihood: Any, X: csr_array) -> None:
    """Raise a `DataError` that names the column and row of a number outside the support of one likelihood of all."""
    if isinstance(likelihood, Likelihood) and not likelihood.event_dim:
        columns = X.tocsc()
        for place in range(X.shape[1]):
            likelihood.check(torch.from_numpy(columns[:, [place]].toarray()[:, 0]), f"column '{place}' of X")


def _bad(likelihood: Likelihood, values: Tensor) -> bool:
    try:
        likelihood.check(values)
    except DataError:
        return True
    return False


def sums_of(emission: Columns, rows: csr_array, index: np.ndarray, weight: np.ndarray, classes: int) -> dict[str, Any]:
    """Σ w and Σ w T(x) of each class and column, as `Columns.accumulate` gives them; sets the emission's origin."""
    (part,) = emission.parts
    check_entries(emission, rows)
    emission.origin = torch.from_numpy(np.asarray(rows.sum(0)) / rows.shape[0])  # of no matter to integers
    heavy = np.bincount(index, weight, classes)
    zero = part.likelihood.statistics(torch.zeros(1, rows.shape[1], dtype=torch.float64), emission.origin)
    column = torch.from_numpy(rows.indices.astype(np.int64))
    entry = part.likelihood.statistics(torch.from_numpy(rows.data)[None], emission.origin[column])
    assert zero is not None
    assert entry is not None  # `by_entries`
    counts = torch.from_numpy(heavy)
    sums = counts[:, None, None] * zero  # (classes, columns, m)
    owner = np.repeat(index, np.diff(rows.indptr))
    place = torch.from_numpy(owner * rows.shape[1] + rows.indices)
    moved = (entry[0] - zero[0, column]) * torch.from_numpy(np.repeat(weight, np.diff(rows.indptr)))[:, None]
    sums.flatten(0, 1).index_add_(0, place, moved)
    every = counts[:, None, None].expand(-1, rows.shape[1], 1)
    return {"rows": counts[None], "part0": torch.cat([every, sums], -1)[None]}


def log_prob_of(emission: Columns, eta: Tensor, rows: csr_array) -> Tensor:
    """log p(x | c) of each row and class, (n, classes), for η (classes, size)."""
    (part,) = emission.parts
    check_entries(emission, rows)
    own = part.split(eta)  # (classes, columns, numbers of one)
    zero = part.likelihood.log_prob(own, torch.zeros(rows.shape[1], dtype=torch.float64))  # (classes, columns)
    never = zero == -torch.inf  # classes in which a column is never 0
    finite = zero.masked_fill(never, 0.0)
    column, values = torch.from_numpy(rows.indices.astype(np.int64)), torch.from_numpy(rows.data)
    out = np.empty((rows.shape[0], len(own)))
    for place, (eta_c, zero_c) in enumerate(zip(own, finite, strict=True)):
        moved = part.likelihood.log_prob(eta_c[column], values) - zero_c[column]
        out[:, place] = _by_row(rows, moved) + float(zero_c.sum())
        if bool(never[place].any()):
            instead = _by_row(rows, never[place][column].double())
            out[instead < float(never[place].sum()), place] = -np.inf
    return torch.from_numpy(out)


def _by_row(rows: csr_array, values: Tensor) -> np.ndarray:
    """The sum over the entries of each row."""
    owner = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
    return np.bincount(owner, values.numpy(), rows.shape[0])
