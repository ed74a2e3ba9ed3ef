"""What training may do to a batch before a step: augment, and add noise."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch

from ...core.random import drawing, normal_like, redirected
from ...data.augment import Augment
from ...data.rows import Inputs, Rows
from ..dataset import Batch, Dataset

__all__ = ["as_held_out", "augmented", "noisy"]


def augmented(augment: Any, batch: Batch, positions: tuple[int, ...], members: int) -> Batch:
    """What an augmentation makes of a batch, for each member apart.

    A function changes x alone. What has a method `batch` gets the targets and weights too, and may give more rows, as
    long as their weights sum to what they were.
    """
    if members > 1:
        parts = [Batch(*(None if part is None else part[i] for part in batch)) for i in range(members)]
        changed = [augmented(augment, part, positions, 1) for part in parts]
        weights = [part.weight for part in changed if part.weight is not None]
        x = torch.stack([part.x for part in changed])
        y = None if batch.y is None else torch.stack([part.y for part in changed])
        return batch._replace(x=x, y=y, weight=torch.stack(weights) if weights else None)
    with redirected():  # an augmentation may be a function of the user's
        if not hasattr(augment, "batch"):
            return batch._replace(x=augment(batch.x))
        x, y, weight = augment.batch(batch.x, batch.y, batch.weight, positions)
        return batch._replace(x=x, y=y, weight=weight)


def as_held_out(augment: Any, data: Dataset, seed: int) -> Dataset:
    """Held-out rows as they are; changed once where the model is one of what an augmentation makes of rows."""
    part = augment.on_held_out() if isinstance(augment, Augment) else None
    if part is None:
        return data
    with drawing(seed):
        batch = augmented(part, data.batch(slice(None)), data.positions, 1)
    return replace(data, x=batch.x, y=batch.y, weight=batch.weight, condition=batch.condition, rows=None)


def noisy(x: Inputs, scale: float) -> Inputs:
    """x with normal noise on every entry."""
    if isinstance(x, Rows):
        return x.map(lambda values: values + scale * normal_like(values))
    return x + scale * normal_like(x)
