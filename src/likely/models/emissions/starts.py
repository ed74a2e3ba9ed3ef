"""First guesses: weights (n, K) that give each component rows of its own, before any parameter is known."""

from __future__ import annotations

from typing import Literal

import numpy as np
import torch
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import pairwise_distances_argmin
from torch import Tensor

from ...core.quiet import quiet

__all__ = ["Init", "features", "first_weights"]

Init = Literal["k-means++", "random"]

MOST = 20_000
"""Rows that a first guess looks at: more would not make it better."""


def features(x: Tensor, labels: Tensor | None = None) -> np.ndarray:
    """Rows as points whose distances mean something: standardised columns, NaN at the mean, labels as indicators.

    >>> features(torch.tensor([[0.0], [2.0], [torch.nan]])).ravel().tolist()
    [-1.0, 1.0, 0.0]
    """
    values = x.double().reshape(len(x), -1).numpy()
    known = ~np.isnan(values)
    count = np.maximum(known.sum(0), 1)
    mean = np.where(known, values, 0.0).sum(0) / count
    centred = np.where(known, values - mean, 0.0)
    scale = np.sqrt((centred**2).sum(0) / count)
    points = centred / np.where(scale > 0, scale, 1.0)
    if labels is None or not bool(labels.any()):
        return points
    chosen = labels.numpy()
    indicators = [
        (column[:, None] == np.unique(column[~np.isnan(column)])).astype(float) for column in values[:, chosen].T
    ]
    return np.column_stack([points[:, ~chosen], *indicators])


def first_weights(points: np.ndarray, components: int, seed: int, how: Init, weight: Tensor | None = None) -> Tensor:
    """Weights (n, K): for "k-means++" the clusters of a few steps of k-means, for "random" those of random centres.

    Rows left out of a first guess (it looks at 20,000) have weight 0 for every component.

    >>> first_weights(np.array([[0.0], [0.1], [5.0], [5.1]]), 2, 0, "k-means++").sum(0)
    tensor([2., 2.], dtype=torch.float64)
    """
    random = np.random.default_rng(seed)
    n = len(points)
    usable = np.arange(n) if weight is None else np.flatnonzero(weight.numpy() > 0)
    chosen = usable if len(usable) <= MOST else np.sort(random.choice(usable, MOST, replace=False))
    rows = points[chosen]
    own = None if weight is None else weight.numpy()[chosen]
    if how == "random":
        centres = rows[random.choice(len(rows), components, replace=len(rows) < components)]
        label = pairwise_distances_argmin(rows, centres)
    else:
        few = min(components, len(np.unique(rows, axis=0)))
        with quiet(ConvergenceWarning):
            label = KMeans(few, n_init=1, max_iter=20, random_state=seed % 2**32).fit(rows, sample_weight=own).labels_
    weights = torch.zeros(n, components, dtype=torch.float64)
    weights[torch.from_numpy(chosen), torch.from_numpy(np.asarray(label, dtype=np.int64))] = 1.0
    for k in range(components):  # more components than distinct rows: the rest begin at rows drawn by chance
        if not bool(weights[:, k].any()):
            weights[int(random.choice(chosen)), k] = 1.0
    return weights if weight is None else weights * weight.unsqueeze(-1)
