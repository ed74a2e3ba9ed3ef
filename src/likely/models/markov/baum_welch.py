"""A hidden Markov model as EM sees it (Baum–Welch): expected states, transitions and emissions, then their proportions.

    πⱼ ∝ Σₙ γ₁(j),      Aᵢⱼ ∝ Σₜ ξₜ(i, j) + prior,      θⱼ ← argmax Σₜ γₜ(j) log p(xₜ | θ)

π and the rows of A sum to 1; rows that nothing is known of stay as they were.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ...core import distributed
from ...core.errors import DataError
from ...data.rows import Ragged
from ...inference import Latent
from ...inference.latent.latent import Params
from ...inference.latent.simplex import Simplex
from ...probability.chains.forward_backward import Memory, forward_backward
from ..emissions import Emission, features, first_weights
from ..emissions.starts import Init
from .chains import chains_log_prob, smooth_chains

__all__ = ["LEAST", "BaumWelch"]

LEAST = 1e-100
"""A transition that is allowed does not fall below this, so that it never becomes impossible for new data."""

BLOCK = 2**14
"""So many rows are taken together, where sequences are shorter."""
TOGETHER = 2**21
"""As many starts are taken together as make so many numbers γ."""


class BaumWelch(Latent):
    """States, transitions and emissions, bound to sequences with weights (n,)."""

    def __init__(
        self,
        emission: Emission,
        data: Ragged,
        weight: np.ndarray,
        allowed: np.ndarray,  # (K, K)
        first: np.ndarray,  # (K,) where sequences may start
        *,
        prior: float,
        init: Init,
        ordered: bool,
        begin: Params | None = None,
    ) -> None:
        self.emission, self.data, self.weight = emission, data, weight
        self.x, self.offsets = data.values, data.offsets.numpy()
        self.allowed, self.first = torch.from_numpy(allowed), torch.from_numpy(first)
        self.prior, self.init, self.ordered, self.begin = prior, init, ordered, begin
        self.states = len(first)
        self.row_weight = torch.from_numpy(np.repeat(weight, np.diff(self.offsets)))
        self.count = float(self.row_weight.sum())
        self.memory, self.blocks = Memory(), list(_blocks(data))
        self._last: tuple[Params, Params] = ({"chain.initial": torch.empty(0)}, {})
        emission.bind(self.x, None if (weight == 1).all() else self.row_weight)

    # --- Latent -------------------------------------------------------------------------------------------------
    def start(self, seeds: list[int]) -> Params:
        if self.begin is not None:
            return {name: torch.stack([value] * len(seeds)) for name, value in self.begin.items()}
        guesses = [self._guess(seed, index) for index, seed in enumerate(seeds)]
        return {name: torch.cat([guess[name] for guess in guesses]) for name in guesses[0]}

    def expect(self, params: Params) -> tuple[Params, Tensor]:
        starts = _starts(params)
        group = max(1, TOGETHER // (self.states * max([rows.stop - rows.start for _, rows in self.blocks], default=1)))
        groups = [self._expect({n: v[s : s + group] for n, v in params.items()}) for s in range(0, starts, group)]
        statistics, value = groups[0]
        if len(groups) > 1:
            statistics = {name: torch.cat([expected[0][name] for expected in groups]) for name in statistics}
            value = torch.cat([expected[1] for expected in groups])
        self._last = params, statistics
        return statistics, value

    def maximise(self, params: Params, statistics: Params) -> Params:
        emission = self.emission.maximise(_own(params), _own(statistics))
        first, pairs = statistics["chain.first"], statistics["chain.pairs"] + self.prior * self.allowed
        return {
            **emission,
            "chain.initial": _proportions(first, self.first, params["chain.initial"]),
            "chain.transition": _proportions(pairs, self.allowed, params["chain.transition"]),
        }

    def log_prior(self, params: Params) -> Tensor | float:
        if self.prior == 0:
            return 0.0
        logs = params["chain.transition"].clamp_min(LEAST).log()
        return self.prior * torch.where(self.allowed, logs, 0.0).sum((-2, -1))

    # --- as a density -------------------------------------------------------------------------------------------
    differentiable = True

    @property
    def may_empty(self) -> bool:
        return int(self.first.sum()) > 1

    @property
    def width(self) -> int:
        return max(1, self.states * self.x.shape[1] * len(self.x) // max(1, len(self.data)))

    def to_free(self, params: Params) -> Params:
        first, following = self._simplices
        return {
            **self.emission.to_free(_own(params)),
            "chain.initial": first.free(params["chain.initial"].unsqueeze(-2)),
            "chain.transition": following.free(params["chain.transition"]),
        }

    def from_free(self, free: Params) -> Params:
        first, following = self._simplices
        return {
            **self.emission.from_free(_own(free)),
            "chain.initial": first.natural(free["chain.initial"]).squeeze(-2),
            "chain.transition": following.natural(free["chain.transition"]),
        }

    def finished(self, params: Params) -> Params:
        chain = {name: value for name, value in params.items() if name.startswith("chain.")}
        return {**self.emission.finished(_own(params)), **chain}

    def rows(self) -> tuple[Ragged, Tensor | None]:
        weight = None if (self.weight == 1).all() else torch.from_numpy(self.weight)
        return self.data, weight

    def row_log_prob(self, params: Params, x: Ragged) -> Tensor:
        log_emission = self.emission.smooth_log_prob(_own(params), x.values)  # (T, S, K)
        evidence = chains_log_prob(*_logarithms(params, self.first, self.allowed), log_emission, x.offsets)
        smoothing = self.emission.smoothing  # EM's value has this term too
        if smoothing == 0:
            return evidence
        background = torch.zeros_like(evidence).index_add(0, x.owner, log_emission.sum(-1))
        return evidence + smoothing / self.count * background

    def value_and_grad(self, free: Params, x: Ragged, weight: Tensor | None, fraction: float) -> tuple[Tensor, Params]:
        """By the posterior of the states: ∂ log p(x) / ∂ log bₜ = γₜ, / ∂ log A = Σ ξ, / ∂ log π = γ₁."""
        first, following = self._simplices
        log_emission, pull = self.emission.log_prob_and_pull(_own(free), x.values)
        initial, first_sticks = first.logs(free["chain.initial"])
        transition, sticks = following.logs(free["chain.transition"])
        value, start, pairs, posterior = smooth_chains(initial.squeeze(-2), transition, log_emission, x.offsets)
        steps: Tensor | float = 1.0  # the weight of each
        if weight is None:
            value, start, pairs = (part.sum(0) for part in (value, start, pairs))
        else:
            value, start, pairs = (torch.tensordot(weight.to(part), part, 1) for part in (value, start, pairs))
            steps = weight.to(posterior)[x.owner][:, None, None]
            posterior *= steps
        if self.emission.smoothing > 0:
            background = self.emission.smoothing / self.count * steps
            value = value + (background * log_emission).sum(0).sum(-1)
            posterior += background
        if self.prior > 0:
            value = value + self.prior * fraction * torch.where(self.allowed, transition, 0.0).sum((-2, -1))
            pairs = pairs + self.prior * fraction * self.allowed
        return value, {
            **pull(posterior),
            "chain.initial": first.pull(first_sticks, start.unsqueeze(-2)),
            "chain.transition": following.pull(sticks, pairs),
        }

    @cached_property
    def _simplices(self) -> tuple[Simplex, Simplex]:
        return Simplex(self.first.unsqueeze(0)), Simplex(self.allowed)

    def at(self, params: Params) -> Params:
        """The sums over all sequences of all processes, for parameters without an axis of starts."""
        last, statistics = self._last
        for index in range(_starts(last)):
            if all(torch.equal(value, last[name][index]) for name, value in params.items()):
                return {name: value[index] for name, value in statistics.items()}
        statistics, _ = self.expect({name: value.unsqueeze(0) for name, value in params.items()})
        distributed.sum_(*statistics.values())
        return {name: value[0] for name, value in statistics.items()}

    # --- the E-step ---------------------------------------------------------------------------------------------
    def _expect(self, params: Params) -> tuple[Params, Tensor]:
        """The E-step of some starts."""
        own, starts = _own(params), _starts(params)
        totals = self.emission.zeros(starts, self.states)
        shapes = {"chain.first": (self.states,), "chain.pairs": (self.states, self.states), "chain.log_prob": ()}
        chain = {name: torch.zeros(starts, *shape, dtype=torch.float64) for name, shape in shapes.items()}
        value = torch.zeros(starts, dtype=torch.float64)
        for sequences, rows in self.blocks:
            x = self.x[rows]
            log_emission = self.emission.log_prob(own, x)  # (rows, S, K)
            if self.emission.smoothing > 0:
                value += self.emission.background(own, x, log_emission, self.row_weight[rows] / self.count)
            posterior = self._smooth(chain, params, log_emission, sequences)
            self.emission.accumulate(totals, own, x, posterior, rows)
        return {**totals, **chain}, value + chain["chain.log_prob"]

    def _smooth(self, chain: Params, params: Params, log_emission: Tensor, sequences: slice) -> Tensor:
        """γ of a block, (rows, S, K); what concerns the chain is added to its sums."""
        offsets = self.offsets[sequences.start : sequences.stop + 1]
        offsets, weight = offsets - offsets[0], self.weight[sequences]
        posteriors = []
        for s in range(log_emission.shape[1]):
            initial, transition = params["chain.initial"][s].numpy(), params["chain.transition"][s].numpy()
            memory = self.memory if log_emission.shape[1] == 1 else None
            smoothed = forward_backward(initial, transition, log_emission[:, s].numpy(), offsets, weight, memory)
            self._refuse_impossible(smoothed.impossible, sequences.start)
            chain["chain.first"][s] += torch.from_numpy(smoothed.first)
            chain["chain.pairs"][s] += torch.from_numpy(smoothed.pairs)
            chain["chain.log_prob"][s] += float(weight @ smoothed.log_prob)
            posteriors.append(torch.from_numpy(smoothed.posterior))
        return torch.stack(posteriors, 1) if len(posteriors) > 1 else posteriors[0].unsqueeze(1)

    def _refuse_impossible(self, impossible: np.ndarray, start: int) -> None:
        if (impossible >= 0).any():
            place = int(np.flatnonzero(impossible >= 0)[0])
            raise DataError(
                f"sequence {start + place} is impossible from step {impossible[place]} on: no allowed state gives what "
                "is seen there a positive probability; allow more transitions, raise smoothing, or leave it out."
            )

    # --- first guesses ------------------------------------------------------------------------------------------
    def _guess(self, seed: int, index: int) -> Params:
        """Rows in clusters (or each sequence in segments, if states are ordered), as if those were the states."""
        if self.ordered:
            weights = self._segments(seed, even=index == 0 and self.init == "k-means++")
            weights = weights * self.row_weight.unsqueeze(-1)
        else:
            points = features(self.x, self.emission.label_columns())
            weights = first_weights(points, self.states, seed, self.init, self.row_weight)
        label = np.where(weights.any(1).numpy(), weights.argmax(1).numpy(), -1)
        counts = self._neighbours(label)
        if not self.ordered and not bool(self.allowed.all()):
            order = _arranged(counts, self.allowed.numpy())
            weights, counts = weights[:, order], counts[order][:, order]
        totals = self.emission.zeros(1, self.states)
        self.emission.accumulate(totals, None, self.x, weights.unsqueeze(1), slice(0, len(self.x)))
        transition = torch.from_numpy(counts) + counts.sum() / self.states**2 + 1.0  # half seen, half even
        even = torch.ones(1, self.states, dtype=torch.float64)
        return {
            **self.emission.maximise(None, totals),
            "chain.initial": _proportions(even, self.first, even),
            "chain.transition": _proportions(transition.unsqueeze(0), self.allowed, transition.unsqueeze(0)),
        }

    def _segments(self, seed: int, *, even: bool) -> Tensor:
        """Each sequence cut into K parts, even ones or at random."""
        random = np.random.default_rng(seed)
        weights = torch.zeros(len(self.x), self.states, dtype=torch.float64)
        for start, length in zip(self.offsets, np.diff(self.offsets), strict=False):
            cuts = np.arange(1, self.states) / self.states if even else np.sort(random.random(self.states - 1))
            state = np.searchsorted(cuts, (np.arange(length) + 0.5) / length)
            weights[torch.arange(start, start + length), torch.from_numpy(state)] = 1.0
        return weights

    def _neighbours(self, label: np.ndarray) -> np.ndarray:
        """How often each label follows each, within sequences, by their weights: (K, K)."""
        before, after = label[:-1], label[1:]
        inside = np.ones(len(before), dtype=bool)
        inside[self.offsets[1:-1] - 1] = False
        inside &= (before >= 0) & (after >= 0)
        counts = np.zeros((self.states, self.states))
        np.add.at(counts, (before[inside], after[inside]), self.row_weight.numpy()[:-1][inside])
        return counts


def _blocks(data: Ragged) -> Iterator[tuple[slice, slice]]:
    """Whole sequences, as many as make a block, of those that are this process's: (sequences, rows)."""
    own, offsets = distributed.shard(len(data)), data.offsets.numpy()
    start = own.start
    while start < own.stop:
        stop = int(np.searchsorted(offsets, offsets[start] + BLOCK, side="right")) - 1
        stop = min(max(stop, start + 1), own.stop)
        yield slice(start, stop), slice(int(offsets[start]), int(offsets[stop]))
        start = stop


