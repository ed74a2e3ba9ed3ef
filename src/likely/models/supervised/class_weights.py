"""How much the rows of each class count: a class that is rare may count as much as the others.

w(class) = n / (classes · rows of the class)      "balanced", as in scikit-learn
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ...core.errors import DataError, ModelFileError, SpecError
from ...data.rows import Ragged
from ...inference.dataset import Dataset
from ..labels import shown

__all__ = ["class_weights", "restore_class_weights", "times_class_weights"]


def class_weights(class_weight: Any, targets: Tensor, classes: np.ndarray) -> Tensor | None:
    """The weight of each class (K,) from `class_weight`; None where all count alike.

    >>> class_weights("balanced", torch.tensor([0.0, 0.0, 0.0, 1.0, torch.nan]), np.array(["a", "b"]))
    tensor([0.6667, 2.0000], dtype=torch.float64)
    """
    if class_weight is None:
        return None
    if isinstance(class_weight, str) and class_weight == "balanced":
        labels = targets[~targets.isnan()].long()
        counts = torch.bincount(labels, minlength=len(classes)).double()
        return len(labels) / (len(classes) * counts)
    if not isinstance(class_weight, Mapping):
        raise SpecError(f'class_weight={class_weight!r} must be None, "balanced", or a dict from labels to weights.')
    known = {label.item() if isinstance(label, np.generic) else label for label in classes}
    strange = [label for label in class_weight if label not in known]
    if strange:
        raise DataError(f"class_weight has the class {shown(strange[:1])}, which is not in y: {shown(classes)}.")
    weights = [class_weight.get(label, 1.0) for label in classes.tolist()]
    if not all(isinstance(weight, int | float | np.number) and 0 <= weight < np.inf for weight in weights):
        raise SpecError(f"class_weight={class_weight!r} must have weights of 0 or more.")
    return torch.tensor([float(weight) for weight in weights], dtype=torch.float64)


def times_class_weights(data: Dataset, weights: Tensor | None) -> Dataset:
    """Rows whose weights are multiplied by those of their classes."""
    if weights is None:
        return data
    if data.whole:
        raise SpecError("class_weight is of single labels; where a likelihood couples them use sample_weight.")
    labels = data.y.values if isinstance(data.y, Ragged) else data.y
    given = data.weight.values if isinstance(data.weight, Ragged) else data.weight
    assert isinstance(labels, Tensor)
    own = weights.to(labels.device)[labels.long()]
    own = own if given is None else own * given.to(own)
    return replace(data, weight=Ragged(own, data.y.offsets) if isinstance(data.y, Ragged) else own)


def restore_class_weights(weights: Any, classes: int) -> Tensor | None:
    """The weights of classes from a file."""
    if weights is None:
        return None
    plain = isinstance(weights, list) and all(type(weight) in (int, float) and weight >= 0 for weight in weights)
    if not plain or len(weights) != classes:
        raise ModelFileError(f"The file has class weights {weights!r} for {classes} classes.")
    return torch.tensor(weights, dtype=torch.float64)
