"""Distributions as what the divergences read: log-probabilities that are −∞ wherever there is no mass.

torch refuses values outside the support and keeps the logits of given probabilities above log ε; an infinite
divergence needs the true −∞.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor
from torch.distributions import Bernoulli, Binomial, Categorical, Distribution, OneHotCategorical

from ..core.errors import DataError
from ..core.random import isolated, seed_of

__all__ = ["Outcomes", "Probabilities", "as_distribution", "as_table", "draw", "is_discrete", "log_prob", "outcomes"]

Probabilities = ArrayLike | Tensor
"""A vector or table of probabilities that sum to 1."""


class Outcomes(NamedTuple):
    """All values of a finite distribution and their log-probabilities."""

    values: Tensor
    log_probs: np.ndarray


def as_distribution(value: Distribution | Probabilities, name: str) -> Distribution:
    """One distribution as it is; a table of probabilities as that of its cells, in order."""
    if not isinstance(value, Distribution):
        return Categorical(probs=torch.from_numpy(as_table(value, name).ravel()))
    if value.batch_shape:
        raise DataError(
            f"{name} is a batch of {tuple(value.batch_shape)} distributions; give one at a time, or join them "
            f"into one with torch.distributions.Independent({name}, {len(value.batch_shape)})."
        )
    return value


def as_table(value: Any, name: str) -> np.ndarray:
    """Probabilities as a float64 array; an error names what is wrong with them."""
    table = np.asarray(value.detach().cpu() if isinstance(value, Tensor) else value)
    if table.dtype.kind not in "fiub" or table.size == 0 or table.ndim == 0:
        raise DataError(
            f"{name} must be a torch distribution or a vector or table of probabilities; "
            f"found a {type(value).__name__} of shape {table.shape}."
        )
    table = table.astype(np.float64)
    if not (np.isfinite(table) & (table >= 0)).all():
        raise DataError(f"{name} must hold probabilities, which are 0 or more; found {table.min():g}.")
    if abs(table.sum() - 1) > 1e-5:
        raise DataError(f"{name} sums to {table.sum():g}; probabilities sum to 1 (divide counts by their sum).")
    return table / table.sum()


def is_discrete(distribution: Distribution) -> bool:
    """Whether its probabilities are masses rather than densities."""
    try:
        return bool(distribution.support.is_discrete)  # type: ignore[union-attr]
    except NotImplementedError:
        return False


def draw(distribution: Distribution, draws: int, random_state: Any) -> Tensor:
    """Independent draws, (draws, *event); torch's global random state is left as it was."""
    if not isinstance(draws, int | np.integer) or draws < 2:
        raise DataError(f"draws must be an integer of 2 or more; found {draws!r}.")
    with isolated(seed_of(random_state)), torch.no_grad():
        return distribution.sample(torch.Size([int(draws)]))


def outcomes(distribution: Distribution) -> Outcomes | None:
    """Every outcome of a finite distribution, or None if there are infinitely many or they are not listed."""
    if isinstance(distribution, Bernoulli):
        chance, logit = distribution.probs.detach().double(), distribution.logits.detach().double()
        both = torch.stack([1 - chance, chance])
        return Outcomes(torch.arange(2.0), _log(both, torch.nn.functional.logsigmoid(torch.stack([-logit, logit]))))
    if isinstance(distribution, Categorical | OneHotCategorical):
        count = distribution.probs.shape[-1]
        values = torch.arange(float(count)) if isinstance(distribution, Categorical) else torch.eye(count)
        return Outcomes(values, _log(distribution.probs.detach().double(), distribution.logits.detach().double()))
    if isinstance(distribution, Binomial):
        count = int(distribution.total_count)
        values = torch.arange(count + 1.0)
        from scipy.stats import binom  # only here: it loads slowly

        return Outcomes(values, binom.logpmf(values.numpy(), count, float(distribution.probs)))
    return None


def log_prob(distribution: Distribution, value: Tensor) -> np.ndarray:
    """log p of each value, −∞ outside the support."""
    inside = _inside(distribution, value)
    table = outcomes(distribution)
    if table is not None:
        index = value.argmax(-1) if distribution.event_shape else value.long()
        logs = table.log_probs[torch.where(inside, index, 0).numpy()]
    else:
        stand_in = draw(distribution, 2, 0)[0]
        reached = inside.reshape(inside.shape + (1,) * len(distribution.event_shape))
        with torch.no_grad():
            logs = distribution.log_prob(torch.where(reached, value, stand_in)).double().numpy()
    return np.where(inside.numpy(), logs, -np.inf)


def _inside(distribution: Distribution, value: Tensor) -> Tensor:
    try:
        return distribution.support.check(value)  # type: ignore[union-attr]
    except NotImplementedError:  # a distribution that does not say its support answers everywhere
        return torch.ones(value.shape[: value.ndim - len(distribution.event_shape)], dtype=torch.bool)


def _log(probs: Tensor, logits: Tensor) -> np.ndarray:
    """log p, from the probabilities, or from the logits where a probability that is 0 is so by underflow only."""
    underflow = torch.where(logits.exp() == 0, logits, -torch.inf)
    return torch.where(probs > 0, probs.log(), underflow).numpy()
