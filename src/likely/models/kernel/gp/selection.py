"""Whether all rows of a Gaussian process are used, or a few inducing points stand for them."""

from __future__ import annotations

import numpy as np
import torch
from sklearn.cluster import kmeans_plusplus
from torch import Tensor

from ....core.errors import DataError, SpecError
from ....likelihoods import Likelihood, Target
from .fitting import exact

__all__ = ["choose_inducing", "inducing_points", "refuse_many", "suitable_points"]

MOST_ROWS = 10_000
"""Rows (times latent functions) beyond which K is too large to hold and to factor."""
AUTO_ROWS, AUTO_POINTS = 4_000, 512
"""With inducing="auto": rows up to which all are used, and inducing points that stand for more."""


def inducing_points(x: Tensor, inducing: int | str | None, seed: int) -> Tensor | None:
    """Inducing points: so many, or "auto" for some where the rows are many; None for all rows.

    >>> inducing_points(torch.zeros(10, 1), "auto", seed=0) is None
    True
    """
    if inducing is None:
        refuse_many(len(x), 1, 'inducing=500 or "auto" has a few inducing points stand for them')
        return None
    if isinstance(inducing, str):
        return None if len(x) <= AUTO_ROWS else choose_inducing(x, AUTO_POINTS, seed)
    return choose_inducing(x, int(inducing), seed)


def suitable_points(
    x: Tensor, inducing: int | str | None, likelihood: Likelihood, target: Target, seed: int
) -> Tensor | None:
    """Inducing points for a likelihood, or None for all rows; a refusal where neither would do.

    >>> from likely.likelihoods import Poisson
    >>> suitable_points(torch.zeros(10, 1), "auto", Poisson(), Target(), seed=0) is None
    True
    """
    if exact(likelihood):
        return inducing_points(x, inducing, seed)
    if isinstance(inducing, int | np.integer):
        raise SpecError(
            f"GaussianProcess(inducing={inducing}) needs normal noise of one σ; {likelihood!r} has Laplace's "
            "approximation of all rows: leave inducing out."
        )
    refuse_many(len(x), likelihood.size(target) - likelihood.shared(target), "fit a sample of the rows")
    return None


def refuse_many(rows: int, functions: int, remedy: str) -> None:
    """Refuse what would not fit into memory, with what to do instead."""
    if rows * functions > MOST_ROWS:
        size = f"{rows:,} rows" + (f" and {functions} latent functions" if functions > 1 else "")
        raise DataError(
            f"X has {size}; a Gaussian process without inducing points takes up to {MOST_ROWS:,} (its time grows "
            f"with their cube, its memory with their square): {remedy}."
        )


def choose_inducing(x: Tensor, count: int, seed: int) -> Tensor:
    """`count` rows that lie apart from each other, chosen as k-means++ chooses centres.

    >>> choose_inducing(torch.arange(9.0).reshape(-1, 1), 3, seed=0).shape
    torch.Size([3, 1])
    """
    if count >= len(x):
        return x.clone()
    flat = np.ascontiguousarray(x.reshape(len(x), -1).numpy())
    _, chosen = kmeans_plusplus(flat, count, random_state=seed)
    return x[torch.from_numpy(np.unique(chosen))].clone()
