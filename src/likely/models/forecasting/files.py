"""A forecaster in a file: the series it goes on from, its units and lags, and what its engine learned."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.distributions import constraints

from ...core.declared import COUNT, COUNTS, FLAG, FORM, TEXTS, Value, check_values, one_of
from ...core.errors import ModelFileError
from ...core.spec import as_spec
from ...data.dates import CYCLES
from ...likelihoods import Likelihood
from .calendar import Calendar
from .engines import as_dynamics, restore_parts, state_of_parts
from .scale import TRANSFORMS, choose_transform
from .series import Series

__all__ = ["restore", "state_of"]

MOST, MOST_SEASON = 10**6, 10**4
"""Steps that a file may say to look back, or a season to have."""
VALUES = {
    "transform": one_of(*TRANSFORMS),
    "real": FLAG,
    "season": Value("a number of steps", lambda value: COUNT.holds(value) and 1 <= value <= MOST),
    "lags": Value("different lags above 0", lambda v: COUNTS.holds(v) and all(0 < lag <= MOST for lag in v)),
    "sequence": FLAG,
    "seed": COUNT,
    "cycles": Value("cycles of the calendar", lambda value: TEXTS.holds(value) and set(value) <= set(CYCLES)),
    "names": TEXTS,
    "channels": TEXTS,
    "listed": FLAG,
    "flat": FLAG,
    "form": FORM,
}


def state_of(model: Any) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """What a fitted forecaster learned: plain data, and tensors."""
    data: Series = model.series_
    learned, tensors = state_of_parts(model.parts_)
    learned |= {
        "transform": model.transform_,
        "real": model.real_,
        "season": int(model.season_),
        "lags": [int(lag) for lag in model.lags_],
        "sequence": bool(model.sequence_),
        "seed": int(model.seed_),
        "cycles": list(model.cycles_),
        "names": list(data.names),
        "channels": list(data.channels),
        "listed": data.listed,
        "flat": data.flat,
        "form": data.form,
        "calendar": data.calendar.to_json(),
        "starts": [float(s) if data.calendar.kind == "number" else str(np.datetime64(s, "us")) for s in data.starts],
    }
    tensors |= {
        "values": torch.from_numpy(np.concatenate(data.values)),
        "known": torch.from_numpy(np.ascontiguousarray(np.concatenate(data.known))),
        "lengths": torch.from_numpy(data.lengths.astype(np.int64)),
        "units": torch.from_numpy(np.stack([model.location_, model.scale_])),
    }
    return learned, tensors


def restore(model: Any, learned: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
    """The inverse of `state_of`; a `ModelFileError` for parts that do not fit each other."""
    check_values(VALUES, learned, "Forecaster")
    model.transform_, model.real_, model.season_ = learned["transform"], learned["real"], learned["season"]
    model.lags_, model.sequence_ = tuple(learned["lags"]), learned["sequence"]
    model.seed_, model.cycles_ = learned["seed"], tuple(learned["cycles"])
    if len(set(model.lags_)) < len(model.lags_) or (not model.lags_ and as_dynamics(model.network) is None):
        raise ModelFileError("The file has lags that are none.")
    model.series_ = _history(learned, tensors)
    model.n_features_in_ = channels = len(model.series_.channels)
    units = tensors["units"].numpy()
    if (
        units.shape != (2, channels)
        or units.dtype != np.float64
        or not np.isfinite(units).all()
        or (units[1] <= 0).any()
    ):
        raise ModelFileError("The file has units that are none.")
    model.location_, model.scale_ = units
    covariates = model.series_.known[0].shape[1]
    width: tuple[int, ...] = (len(model.lags_) + covariates * (model.horizon or 1),)
    if model.sequence_:
        width = (len(model.lags_), 1 + covariates)
    parts = {name: value for name, value in tensors.items() if name not in ("values", "known", "lengths", "units")}
    model.parts_ = restore_parts(model, learned, parts, width)
    _check_answer(model, covariates)


def _check_answer(model: Any, covariates: int) -> None:
    """Raise a `ModelFileError` unless the parts fit each other and lead to numbers."""
    every = np.concatenate([values.ravel() for values in model.series_.values])
    likelihood = as_spec(model.likelihood, Likelihood, "likelihood")
    if model.real_ != (likelihood.support is constraints.real) or model.season_ > MOST_SEASON:
        raise ModelFileError("The file does not fit its own specs: its likelihood or its season is another one.")
    choose_transform(model.transform_, every, model.real_)
    steps = min(3, model.horizon or 3)
    future = np.zeros((steps, covariates)) if model._columns().named else None
    answers = model.predict(steps, future=future), model.sample(2, steps=steps, random_state=0, future=future)
    if not all(np.isfinite(answer).all() for answer in answers):
        raise ModelFileError("The file does not fit its own specs: its forecast is not finite.")


def _history(learned: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> Series:
    values, known, lengths = (tensors[name].numpy() for name in ("values", "known", "lengths"))
    names, channels, starts = learned["names"], learned["channels"], learned["starts"]
    calendar = Calendar.from_json(learned["calendar"])
    sound = values.ndim == known.ndim == 2 and values.dtype == known.dtype == np.float64 and lengths.dtype == np.int64
    if not sound or lengths.shape != (len(names),) or not len(lengths) or lengths.min() < 1 or not channels:
        raise ModelFileError("The file has series that are none.")
    if lengths.sum() != len(values) or len(known) != len(values) or values.shape[1] != len(channels):
        raise ModelFileError("The file has series whose lengths or channels are not those of their values.")
    if (
        np.isinf(values).any()
        or not np.isfinite(known).all()
        or not isinstance(starts, list)
        or len(starts) != len(names)
    ):
        raise ModelFileError("The file has series with values or dates that are none.")
    flat, listed = learned["flat"], learned["listed"]
    if (flat and len(channels) > 1) or (not listed and len(names) > 1):
        raise ModelFileError("The file has series of another form than it says.")
    ends = np.cumsum(lengths)[:-1]
    begins = tuple(float(s) if calendar.kind == "number" else np.datetime64(str(s), "us") for s in starts)
    return Series(
        tuple(np.split(values, ends)),
        tuple(np.split(known, ends)),
        begins,
        tuple(names),
        tuple(channels),
        calendar,
        listed,
        flat,
        learned["form"],
    )
