"""Rows of another size than those of the fit, where the network allows: what may change, and what may not.

A network of convolutions whose end is a mean over positions, or an answer for each of them, is the same at any size; a
network over steps at any length. Where it answers at each position, so many targets there are.
"""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
from torch import Tensor

from ...core.errors import DataError, LikelyWarning
from ...data.rows import Inputs, Rows
from .texts import network_of

__all__ = [
    "any_size",
    "check_channels",
    "check_shape",
    "check_steps",
    "grey_images",
    "is_at_each_step",
    "positions_of",
    "times_larger",
]

ANY = "ConvNet(pool='mean'), ResNet and UNet answer for images of any size"
SERIES = "ConvNet(pool='mean'), ResNet and UNet answer for series of any length"
STEPS = "RNN, GRU, LSTM, LRU, Transformer and DeepSets answer for sequences of any length"


SIDE = 8
"""Pixels of an image along a side, at least, for a square to be taken as one."""


def grey_images(model: Any, X: Any, *, reset: bool) -> Any:
    """(n, h, w) as (n, 1, h, w): for a model of grey images, and in its fit squares for a network of convolutions.

    A word says so, since (n, channels, steps) are series.
    """
    if not isinstance(X, np.ndarray | Tensor) or X.ndim != 3:
        return X
    if not reset:
        return X[:, None] if len(model.in_shape_) == 3 and model.in_shape_[0] == 1 else X
    height, width = X.shape[1:]
    if height != width or height < SIDE or network_of(model).features_at((height, width))[1] != 0:
        return X
    warnings.warn(
        f"X has shape (n, {height}, {width}): taken as grey images (n, 1, {height}, {width}). If they are "
        "series of as many channels as steps, give them a step more or less.",
        LikelyWarning,
        stacklevel=4,
    )
    return X[:, None]


def any_size(model: Any) -> bool:
    """Whether a fitted model answers for images or series of other sizes."""
    plan = model.plan_
    return bool(network_of(model).any_size) and len(model.in_shape_) > 1 and not plan.positions and not plan.flatten


def check_channels(model: Any, X: Any) -> None:
    """Raise a `DataError` for images with other channels than those of the fit, such as colour where grey was."""
    shape: tuple[int, ...] = tuple(getattr(X, "shape", ()))
    fitted = model.in_shape_
    if len(fitted) != 3 or len(shape) != 4 or shape[1] == fitted[0] or 0 in shape:
        return
    kinds = {1: "grey", 3: "colour"}
    given, known = (f"{count} channel{'s' * (count != 1)}" for count in (shape[1], fitted[0]))
    if {shape[1], fitted[0]} == {1, 3}:
        wanted = {1: "grey", 3: "rgb"}[fitted[0]]
        raise DataError(
            f"X has {kinds[shape[1]]} images ({given}); the model was fitted on {kinds[fitted[0]]} ones ({known}): "
            f"likely.data.read_images(…, colour={wanted!r}) reads them so."
        )
    raise DataError(f"X has images of {given}; the model was fitted on {known}: (n, {', '.join(map(str, fitted))}).")


def check_steps(model: Any, X: Any) -> None:
    """Raise a `DataError` for sequences of another length than in the fit, for a network that takes that one."""
    given, fitted = tuple(getattr(X, "shape", ()))[1:], model.in_shape_
    network = network_of(model)
    if len(fitted) != 2 or given[1:] != fitted[1:] or given[0] in (0, fitted[0]) or not network.features_at(fitted)[1]:
        return
    raise DataError(
        f"X has sequences of {given[0]} steps; the model was fitted on {fitted[0]}, and {network!r} answers for that "
        f"length alone; {STEPS}."
    )


def check_shape(model: Any, x: Inputs) -> None:
    """Raise a `DataError` for rows of another shape than those of the fit, unless the network answers for any size."""
    network = network_of(model)
    if not isinstance(x, Tensor) or tuple(x.shape[1:]) == model.in_shape_ or network.any_length:
        return
    given, fitted = tuple(x.shape[1:]), model.in_shape_
    same = len(given) == len(fitted) and given[:1] == fitted[:1]
    if any_size(model) and same:
        return
    series = len(fitted) == 2 and network.features_at(fitted)[1] == 0
    others = ANY if len(fitted) == 3 else SERIES if series else ""
    more = f", and {network!r} answers for that size alone; {others}" if same and others else ""
    raise DataError(f"X has rows of shape {given}; the model was fitted on {fitted}{more}.")


def is_at_each_step(model: Any) -> bool:
    """Whether a model of rows of one length has a target at each step of theirs, and answers at each of any number."""
    if model.kind_ != "tensor" or model.positions_ != model.in_shape_[:1]:
        return False
    return not model.plan_.positions and network_of(model).any_length


def positions_of(model: Any, x: Inputs) -> tuple[int, ...] | None:
    """Where the targets of each of these rows stand, (*positions): as in the fit, unless rows have another size.

    () where targets come one row after the other. None if only the network knows.
    """
    known: tuple[int, ...] = model.positions_
    if not known or (isinstance(x, Tensor) and tuple(x.shape[1:]) == model.in_shape_):
        return known
    if is_at_each_step(model):
        return () if isinstance(x, Rows) else tuple(x.shape[1:2])
    if isinstance(x, Tensor) and any_size(model):
        return tuple(x.shape[2:]) if known == model.in_shape_[1:] else None
    return known


def times_larger(model: Any, x: Inputs) -> float:
    """How many times as large a row is as those of the fit."""
    if not isinstance(x, Tensor) or tuple(x.shape[1:]) == model.in_shape_:
        return 1.0
    return max(1.0, math.prod(x.shape[1:]) / max(1, math.prod(model.in_shape_)))