def _proportions(counts: Tensor, allowed: Tensor, before: Tensor) -> Tensor:
    """Counts of what is allowed as probabilities; where there are none, what was before."""
    counts = torch.where(allowed, counts, 0.0)
    total = counts.sum(-1, keepdim=True)
    proportion = torch.where(total > 0, counts / total.clamp_min(1e-300), before)
    return torch.where(allowed, proportion.clamp_min(LEAST), 0.0)


def _logarithms(params: Params, first: Tensor, allowed: Tensor) -> tuple[Tensor, Tensor]:
    """log π and log A; −∞, and no gradient, where a state or a transition is not allowed."""
    pairs = ((params["chain.initial"], first), (params["chain.transition"], allowed))
    return tuple(  # type: ignore[return-value]
        torch.where(may, torch.where(may, value, 1.0).clamp_min(LEAST).log(), -torch.inf) for value, may in pairs
    )


def _own(tensors: Params) -> Params:
    """What belongs to the emission."""
    return {name: value for name, value in tensors.items() if not name.startswith("chain.")}


def _starts(params: Params) -> int:
    return len(params["chain.initial"])


def _arranged(counts: np.ndarray, allowed: np.ndarray) -> list[int]:
    """An order of the labels in which as many neighbours as possible are allowed, by exchanging pairs."""
    order = list(range(len(counts)))

    def fits(order: list[int]) -> Any:
        return counts[order][:, order][allowed].sum()

    best, better = fits(order), True
    while better:
        better = False
        for i in range(len(order)):
            for j in range(i):
                trial = order.copy()
                trial[i], trial[j] = trial[j], trial[i]
                value = fits(trial)
                if value > best:
                    order, best, better = trial, value, True
    return order
