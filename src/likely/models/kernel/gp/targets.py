"""The targets of a Gaussian process at the door: labels or numbers, by the likelihood; missing ones do not count."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from ....core.errors import DataError
from ....core.layout import laid_out
from ....core.validation import check_length
from ....likelihoods import Likelihood, Target
from ...labels import (
    as_column,
    as_entries,
    classes_in_order,
    encode_labels,
    read_labels,
    several_classes,
    shown,
)

__all__ = ["counted", "read_classes", "read_targets"]

OWNER = "GaussianProcess"


def read_classes(y: Any, rows: int, likelihood: Likelihood) -> tuple[np.ndarray, Likelihood]:
    """The classes among labels y, and the likelihood that knows how many there are."""
    labels, missing = _labels(y, rows)
    present = labels[~missing]
    classes = classes_in_order(present, y, likelihood) if likelihood.ordered else several_classes(present)
    likelihood = likelihood.bind(Target(classes=len(classes)))
    if not bool(likelihood.support.check(torch.tensor(2)).all()) and len(classes) > 2:
        raise DataError(
            f"Only binary classification is supported by {likelihood!r}: y has {len(classes)} classes; "
            "likelihood=Categorical() takes as many as there are."
        )
    known = likelihood.known_target()
    fits = bool(likelihood.support.check(torch.arange(len(classes))).all())
    if not fits or (known is not None and known.classes not in (None, len(classes))):
        raise DataError(
            f"y has {len(classes)} classes ({shown(classes)}), which likelihood={likelihood!r} does not describe; "
            "Categorical() takes as many as there are."
        )
    return classes, likelihood


def read_targets(y: Any, rows: int, likelihood: Likelihood, classes: np.ndarray | None) -> Tensor:
    """y as a float64 tensor (n, *event), labels by their place in `classes`; a missing target is NaN.

    >>> from likely.likelihoods import Bernoulli
    >>> read_targets(["no", "yes", None], 3, Bernoulli(), np.array(["no", "yes"]))
    tensor([0., 1., nan], dtype=torch.float64)
    """
    if classes is not None:
        return torch.from_numpy(encode_labels(*_labels(y, rows), classes))
    if y is None:
        raise DataError(f"{OWNER} requires y to be passed, but the target y is None.")
    if isinstance(y, Tensor):
        y = y.detach().cpu().numpy()
    array = as_entries(y, dtype=np.float64)
    check_length(array, rows)
    if array.ndim == 2 and array.shape[1] == 1 and likelihood.event_dim == 0:
        array, _ = as_column(array, np.isnan(array))
    if array.ndim != 1 + likelihood.event_dim:
        wanted = "(n, d)" if likelihood.event_dim else "(n,)"
        raise DataError(
            f"y has shape {array.shape}; {OWNER} with {likelihood!r} needs {wanted}: fit one model for each output."
        )
    targets = torch.from_numpy(np.array(array, order="C"))
    likelihood.check(targets)
    return targets


def _labels(y: Any, rows: int) -> tuple[np.ndarray, np.ndarray]:
    labels, missing = as_column(*read_labels(y, OWNER, rows=rows))
    if labels.ndim != 1:
        raise DataError(f"y has shape {labels.shape}; {OWNER} needs one label per row: (n,).")
    return labels, missing


def counted(x: Tensor, y: Tensor, weight: Tensor | None, likelihood: Likelihood) -> tuple[Tensor, Tensor, Tensor]:
    """The rows that have a target and weight."""
    counts = ~likelihood.missing(y)
    if not bool(counts.any()):
        raise DataError("y has no target at all: every one is missing (NaN).")
    weights = torch.ones(len(x), dtype=torch.float64) if weight is None else weight
    counts &= weights > 0
    if not bool(counts.any()):
        raise DataError("No target has weight: rows with sample_weight above 0 have no target.")
    # Copies that lie in memory as a file gives them back: BLAS may round what lies otherwise differently.
    return laid_out(x[counts]), laid_out(y[counts]), laid_out(weights[counts])
