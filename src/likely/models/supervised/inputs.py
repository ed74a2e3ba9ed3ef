"""What X may be: rows of a tensor, sequences or sets of any lengths, one graph or many. And y at their positions."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Any

import numpy as np
import torch
from scipy.sparse import csr_array, issparse
from torch import Tensor

from ...core.errors import DataError
from ...core.validation import as_rows, keep_columns
from ...data.graph import Graph, Graphs
from ...data.rows import Inputs, Ragged, Rows, offsets_from
from ...data.sparse_rows import SparseRows
from ...networks import Network
from .sizes import STEPS, check_channels, check_steps, grey_images
from .texts import network_of, text_rows

__all__ = ["KINDS", "answer_offsets", "flat_weights", "joined", "kind_of", "read_inputs", "rows_of_zeros", "two_rows"]

KINDS = {
    "tensor": "rows of one shape",
    "sequence": "sequences of different lengths",
    "graph": "graphs",
    "sparse row": "sparse rows",
}
REMEDIES = {"sparse row": " X.toarray() makes such.", "sequence": f" {STEPS}."}
"""What to say of rows of another kind than rows of one shape."""


def read_inputs(model: Any, X: Any, *, reset: bool) -> Inputs:
    """X as a tensor (n, …), or as `Rows`. Later X must be of the kind that the model was fitted on."""
    formula = None if reset else vars(model).get("formula_")
    X = grey_images(model, X if formula is None else formula.columns_of(X), reset=reset)
    rows = text_rows(model, X, reset=reset)
    rows = _as_kind(X) if rows is None else rows
    known = None if reset else model.kind_
    if reset:
        vars(model).pop("feature_names_in_", None)
    keep_columns(model, X, reset=reset)
    if rows is None and known == "tensor" and network_of(model).any_length:
        return _of_any_length(model, X)
    if rows is None and known == "tensor":
        check_channels(model, X)
        check_steps(model, X)
    if rows is None and known in (None, "tensor"):
        return as_rows(model, X, reset=reset)
    if rows is None:
        rows = _one_length(X) if known == "sequence" else _sparse(model, X) if known == "sparse row" else None
    kind = "tensor" if rows is None else kind_of(rows)
    if (kind, known) == ("sequence", "tensor") and network_of(model).any_length:
        known = kind
    if known not in (None, kind):
        remedy = REMEDIES.get(kind, "") if known == "tensor" else ""
        raise DataError(f"X has {KINDS[kind]}; the model was fitted on {KINDS[str(known)]}.{remedy}")
    assert rows is not None
    width = rows.shape[0] if not rows.positional else 1 if rows.features.ndim == 1 else rows.features.shape[1]
    if reset:
        model.n_features_in_ = width
    elif not rows.positional:
        check_width(width, model.in_shape_[0])
    elif rows.shape[1:] != tuple(model.in_shape_[1:]) or (kind == "graph" and rows.shape != tuple(model.in_shape_)):
        own = "node (and edge)" if kind == "graph" else "step"
        fitted = model.in_shape_ if kind == "graph" else model.in_shape_[1:]
        now = rows.shape if kind == "graph" else rows.shape[1:]
        raise DataError(f"X has features of shape {tuple(now)} at each {own}; the model was fitted on {tuple(fitted)}.")
    return rows


def _sparse(model: Any, X: Any) -> SparseRows | None:
    """Dense rows for a model that was fitted on sparse ones; None if they are no rows of numbers, or it takes texts."""
    if "vocabulary_" in model.__dict__:
        return None
    x = as_rows(copy(model), X, reset=True)  # which may name the model, and leaves it as it is
    return SparseRows.of(csr_array(x.numpy(force=True))) if x.ndim == 2 else None


def check_width(width: int, fitted: int) -> None:
    """Raise a `DataError` unless sparse rows have the columns that the model was fitted on."""
    if width != fitted:
        raise DataError(f"X has {width} columns; the model was fitted on {fitted}.")


def _of_any_length(model: Any, X: Any) -> Tensor:
    """Sequences of one length, which need not be that of the training sequences: a prompt is shorter."""
    x = as_rows(copy(model), X, reset=True)  # which may name the model, and leaves it as it is
    fitted = tuple(model.in_shape_)
    if x.ndim != 1 + len(fitted) or tuple(x.shape[2:]) != fitted[1:]:
        form = ", ".join(("n", "steps", *map(str, fitted[1:])))
        raise DataError(f"X has shape {tuple(x.shape)}; the model was fitted on sequences ({form}).")
    if not x.shape[1]:
        raise DataError(f"X has shape {tuple(x.shape)}: its sequences are empty, they have no steps; leave them out.")
    return x


def kind_of(x: Inputs) -> str:
    """ "tensor", "sequence" or "graph"."""
    return x.kind if isinstance(x, Rows) else "tensor"


def two_rows(x: Rows) -> Rows:
    """Two of them, with another number of positions than two if there are such: so answers for positions show.

    >>> two_rows(Ragged.of([torch.zeros(1), torch.zeros(1), torch.zeros(3)])).lengths
    tensor([1, 3])
    """
    telling = (x.lengths[1:] + x.lengths[0] != 2).nonzero().ravel()
    return x[torch.stack([torch.zeros_like(telling[0]), 1 + telling[0]])] if len(telling) else x[:2]


def rows_of_zeros(kind: str, in_shape: tuple[int, ...], steps: int = 3) -> Inputs:
    """Two rows to ask a network about: zeros of this shape, sequences of up to so many steps, or small graphs.

    >>> rows_of_zeros("tensor", (3,)).shape
    torch.Size([2, 3])
    """
    if kind == "tensor":
        return torch.zeros(2, *in_shape)
    if kind == "sequence":
        steps = min(in_shape[0], steps)
        return Ragged.of([torch.zeros(steps, *in_shape[1:]), torch.zeros(1, *in_shape[1:])])
    if kind == "sparse row":
        none = torch.zeros(0, dtype=torch.long)
        return SparseRows(torch.zeros(0), none, torch.zeros(3, dtype=torch.long), in_shape[0])
    edges = torch.tensor([[0], [1]])
    edge_features = torch.zeros(1, in_shape[1]) if len(in_shape) > 1 else None
    return Graphs.of([Graph(torch.zeros(2, in_shape[0]), edges, edge_features)] * 2)


def answer_offsets(network: Network, x: Rows) -> Tensor:
    """Where the answers of each row start, if the network answers at positions: at those of x, or at its own."""
    own = network.out_lengths(x.lengths)
    return x.offsets if own is None else offsets_from(own)


def joined(y: Any, x: Rows, offsets: Tensor) -> Any | None:
    """y of every position, one row after the other, if y has entries for them; None if it has one for each row.

    The network answers at positions that start at these offsets. y may also be `Ragged`.
    """
    if isinstance(y, Ragged):
        if len(y) != len(x):
            raise DataError(f"y has {len(y)} rows, but X has {len(x)}.")
        _check_lengths(y.lengths.tolist(), x, offsets)
        return y.values.numpy(force=True)
    if not x.listed and not _listed(y, 1):
        return y
    if not isinstance(y, list | tuple) and not (isinstance(y, np.ndarray) and y.dtype == object):
        return None
    if len(y) != len(x) or not all(_listed(part, None) for part in y):
        return None
    lengths = [len(part) for part in y]
    if len(set(lengths)) == 1 and offsets is x.offsets and lengths != offsets.diff().tolist():
        return None  # the same for all: several outputs of each row
    _check_lengths(lengths, x, offsets)
    filled = [np.asarray(part) for part in y if len(part)]  # an empty list is of no type
    return np.concatenate(filled) if filled else np.empty(0)


def _check_lengths(lengths: list[int], x: Rows, offsets: Tensor) -> None:
    """Raise a `DataError` that names the first row whose targets are not as many as the network's answers."""
    for i, (given, wanted) in enumerate(zip(lengths, offsets.diff().tolist(), strict=True)):
        if given == wanted:
            continue
        place = "nodes" if x.kind == "graph" else "steps"
        if offsets is x.offsets:
            raise DataError(
                f"y[{i}] has {given} entries, but {x.kind} {i} has {wanted} {place}. A network that answers at other "
                "positions says at how many by a method out_lengths(lengths)."
            )
        raise DataError(
            f"y[{i}] has {given} entries, but for the {int(x.lengths[i])} {place} of {x.kind} {i} the network answers "
            f"at {wanted} positions, as its out_lengths says: y[{i}] needs {wanted} entries."
        )


