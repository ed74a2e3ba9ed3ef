"""What a sampler drew: all chains, and whether they can be trusted.

R-hat compares chains with one another (1 if they agree), ESS is how many independent draws they are worth.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from ..core.errors import DataError
from ..core.quiet import quiet
from .convergence import agree, diagnose

__all__ = ["Chains", "arviz", "as_names"]


@dataclass(frozen=True)
class Chains:
    """Draws (chains, draws, *event) and their log-densities (chains, draws).

    `acceptance` is the mean of each chain, `stats` what the method recorded, (chains, draws, …) by name.
    """

    draws: Tensor
    log_prob: Tensor
    acceptance: Tensor
    stats: Mapping[str, Tensor] = field(default_factory=dict)
    names: str | tuple[str, ...] = "x"

    @property
    def flat(self) -> Tensor:
        """All draws in one row, (chains · draws, *event)."""
        return self.draws.flatten(0, 1)

    @property
    def mean(self) -> Tensor:
        """The mean over all draws, (*event)."""
        return self.flat.double().mean(0)

    @property
    def std(self) -> Tensor:
        """The standard deviation over all draws, (*event)."""
        return self.flat.double().std(0)

    @property
    def rhat(self) -> Tensor:
        """R-hat of each coordinate, (*event); NaN with fewer than 2 chains or 4 draws, or where nothing moves."""
        chains, _, *event = self.draws.shape
        return self._diagnosed[0] if chains > 1 else torch.full(event, torch.nan, dtype=torch.float64)

    @property
    def ess(self) -> Tensor:
        """The effective sample size of the mean of each coordinate, (*event); NaN with fewer than 4 draws."""
        return self._diagnosed[1]

    @property
    def agree(self) -> Tensor:
        """Whether the chains agree on each coordinate, (*event): R-hat ≤ 1.05, or no more than by their length."""
        chains, draws, *event = self.draws.shape
        rows = self.draws.cpu().double().reshape(chains, draws, -1).numpy()
        return torch.from_numpy(agree(rows) if chains > 1 else agree(rows[:, :0])).reshape(event)

    def to_arviz(self) -> Any:
        """An `arviz.InferenceData` with the groups posterior and sample_stats (lp, acceptance_rate, …)."""
        library = arviz()
        with _quiet():
            return library.from_dict(posterior=self._variables(), sample_stats=self._recorded())

    def summary(self, **options: Any) -> Any:
        """A table (pandas) of mean, sd, interval, ESS and R-hat; the options are those of `arviz.summary`."""
        return arviz().summary(self.to_arviz(), **options)

    def __repr__(self) -> str:
        chains, draws, *event = self.draws.shape
        return (
            f"Chains({chains} chains × {draws} draws of {tuple(event)}, acceptance {float(self.acceptance.mean()):.2f})"
        )

    def _variables(self) -> dict[str, Any]:
        draws = self.draws.cpu().numpy()
        if isinstance(self.names, str):
            return {self.names: draws}
        return {name: draws[..., index] for index, name in enumerate(self.names)}

    def _recorded(self) -> dict[str, Any]:
        return {"lp": self.log_prob.cpu().numpy(), **{name: stat.cpu().numpy() for name, stat in self.stats.items()}}

    @cached_property
    def _diagnosed(self) -> tuple[Tensor, Tensor]:
        chains, draws, *event = self.draws.shape
        rows = self.draws.cpu().double().reshape(chains, draws, -1).numpy()
        rhat, ess = (torch.from_numpy(numbers).reshape(event) for numbers in diagnose(rows))
        return rhat, ess


def arviz() -> Any:
    """ArviZ, which takes seconds to import and says at import that its next version will differ."""
    with quiet(FutureWarning):
        import arviz as library
    return library


@contextmanager
def _quiet() -> Iterator[None]:
    """Without what ArviZ says of many short chains, which are meant, and of 0/0 where nothing moves, which is NaN."""
    with quiet(UserWarning, "More chains"), quiet(RuntimeWarning):
        yield


def as_names(names: Any, event: tuple[int, ...]) -> str | tuple[str, ...]:
    """One name for the whole variable, or one for each coordinate of a vector."""
    if names is None:
        return "x"
    if isinstance(names, str):
        return names
    given = tuple(str(name) for name in names)
    if len(event) != 1 or len(given) != event[0] or len(set(given)) < len(given):
        raise DataError(
            f"names must be one name, or a different one for each coordinate; found {len(given)} names for positions "
            f"of shape {event}."
        )
    return given
