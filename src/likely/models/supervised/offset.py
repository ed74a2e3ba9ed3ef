"""Offset and exposure at the door: what is known of each row beside x, and joins η.

η(x) + offset + log exposure      of each row, or of each position of its targets
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ...core.errors import DataError, SpecError
from ...data.rows import Inputs, Ragged, Rows
from ...inference.dataset import Dataset
from ...likelihoods import Likelihood
from ...likelihoods.offset import _WithOffset
from .sizes import positions_of
from .targets import is_coupled, offsets_of_targets

__all__ = ["offset_of", "part_of", "with_offset"]


def offset_of(model: Any, x: Inputs, offset: Any, exposure: Any, *, needed: bool) -> Tensor | None:
    """What joins η of each target, (entries, *positions, k) in float64; None where nothing does.

    It is `needed` where the model was fitted with one.
    """
    if offset is None and exposure is None:
        if needed:
            raise DataError(
                "The model was fitted with an offset or an exposure, and these rows have none: give offset= or "
                "exposure= here too, one number for each row or one for all (offset=0.0, exposure=1.0)."
            )
        return None
    _check_family(model, exposure)
    total: Any = 0.0
    if offset is not None:
        total = total + _entries(model, x, offset, "offset")
    if exposure is not None:
        times = _entries(model, x, exposure, "exposure")
        if bool((times <= 0).any()):
            row = int((times <= 0).reshape(len(times), -1).any(1).nonzero()[0])
            raise DataError(
                f"exposure has {float(times[row].min()):g} at entry {row}; it must be above 0: for how long, or among "
                "how many, the events of a row were counted."
            )
        total = total + times.log()
    return total


def with_offset(likelihood: Likelihood, data: Dataset, offset: Tensor | None) -> tuple[Likelihood, Dataset]:
    """The likelihood and the targets that a fit sees: y − offset where η is a place of y, else pairs (y, offset)."""
    if offset is None:
        return likelihood, data
    y = data.y.values if isinstance(data.y, Ragged) else data.y
    assert isinstance(y, Tensor)
    own = offset.to(y.device)
    if likelihood.link == "identity":
        y = y - (own if likelihood.event_dim else own.squeeze(-1)).to(y.dtype)
    else:
        likelihood, y = _WithOffset(likelihood), torch.cat([y.unsqueeze(-1).to(own), own], -1)
    return likelihood, replace(data, y=Ragged(y, data.y.offsets) if isinstance(data.y, Ragged) else y)


def part_of(offset: Tensor | None, entries: slice) -> Tensor | None:
    """The offsets of a block of rows."""
    return None if offset is None else offset[entries]


def _check_family(model: Any, exposure: Any) -> None:
    likelihood = model.likelihood_
    if is_coupled(model) or not likelihood.offsets(model.target_):
        raise SpecError(f"{likelihood!r} has no single number of η that an offset could join; fit its parts apart.")
    if exposure is not None and likelihood.link != "log":
        raise SpecError(
            "exposure= multiplies a mean exp(η), as Poisson, NegativeBinomial, ZeroInflated, Gamma, Exponential and "
            f"LogNormal have it; {likelihood!r} has none. Give offset=, which is added to η, or make the exposure a "
            "column of X."
        )


def _entries(model: Any, x: Inputs, given: Any, name: str) -> Tensor:
    """Numbers (entries, *positions, k) from one for all, one for each row, or one for each target (or number of η)."""
    width = model.likelihood_.offsets(model.target_)
    starts = offsets_of_targets(model, x)
    entries = len(x) if starts is None else int(starts[-1])
    known = positions_of(model, x)
    positions = model.positions_ if known is None else known
    whole = (entries, *positions, width)
    values = _numbers(given, name)
    if values.ndim == 0 and width == 1:
        return torch.full(whole, float(values), dtype=torch.float64)
    if starts is not None and isinstance(x, Rows) and len(values) == len(x) != entries:
        values = np.repeat(values, starts.diff().numpy(force=True), axis=0)
    if width == 1 and values.shape == (entries,):
        values = values.reshape(entries, *(1 for _ in positions))
    if width == 1 and values.ndim == 1 + len(positions):
        values = values[..., None]
    if values.shape[:1] != (entries,) or values.shape[-1:] != (width,) or values.ndim != len(whole):
        wanted = str(whole[:-1] if width == 1 else whole)
        raise DataError(
            f"{name} has shape {np.shape(given)}; {model.likelihood_!r} of {len(x)} rows needs {wanted}"
            + (", one number for each row." if whole[:-1] == (len(x),) and width == 1 else ".")
        )
    return torch.from_numpy(np.array(np.broadcast_to(values, whole)))


def _numbers(given: Any, name: str) -> np.ndarray:
    if isinstance(given, Tensor):
        given = given.detach().cpu().numpy()
    if isinstance(given, list | tuple) and given and np.ndim(given[0]) == 1:
        given = np.concatenate([np.asarray(part, dtype=np.float64) for part in given]) if _ragged(given) else given
    try:
        values = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"{name} has values that are not numbers; give one number for each row.") from error
    if not np.isfinite(values).all():
        place = int(np.argwhere(~np.isfinite(values.reshape(len(values) if values.ndim else 1, -1)).all(1))[0, 0])
        raise DataError(f"{name} has a value that is not a finite number at row {place}.")
    return values


def _ragged(parts: Any) -> bool:
    """Whether these are arrays of different lengths, of the positions of rows."""
    return len({len(part) for part in parts}) > 1
