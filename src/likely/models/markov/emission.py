"""The emissions of hidden states: as a likelihood or a mixture says, from data or from known parameters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ...core.errors import DataError, SpecError
from ...core.estimator import Estimator
from ...inference.latent.latent import Params
from ...likelihoods import Likelihood
from ..emissions import Columns, Emission
from ..emissions.mixture import MixtureEmission

__all__ = ["columns_of_size", "emission_of", "state_means"]


def emission_of(likelihood: Any, x: Tensor, names: Sequence[str] | None, smoothing: float) -> Emission:
    """What the states are made of, as these rows show it: a mixture for each state, or the likelihood of each column.

    >>> emission_of("poisson", torch.ones(3, 2).double(), None, 0.0).parts[0].likelihood
    Poisson()
    """
    if isinstance(likelihood, Estimator) and hasattr(likelihood, "n_components"):
        return MixtureEmission(likelihood._emission(x, names), likelihood.n_components)  # type: ignore[attr-defined]
    return Columns.of(_read(likelihood), x, names, smoothing)


def columns_of_size(likelihood: Any, size: int, smoothing: float) -> Columns:
    """The columns whose parameters are `size` numbers, without data: as many as it takes."""
    for width in range(1, size + 1):
        nothing = torch.full((1, width), torch.nan, dtype=torch.float64)
        try:
            columns = Columns.of(_read(likelihood), nothing, smoothing=smoothing)
        except DataError:  # the list of likelihoods speaks of another number of columns
            continue
        if sum(part.size for part in columns.parts) == size:
            return columns
    raise DataError(f"eta has {size} numbers for each state, which {likelihood!r} has for no number of columns.")


def state_means(emission: Emission, params: Params) -> np.ndarray:
    """The mean of each column in each component, (K, d)."""
    if isinstance(emission, MixtureEmission):
        inside = state_means(emission.inner, {name: value for name, value in params.items() if name != "mixing"})
        mixing = params["mixing"].exp().numpy()
        return np.einsum("km,kmd->kd", mixing, inside.reshape(*mixing.shape, -1))
    if not isinstance(emission, Columns):
        return params["mean"].numpy()
    columns = []
    for part, eta in zip(emission.parts, emission._split(params["eta"]), strict=True):
        if not part.likelihood.numeric:
            raise SpecError(f"{part.likelihood!r} is of labels, which have no mean; use forecast_states.")
        columns.append(part.likelihood.mean(part.split(eta)).reshape(len(eta), -1).numpy())
    return np.concatenate(columns, 1)


def _read(likelihood: Any) -> Any:
    """A likelihood, or several; text such as "poisson" is read."""
    if isinstance(likelihood, str):
        return Likelihood.parse(likelihood)
    if isinstance(likelihood, Sequence):
        return [_read(part) for part in likelihood]
    return likelihood
