"""Images and series of another size than those of the fit, where the network allows: what may change, and what may not.

A network of convolutions whose end is a mean over positions, or an answer for each of them, is the same at any size.
"""

from __future__ import annotations

import math
from typing import Any

from torch import Tensor

from ...core.errors import DataError
from ...data.rows import Inputs
from .texts import network_of

__all__ = ["any_size", "check_channels", "check_positions", "check_shape", "times_larger"]

ANY = "ConvNet(pool='mean'), ResNet and UNet answer for images of any size"


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


def check_shape(model: Any, x: Inputs) -> None:
    """Raise a `DataError` for rows of another shape than those of the fit, unless the network answers for any size."""
    network = network_of(model)
    if not isinstance(x, Tensor) or tuple(x.shape[1:]) == model.in_shape_ or network.any_length:
        return
    given, fitted = tuple(x.shape[1:]), model.in_shape_
    same = len(given) == len(fitted) and given[:1] == fitted[:1]
    if any_size(model) and same:
        return
    more = f", and {network!r} answers for that size alone; {ANY}" if len(fitted) == 3 and same else ""
    raise DataError(f"X has rows of shape {given}; the model was fitted on {fitted}{more}.")


def check_positions(model: Any, shape: tuple[int, ...], x: Inputs) -> None:
    """Raise a `DataError` unless targets (n, *positions) of images of another size have one for each pixel."""
    count = len(model.positions_)
    if not count or not isinstance(x, Tensor) or tuple(x.shape[1:]) == model.in_shape_:
        return
    given, wanted = tuple(shape[1 : 1 + count]), tuple(x.shape[2:])
    if model.positions_ == model.in_shape_[1:] and given != wanted:
        raise DataError(f"y has targets at {given} positions, but X has images of {wanted}; they must agree.")


def times_larger(model: Any, x: Inputs) -> float:
    """How many times as large a row is as those of the fit."""
    if not isinstance(x, Tensor) or tuple(x.shape[1:]) == model.in_shape_:
        return 1.0
    return max(1.0, math.prod(x.shape[1:]) / max(1, math.prod(model.in_shape_)))