def flat_weights(sample_weight: Any, x: Rows, offsets: Tensor) -> Any:
    """The weight of each row at each of its targets; one graph may have a weight for each node."""
    try:
        given = np.asarray(sample_weight)
    except ValueError as error:
        raise DataError(
            f"sample_weight has entries of different lengths; it must have one number for each {x.kind}: ({len(x)},)."
        ) from error
    if not x.listed and given.shape == (int(offsets[-1]),):
        return given
    if given.shape != (len(x),):
        raise DataError(
            f"sample_weight has shape {given.shape}; it must have one number for each {x.kind}: ({len(x)},)."
        )
    return np.repeat(given, offsets.diff().numpy(force=True))


def _as_kind(X: Any) -> Rows | None:
    """Graphs, sequences or sparse rows, if that is what X is."""
    if isinstance(X, Rows):
        return X
    if isinstance(X, Graph):
        return Graphs.of([X], listed=False)
    if issparse(X):
        return SparseRows.of(X)
    if isinstance(X, np.ndarray) and X.dtype == object and X.ndim == 1:
        X = list(X)
    if not isinstance(X, list | tuple):
        return None
    if len(X) and any(isinstance(entry, Graph) for entry in X):
        strange = next((i for i, entry in enumerate(X) if not isinstance(entry, Graph)), None)
        if strange is not None:
            raise DataError(
                f"X[{strange}] is a {type(X[strange]).__name__}, and others are graphs; all must be graphs."
            )
        return Graphs.of(X)
    return Ragged.of(X) if _uneven(X) else None


def _uneven(X: Sequence[Any]) -> bool:
    """Whether these are arrays whose first axes differ, or some of which are empty."""
    if not all(_listed(entry, None) for entry in X):
        return False
    lengths = {len(entry) for entry in X}
    return len(lengths) > 1 or (lengths == {0} and any(getattr(entry, "ndim", 0) for entry in X))


def _listed(value: Any, length: int | None) -> bool:
    """Whether this is a list or an array with entries (of this number)."""
    if isinstance(value, str | bytes) or not hasattr(value, "__len__") or getattr(value, "ndim", 1) == 0:
        return False
    return length is None or len(value) == length


def _one_length(X: Any) -> Ragged | None:
    """A dense array of sequences as such, for a model of sequences of any length."""
    dense = X.detach() if isinstance(X, Tensor) else torch.from_numpy(np.array(X))
    if dense.ndim < 2:
        return None
    return Ragged.of(list(dense))
