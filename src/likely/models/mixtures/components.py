"""A mixture as EM sees it: K weighted components of any emission.

    p(x) = Σₖ πₖ p(x | θₖ),      responsibilities rᵢₖ = πₖ p(xᵢ | θₖ) / p(xᵢ)

The E-step goes over blocks of rows and keeps sums only: no array of size n × S × K is ever made.
"""

from __future__ import annotations

import copy
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from ...core import distributed
from ...core.threads import by_threads
from ...inference import Latent
from ...inference.latent.latent import Params
from ...inference.latent.simplex import from_sticks, log_sticks, pull_sticks, to_sticks
from ..emissions import Emission, features, first_weights
from ..emissions.starts import MOST, Init
from .reseed import reseed
from .responsibilities import blocks, over_components, split, total

__all__ = ["EMPTY", "Components"]

EMPTY = 1e-10
"""A component that has less than this fraction of all rows has none."""


class Components(Latent):
    """The weights and components of a mixture, bound to rows x with weights (None for 1 each).

    With missing values the rows are put in order of what they miss, so that a block holds few patterns.
    """

    def __init__(self, emission: Emission, x: Tensor, weight: Tensor | None, components: int, init: Init) -> None:
        self._order = _by_pattern(x)
        if self._order is not None:
            x, weight = x[self._order], None if weight is None else weight[self._order]
        self.emission, self.x, self.weight = emission, x, weight
        self.components, self.init = components, init
        self.count = float(len(x) if weight is None else weight.sum())
        self.reseeded: dict[tuple[int, int], int] = {}
        """By start and component: the row at which a component that had lost all rows began again."""
        self._width = components * x.shape[1]
        self.work = float(self._width * len(x))
        emission.bind(x, weight)

    # --- Latent -------------------------------------------------------------------------------------------------
    def start(self, seeds: list[int]) -> Params:
        guesses = [self._first(seed) for seed in seeds]
        totals, _ = self._summed(lambda rows: (self._accumulated(guesses, rows), torch.zeros(1)), slice(0, len(self.x)))
        counts = totals.pop("counts")
        return {**self.emission.maximise(None, totals), "weights": counts / counts.sum(-1, keepdim=True)}

    def expect(self, params: Params) -> tuple[Params, Tensor]:
        return self._summed(lambda rows: self._expect(params, rows), distributed.shard(len(self.x)))

    def _summed(self, work: Callable[[slice], tuple[Params, Tensor]], rows: slice) -> tuple[Params, Tensor]:
        """Totals and values of all parts of the rows, added up."""
        # Weights that are kept row by row would be kept once more by each thread.
        most = 1 if "weight" in self.emission.zeros(1, 1) else None
        totals, value = (parts := by_threads(work, rows, most=most))[0]
        for more, added in parts[1:]:
            value = value + added
            totals = {name: total + more[name] for name, total in totals.items()}
        return totals, value

    def _accumulated(self, guesses: list[tuple[np.ndarray, Tensor]], part: slice) -> Params:
        """The sums of some of the rows for first guesses, which give rows and their weights."""
        emission = copy.copy(self.emission)  # one for each thread
        totals = emission.zeros(len(guesses), self.components)
        counts = torch.zeros(len(guesses), self.components, dtype=torch.float64)
        for rows in blocks(part, len(guesses) * self._width):
            weight = torch.zeros(rows.stop - rows.start, len(guesses), self.components, dtype=torch.float64)
            for index, (chosen, responsibility) in enumerate(guesses):
                own = slice(*np.searchsorted(chosen, (rows.start, rows.stop)))
                weight[torch.from_numpy(chosen[own] - rows.start), index] = responsibility[own]
            if bool(weight.any()):
                emission.accumulate(totals, None, self.x[rows], weight, rows)
                counts += weight.sum(0)
        return {**totals, "counts": counts}

    def _expect(self, params: Params, part: slice) -> tuple[Params, Tensor]:
        """The E-step of some of the rows."""
        emission = copy.copy(self.emission)
        starts = len(params["weights"])
        totals = emission.zeros(starts, self.components)
        counts = torch.zeros(starts, self.components, dtype=torch.float64)
        value = torch.zeros(starts, dtype=torch.float64)
        background = emission.smoothing / self.count
        for rows in blocks(part, starts * self._width):
            x = self.x[rows]
            weight = None if self.weight is None else self.weight[rows]
            log_prob = emission.log_prob(params, x)
            if background > 0:
                value += background * total(over_components(log_prob).squeeze(-1), weight)
            responsibilities, evidence = split(log_prob, params["weights"])
            value += total(evidence, weight)
            if weight is not None:
                responsibilities *= weight[:, None, None]
            counts += responsibilities.sum(0)
            emission.accumulate(totals, params, x, responsibilities, rows)
        return {**totals, "counts": counts}, value

    def maximise(self, params: Params, statistics: Params) -> Params:
        counts = statistics["counts"]
        sums = {name: value for name, value in statistics.items() if name != "counts"}
        improved = self.emission.maximise(params, sums)
        improved["weights"] = counts / counts.sum(-1, keepdim=True)
        for start, component in (improved["weights"] <= EMPTY).nonzero().tolist():
            if (start, component) not in self.reseeded:
                self.reseeded[start, component] = reseed(self, improved, start, component)
        return improved

    # --- as a density -------------------------------------------------------------------------------------------
    differentiable = True

    @property
    def may_empty(self) -> bool:
        return self.components > 1

    @property
    def width(self) -> int:
        return self._width

    def to_free(self, params: Params) -> Params:
        return {**self.emission.to_free(_without_weights(params)), "weights": to_sticks(params["weights"])}

    def from_free(self, free: Params) -> Params:
        return {**self.emission.from_free(_without_weights(free)), "weights": from_sticks(free["weights"])}

    def finished(self, params: Params) -> Params:
        return {**self.emission.finished(_without_weights(params)), "weights": params["weights"]}

    def rows(self) -> tuple[Tensor, Tensor | None]:
        return self.x, self.weight

    def row_log_prob(self, params: Params, x: Tensor) -> Tensor:
        log_prob = self.emission.smooth_log_prob(params, x)
        if torch.is_grad_enabled():
            evidence = (log_prob + params["weights"].log()).logsumexp(-1)
        else:  # the same, faster
            evidence = split(log_prob, params["weights"])[1]
        smoothing = self.emission.smoothing  # EM's value has this term too
        return evidence + smoothing / self.count * over_components(log_prob).squeeze(-1) if smoothing > 0 else evidence

    def value_and_grad(self, free: Params, x: Tensor, weight: Tensor | None, fraction: float) -> tuple[Tensor, Params]:
        """By responsibilities: ∂ log p(x) / ∂ log p(x | k) = r, and so in log π."""
        log_prob, pull = self.emission.log_prob_and_pull(_without_weights(free), x)
        logs, sticks = log_sticks(free["weights"])
        responsibilities, evidence = split(log_prob, logs.exp())
        value = total(evidence, weight)
        if weight is not None:
            responsibilities *= weight[:, None, None]
        gradient = {"weights": pull_sticks(sticks, responsibilities.sum(0))}
        if self.emission.smoothing > 0:
            background = self.emission.smoothing / self.count
            value = value + background * total(over_components(log_prob).squeeze(-1), weight)
            responsibilities += background if weight is None else background * weight[:, None, None]
        return value, {**gradient, **pull(responsibilities)}

    # --- after the fit ------------------------------------------------------------------------------------------
    def place(self, row: int) -> int:
        """Where a row stood in the data that were given."""
        return row if self._order is None else int(self._order[row])

    def log_likelihood(self, params: Params) -> float:
        """Σ log p(x) of the rows in all processes, for one start and without the smoothing's term."""
        value = torch.zeros(1, dtype=torch.float64)
        for rows in blocks(distributed.shard(len(self.x)), self._width):
            evidence = split(self.emission.log_prob(params, self.x[rows]), params["weights"])[1]
            value += total(evidence, None if self.weight is None else self.weight[rows])
        distributed.sum_(value)
        return float(value)

    def held(self, params: Params) -> list[int]:
        """The components that smoothing alone holds up: without it they would explain their rows far better.

        Far: by 0.1 nats per row, after one step of EM with smoothing and one without. Such a component has shrunk to a
        point, or has no rows.
        """
        totals, _ = self.expect(params)
        distributed.sum_(*totals.values())
        counts = totals.pop("counts")[0]
        smoothing = self.emission.smoothing
        smooth = self.emission.maximise(params, totals)
        self.emission.smoothing = 0.0
        try:
            plain = self.emission.maximise(params, totals)
        finally:
            self.emission.smoothing = smoothing
        gain = torch.zeros(self.components, dtype=torch.float64)
        for rows in blocks(distributed.shard(len(self.x)), 3 * self._width):
            x = self.x[rows]
            responsibility, _ = split(self.emission.log_prob(params, x), params["weights"])
            responsibility = (
                responsibility[:, 0] if self.weight is None else responsibility[:, 0] * self.weight[rows].unsqueeze(-1)
            )
            better = self.emission.log_prob(plain, x)[:, 0] - self.emission.log_prob(smooth, x)[:, 0]
            gain += torch.where(responsibility > 0, responsibility * better, 0.0).sum(0)
        distributed.sum_(gain)
        lost = counts <= EMPTY * counts.sum()
        return torch.nonzero(lost | (gain > 0.1 * counts)).ravel().tolist()

    # --- first guesses ------------------------------------------------------------------------------------------
    def _first(self, seed: int) -> tuple[np.ndarray, Tensor]:
        """The rows that a first guess looks at, in order, and their weights (m, K)."""
        chosen = self._sample(seed)
        index = torch.from_numpy(chosen)
        weight = None if self.weight is None else self.weight[index]
        labels = self.emission.label_columns()
        return chosen, first_weights(features(self.x[index], labels), self.components, seed, self.init, weight)

    def _sample(self, seed: int) -> np.ndarray:
        """All rows that have weight, or so many of them that a first guess needs no more."""
        usable = np.arange(len(self.x)) if self.weight is None else np.flatnonzero(self.weight.numpy() > 0)
        if len(usable) <= MOST:
            return usable
        return np.sort(np.random.default_rng(seed).choice(usable, MOST, replace=False))


def _without_weights(params: Params) -> Params:
    return {name: value for name, value in params.items() if name != "weights"}


def _by_pattern(x: Tensor) -> Tensor | None:
    """The rows in order of the values they miss; None if none is missing."""
    if not (x.is_floating_point() and bool(x.sum().isnan())):
        return None
    codes = np.packbits(x.isnan().numpy(), axis=1)
    return torch.from_numpy(np.lexsort(codes.T))
