"""A detector in a file: plain values and tensors, and the checks that they fit each other when they return."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ...core.declared import COUNTS
from ...core.errors import ModelFileError
from ...core.shapes import without_numbers
from ...inference import Posterior
from ...likelihoods.base import Target
from ...networks.layers.standardise import Statistics
from ..labels import restore_classes, state_of_classes

__all__ = ["restore", "state_of"]

MOST = 10**8
"""Numbers that one image, or η of it, may have in a file."""


def state_of(model: Any) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """What a fitted model learned: plain data, and the tensors of its posterior."""
    posterior, tensors = model.posterior_.state()
    learned = {"in_shape": list(model.in_shape_), "posterior": posterior}
    return learned | state_of_classes(model.classes_), tensors


def restore(model: Any, learned: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
    """The inverse of `state_of`; a `ModelFileError` for parts that do not fit each other."""
    shape = learned["in_shape"]
    if not COUNTS.holds(shape) or len(shape) != 3 or 0 in shape or math.prod(shape) > MOST:
        raise ModelFileError(f"The file has images of shape {shape!r}.")
    model.in_shape_ = tuple(shape)
    model.classes_ = restore_classes(learned, least=1)
    model._prepare()
    likelihood = model.likelihood_
    size = likelihood.size(likelihood.known_target() or Target())
    columns = model._network().columns(model.in_shape_)
    inputs = Statistics.blank(columns, tensors) if "buffers.inputs.scale" in tensors else None

    def empty() -> Any:
        offset = torch.zeros(len(model.strides), size)
        return model._module(0, offset, torch.ones(size), inputs)

    try:
        with without_numbers():
            module = empty()
    except (RuntimeError, NotImplementedError):  # a network whose building needs real numbers
        module = empty()
    posterior = learned["posterior"]
    restored = Posterior.kinds[posterior["kind"]].restore(module, posterior, tensors)
    for name, value in restored.buffers.items():
        if name in ("unit", "inputs.scale") and not bool((value > 0).all()):
            raise ModelFileError(f"The file has units that are not above 0: {name}.")
    model.posterior_ = restored
    model.classes_ = np.asarray(model.classes_)
