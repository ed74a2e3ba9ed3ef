"""The targets of a supervised model at the door: one of each row or of each position, weights, and what is missing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ...core.errors import DataError
from ...core.validation import as_weights
from ...data.rows import Inputs, Ragged, Rows
from ...inference.dataset import Dataset
from ...likelihoods import Likelihood, Product
from ..labels import as_entries
from .inputs import answer_offsets, flat_weights, joined
from .sizes import is_at_each_step, positions_of
from .texts import network_of

__all__ = [
    "by_part",
    "check_targets",
    "dataset_of",
    "entries_of",
    "is_coupled",
    "offsets_of_targets",
    "placed",
    "rows_of",
    "weights_of",
    "weights_of_inputs",
    "without_gaps",
]


def entries_of(model: Any, y: Any, x: Inputs, *, reset: bool) -> tuple[Any, int, tuple[int, ...] | None]:
    """y with an entry for each row, or for each position of the answers, one row after the other; how many it needs.

    Then the positions of each entry, None if they are still to be seen.
    """
    rows = x if isinstance(x, Rows) and x.positional else None
    offsets = torch.empty(0) if rows is None else answer_offsets(network_of(model), rows)
    per_position = None if rows is None else joined(y, rows, offsets)
    if reset:
        model.per_position_ = per_position is not None
    elif (per_position is not None) != is_per_position(model, x):
        fitted = "each position" if is_per_position(model, x) else "each row"
        raise DataError(f"y has another form than in fit, where it had a target for {fitted} of X.")
    positions = None if reset else positions_of(model, x)
    return (y, len(x), positions) if per_position is None else (per_position, int(offsets[-1]), positions)


def is_per_position(model: Any, x: Inputs) -> bool:
    """Whether the targets of these rows come position by position, as rows differ in how many they have."""
    return isinstance(x, Rows) and (model.per_position_ or is_at_each_step(model))


def check_targets(model: Any, kind: str, shape: tuple[int, ...], positions: tuple[int, ...] | None) -> None:
    """Raise a `DataError` unless targets (or labels) of this shape stand at these positions; None is any as many."""
    fitted = (*model.positions_, *model.target_.shape)
    wanted = fitted if positions is None else (*positions, *model.target_.shape)
    if shape[1:] == wanted or (positions is None and len(shape) == 1 + len(fitted)):
        return
    if wanted == fitted or not positions:
        raise DataError(f"y has shape {shape}; the model was fitted on {kind} {rows_of(wanted)}.")
    given, rows = shape[1 : 1 + len(positions)], "images" if len(positions) > 1 else "rows"
    raise DataError(f"y has targets at {given} positions, but X has {rows} of {positions}; they must agree.")


def by_part(likelihood: Likelihood, y: Any) -> Any:
    """The columns of a frame or a dict, in the order of the parts of a `Product`; anything else as it is.

    Columns of a frame that have names of their own are in the order of the parts.

    >>> from likely.likelihoods import Normal, Poisson, Product
    >>> by_part(Product({"size": Normal(), "visits": Poisson()}), {"visits": [3, 4], "size": [0.5, 1.5]})
    array([[0.5, 3. ],
           [1.5, 4. ]])
    """
    if not isinstance(y, Mapping) and not hasattr(y, "columns"):
        return y
    parts = likelihood.parts if isinstance(likelihood, Product) else {}
    given = [str(name) for name in (y if isinstance(y, Mapping) else y.columns)]
    if sorted(given) == sorted(parts):
        if not isinstance(y, Mapping):
            return y[list(parts)]
        columns = [as_entries(y[name], dtype=np.float64) for name in parts]
        if len({len(column) for column in columns}) > 1:
            raise DataError(f"y has columns of different lengths: {', '.join(str(len(column)) for column in columns)}.")
        return np.column_stack(columns)
    if isinstance(y, Mapping) or (set(given) & set(parts) and not any(part.event_dim for part in parts.values())):
        needs = f"a column for each part, {', '.join(parts)}" if parts else "an array or one column"
        raise DataError(f"y has the columns {', '.join(given)}; {type(likelihood).__name__} needs {needs}.")
    return y


def is_coupled(model: Any) -> bool:
    """Whether the likelihood couples the targets of a row, which stand in a sequence.

    Raises a `DataError` where they have no order, or more than one.
    """
    if not model.likelihood_.coupling(model.target_) or not (model.per_position_ or model.positions_):
        return False
    if model.kind_ == "graph" or len(model.positions_) > 1:
        places = "nodes of a graph" if model.kind_ == "graph" else f"positions {model.positions_}"
        raise DataError(
            f"{model.likelihood_!r} couples labels that follow one another; {places} do not: use Categorical."
        )
    return True


def offsets_of_targets(model: Any, x: Inputs) -> Tensor | None:
    """Where the targets of each row start, (n + 1,); None where a row has one, or as many as every other."""
    if not isinstance(x, Rows) or not is_per_position(model, x):
        return None
    return answer_offsets(network_of(model), x)


def weights_of(sample_weight: Any, x: Inputs, offsets: Tensor | None, positions: tuple[int, ...] = ()) -> Tensor | None:
    """The weight of each row (n,), or of each of its targets: where those start at offsets, or (n, *positions)."""
    if positions and isinstance(x, Tensor) and np.ndim(sample_weight) > 1:
        return _at_positions(sample_weight, x, positions)
    if sample_weight is None or offsets is None or not isinstance(x, Rows):
        return as_weights(sample_weight, x)
    return as_weights(flat_weights(sample_weight, x, offsets), torch.empty(int(offsets[-1])))


def _at_positions(sample_weight: Any, x: Tensor, positions: tuple[int, ...]) -> Tensor:
    given = sample_weight.detach().cpu() if isinstance(sample_weight, Tensor) else np.array(sample_weight)
    weight = torch.as_tensor(given).double()
    if weight.ndim != 1 + len(positions) or len(weight) != len(x):
        raise DataError(
            f"sample_weight has shape {tuple(weight.shape)}; it needs a number for each row ({len(x)},), or for each "
            f"target {(len(x), *positions)}."
        )
    if not bool(weight.isfinite().all()) or bool((weight < 0).any()) or not bool(weight.any()):
        raise DataError("sample_weight must hold finite numbers, 0 or more, and not 0 alone.")
    return weight


def weights_of_inputs(data: Dataset, weight: Tensor | None) -> Tensor | None:
    """How much the features of each row count, or of each position that has a target: not at all without one.

    `weight` has a number for each row or target. Where targets are not at the positions of x, a row counts if one of
    them does.
    """
    if isinstance(data.y, Ragged) and isinstance(data.x, Rows) and data.y.offsets is not data.x.offsets:
        if not isinstance(data.weight, Ragged):
            return None
        return torch.zeros(len(data)).double().scatter_reduce(0, data.weight.owner, data.weight.values, "amax")
    if isinstance(data.weight, Tensor):
        counted = data.weight.reshape(len(data), -1).any(1).double()
        return counted if weight is None else weight.reshape(len(data), -1).amax(1) * counted
    return weight


def dataset_of(
    likelihood: Likelihood,
    x: Inputs,
    y: Tensor,
    weight: Tensor | None,
    dtype: torch.dtype,
    offsets: Tensor | None,
    *,
    whole: bool = False,
) -> Dataset:
    """Rows, targets and weights; a missing target has weight 0, and at least one has to count.

    `offsets` say where the targets of each row start, if there may be several. Those of `whole` rows are coupled: what
    is missing stays NaN, and weights are of rows.
    """
    positions = tuple(y.shape[1 : y.ndim - likelihood.event_dim])
    given, (y, missing) = y, without_gaps(likelihood, y)
    if bool(missing.all()):
        raise DataError("y has no target at all: every one is missing (NaN, or missing_label).")
    if whole:
        return Dataset(x, given if offsets is None else Ragged(given, offsets), weight, dtype, positions, whole=True)
    if weight is not None and weight.ndim == 1:
        weight = weight.reshape(-1, *(1 for _ in positions)).expand(-1, *positions)
    if weight is not None and tuple(weight.shape[1:]) != positions:
        raise DataError(f"sample_weight has shape {tuple(weight.shape)}; y has targets at positions {positions}.")
    if bool(missing.any()):
        weight = torch.where(missing, 0.0, 1.0 if weight is None else weight).double()
    if weight is not None and not bool(weight.any()):
        raise DataError("No target has weight: rows with sample_weight above 0 have no label.")
    if offsets is None:
        return Dataset(x, y, weight, dtype, positions)
    weights = None if weight is None else Ragged(weight, offsets)
    return Dataset(x, Ragged(y, offsets), weights, dtype, positions)


def without_gaps(likelihood: Likelihood, y: Tensor) -> tuple[Tensor, Tensor]:
    """y with values inside the support where it is missing, and where that is (without the axes of one target).

    >>> from likely.likelihoods import Poisson
    >>> without_gaps(Poisson(), torch.tensor([3.0, torch.nan]))
    (tensor([3., 1.]), tensor([False,  True]))
    """
    missing = likelihood.missing(y)
    if not bool(missing.any()):
        return y, missing
    gap = missing.reshape(*missing.shape, *(1 for _ in range(likelihood.event_dim)))
    return torch.where(gap, likelihood.placeholder(y), y), missing


def placed(data: Dataset, dtype: torch.dtype, device: torch.device, integer: bool) -> Dataset:
    """On the device of the fit; y and weights, which are small, in its dtype."""
    y, weight = (None if part is None else part.to(device, dtype) for part in (data.y, data.weight))
    x = data.x.to(device)
    if isinstance(x, Rows) and not integer:
        x = x.to(dtype)  # once, since graphs keep what is made of them
    return Dataset(x, y, weight, dtype, data.positions, integer=integer, whole=data.whole)


def rows_of(shape: tuple[int, ...]) -> str:
    """How an array with one entry of this shape per row is written.

    >>> rows_of(()), rows_of((3, 4))
    ('(n,)', '(n, 3, 4)')
    """
    return f"(n, {', '.join(map(str, shape))})" if shape else "(n,)"
