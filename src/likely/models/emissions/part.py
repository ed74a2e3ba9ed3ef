"""One likelihood and the columns it speaks of: what a row of several likelihoods is made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ...core.errors import DataError, ModelFileError
from ...core.spec import Spec
from ...likelihoods import Likelihood, Target

__all__ = ["Part", "blocks"]

BLOCK = 2**18
"""Numbers that are looked at together: they fit into a cache."""


@dataclass(frozen=True)
class Part:
    """One likelihood and the neighbouring columns it speaks of: of each alone, or of all as one vector."""

    likelihood: Likelihood
    columns: slice
    target: Target
    names: tuple[str, ...]

    @property
    def count(self) -> int:
        """How many independent targets a row has here."""
        return 1 if self.likelihood.event_dim else self.columns.stop - self.columns.start

    @property
    def size(self) -> int:
        """How many numbers η it has: those of the first target, then those of the next."""
        return self.count * self.likelihood.size(self.target)

    def of(self, x: Tensor) -> Tensor:
        """Its targets in rows x: (n, count, *event)."""
        own = x[..., self.columns]
        return own.unsqueeze(-2) if self.likelihood.event_dim else own

    def split(self, eta: Tensor) -> Tensor:
        """Its η (…, size) by target: (…, count, numbers of one)."""
        return eta.unflatten(-1, (self.count, -1))

    def check(self, x: Tensor) -> None:
        """Raise a `DataError` for the first column with a value outside the support."""
        try:
            for rows in blocks(x):
                self.likelihood.check(self.of(rows))
        except DataError:  # once more, to name the column and the row
            for name, own in zip(self.names, self.of(x).unbind(1), strict=False):  # a vector has its first name
                self.likelihood.check(own, name)
            raise

    @staticmethod
    def from_json(data: Mapping[str, Any], first: int) -> Part:
        """The part that a file describes, whose columns begin at `first`; what does not fit itself is refused."""
        likelihood, target = Spec.from_json(data["likelihood"]), Target.from_json(data["target"])
        start, stop = data["columns"]
        names = tuple(data["names"])
        if not isinstance(likelihood, Likelihood):
            raise ModelFileError(f"The file has {likelihood!r} where a likelihood is needed.")
        sound = start == first and isinstance(stop, int) and first < stop == first + len(names)
        sound = sound and all(isinstance(name, str) for name in names)
        known = likelihood.known_target()
        one = (stop - start,) if likelihood.event_dim else ()
        if not sound or target.shape != one or (known is not None and known != target):
            raise ModelFileError(f"The file has {likelihood!r} of {target} for columns {data['columns']!r}.")
        return Part(likelihood, slice(start, stop), target, names)

    def check_eta(self, eta: Tensor) -> None:
        """Raise a `ModelFileError` unless η (k, size) gives distributions whose parameters are all numbers."""
        own = self.split(eta)
        some = torch.ones(self.count, *self.target.shape, dtype=eta.dtype)
        log_prob = self.likelihood.log_prob(own, some * self.likelihood.placeholder(some))
        given = self.likelihood.distribution(own)
        parameters = [getattr(given, name, None) for name in given.arg_constraints]
        tensors = [value for value in parameters if isinstance(value, Tensor)]
        if bool(log_prob.isnan().any()) or not all(bool(value.isfinite().all()) for value in tensors):
            raise ModelFileError(f"The file has parameters that {self.likelihood!r} cannot have: they are not finite.")

    def present(self, x: Tensor) -> tuple[Tensor, Tensor | None]:
        """Its targets in float64 with a stand-in for missing ones, and which are missing (None if none is)."""
        y = self.of(x)
        some = y.is_floating_point() and bool(y.sum().isnan())
        gone = self.likelihood.missing(y) if some else None
        y = y.double()
        if gone is None:
            return y, None
        wide = gone.unsqueeze(-1) if self.likelihood.event_dim else gone
        return torch.where(wide, self.likelihood.placeholder(y), y), gone

    def log_prob(self, eta: Tensor, x: Tensor) -> Tensor:
        """log p(x | ηₖ), summed over its targets: (n, k)."""
        y, gone = self.present(x)
        targets = self.split(eta)  # (k, count, numbers of one)
        if self.count == 1:
            value = self.likelihood.each_log_prob(targets[:, 0], y[:, 0])
            return value if gone is None else torch.where(gone, 0.0, value)
        if gone is None:
            return self.likelihood.row_log_prob(targets, y)
        return torch.stack([torch.where(gone, 0.0, self.likelihood.log_prob(own, y)).sum(1) for own in targets], -1)

    def scores(self, eta: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
        """log p(x | η), summed over its targets, (n, …), and its gradient in η, (n, …, size), for η (…, size)."""
        y, gone = self.present(x)
        own = self.split(eta)  # (…, count, numbers of one)
        before = [1] * (own.ndim - 2)
        y = y.to(eta).reshape(len(x), *before, *y.shape[1:])
        log_prob, score = self.likelihood.value_and_grad(own.unsqueeze(0), y)
        if gone is not None:
            gone = gone.reshape(len(x), *before, self.count)
            log_prob, score = log_prob.masked_fill(gone, 0.0), score.masked_fill(gone.unsqueeze(-1), 0.0)
        if self.count == 1:
            return log_prob.squeeze(-1), score.squeeze(-2)
        return log_prob.sum(-1), score.flatten(-2)

    def width(self) -> int | None:
        """How many numbers are summed for each target: its weight and its statistics. None if none suffice."""
        some = torch.ones(1, self.count, *self.target.shape, dtype=torch.float64)
        statistics = self.likelihood.statistics(some * self.likelihood.placeholder(some), some[0])
        return None if statistics is None else 1 + statistics.shape[-1]

    def measured(self, x: Tensor, origin: Tensor) -> Tensor | None:
        """1 and T(y) of each target, 0 where it is missing: (n, count, width)."""
        y, gone = self.present(x)
        statistics = self.likelihood.statistics(y, self.of(origin))
        if statistics is None:
            return None
        counted = torch.cat([torch.ones_like(statistics[..., :1]), statistics], -1)
        return counted if gone is None else torch.where(gone.unsqueeze(-1), 0.0, counted)

    def sums(self, x: Tensor, weight: Tensor, origin: Tensor) -> Tensor | None:
        """Σ w and Σ w T(y) over the rows where y is not missing: (k, count, width)."""
        y, gone = self.present(x)
        statistics = self.likelihood.statistics(y, self.of(origin))  # (n, count, m)
        if statistics is None:
            return None
        if gone is None:
            counts = weight.sum(0).unsqueeze(-1).expand(-1, self.count)
        else:
            counts = weight.T @ (~gone).double()
            statistics = torch.where(gone.unsqueeze(-1), 0.0, statistics)
        if statistics.is_contiguous():
            sums = (weight.T @ statistics.flatten(1)).unflatten(-1, statistics.shape[1:])
        else:  # each statistic lies together in memory
            sums = torch.stack([weight.T @ statistic for statistic in statistics.unbind(-1)], -1)
        return torch.cat([counts.unsqueeze(-1), sums], -1)


def blocks(x: Tensor) -> tuple[Tensor, ...]:
    """The rows, as many at a time as fit into a cache."""
    return x.split(max(1, BLOCK // x.shape[1]))
