"""log p(x) of hidden Markov chains as a differentiable function, so that a network can sit inside the emission.

    ∂ log p(x) / ∂ log bₜ(j) = γₜ(j),      ∂ log p(x) / ∂ log Aᵢⱼ = Σₜ ξₜ(i, j),      ∂ log p(x) / ∂ log πⱼ = γ₁(j)

The derivatives are the posterior of the states: one run forward and backward gives all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numba import njit
from torch import Tensor

from ...core.doors import check_offsets, check_sizes
from ...core.errors import DataError
from ...core.interrupt import interruptible
from ...data.sequences import offsets_of
from .forward_backward import IN_LOGS, Memory, filter_states, forward_backward
from .log_domain import forward_in_logs, smooth_in_logs

__all__ = ["as_array", "chain_log_prob", "filter_scores", "sample_paths", "sample_states", "smooth_scores"]


def chain_log_prob(
    log_initial: Tensor, log_transition: Tensor, log_emission: Tensor, lengths: Sequence[int] | None = None
) -> Tensor:
    """log p(x) of each sequence, (n,), differentiable once in all three arguments.

    `log_initial` is (K,), `log_transition` (K, K), and `log_emission` (T, K) holds the sequences one after the other;
    without `lengths` they are one. Nothing need be normalised: then the value is the logarithm of the sum over all
    paths of exp(scores). A sequence of probability 0 has value −∞ and no gradient.

    Here the states' means are functions of an input u, found by gradient ascent:

    >>> _ = torch.manual_seed(0)
    >>> u = torch.linspace(-1, 1, 60).unsqueeze(-1)
    >>> x = torch.where(torch.arange(60) // 10 % 2 == 0, u[:, 0], 2 - u[:, 0])         # two regimes, ten steps each
    >>> network, change = torch.nn.Linear(1, 2), torch.zeros(2, 2, requires_grad=True)
    >>> optimizer = torch.optim.Adam([*network.parameters(), change], lr=0.1)
    >>> for step in range(300):
    ...     log_emission = torch.distributions.Normal(network(u), 0.5).log_prob(x.unsqueeze(-1))
    ...     value = chain_log_prob(torch.zeros(2).log_softmax(0), change.log_softmax(1), log_emission).sum()
    ...     optimizer.zero_grad()
    ...     _ = (-value).backward()
    ...     optimizer.step()
    >>> [round(slope) for slope in sorted(network.weight.ravel().tolist())]
    [-1, 1]
    """
    states = log_emission.shape[-1] if log_emission.ndim == 2 else -1
    if log_initial.shape != (states,) or log_transition.shape != (states, states):
        shapes = [tuple(logs.shape) for logs in (log_initial, log_transition, log_emission)]
        raise DataError(f"chain_log_prob needs shapes (K,), (K, K) and (T, K); found {', '.join(map(str, shapes))}.")
    offsets = offsets_of(lengths, len(log_emission))
    return _Chain.apply(log_initial, log_transition, log_emission, offsets)  # type: ignore[no-any-return]


class _Chain(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, log_initial: Tensor, log_transition: Tensor, log_emission: Tensor, offsets: Any) -> Tensor:
        ctx.save_for_backward(log_initial, log_transition, log_emission)
        ctx.offsets = offsets
        initial, transition, emission = map(as_array, (log_initial, log_transition, log_emission))
        log_sum, _ = filter_scores(initial, transition, emission, offsets)
        return torch.from_numpy(log_sum).to(log_emission)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        return (*_Posterior.apply(gradient, *ctx.saved_tensors, ctx.offsets), None)


class _Posterior(torch.autograd.Function):
    """The derivatives, as a function of their own: one that says so when they are to be differentiated in turn."""

    @staticmethod
    def forward(
        ctx: Any, gradient: Tensor, log_initial: Tensor, log_transition: Tensor, log_emission: Tensor, offsets: Any
    ) -> tuple[Tensor, ...]:
        given = (log_initial, log_transition, log_emission)
        initial, transition, emission = map(as_array, given)
        _, *parts = smooth_scores(initial, transition, emission, offsets, as_array(gradient))
        return tuple(torch.from_numpy(part).to(own) for part, own in zip(parts, given, strict=True))

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> None:  # type: ignore[override]
        raise NotImplementedError("chain_log_prob can be differentiated once, not twice.")


def filter_scores(
    log_initial: np.ndarray, log_transition: np.ndarray, log_emission: np.ndarray, offsets: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """log Σ exp(score) over the paths of each sequence (n,), and the filtered p(zₜ | x₁ … xₜ) (T, K), of any scores.

    >>> filter_scores(np.zeros(2), np.zeros((2, 2)), np.log([[3.0, 1.0]]), np.array([0, 1]))[1]
    array([[0.75, 0.25]])
    """
    initial, transition, level = _scaled(log_initial, log_transition, offsets)
    if _writable(initial, transition):
        log_prob, filtered, _ = filter_states(np.exp(initial), np.exp(transition), log_emission, offsets)
    else:
        log_prob, unused = np.empty(len(level)), np.empty(len(level), np.int64)
        filtered = np.empty(log_emission.shape)
        given = (initial, transition, log_emission, offsets)
        interruptible(_work(log_emission), forward_in_logs, *given, filtered, log_prob, unused)
    return log_prob + level, filtered


def smooth_scores(
    log_initial: np.ndarray,
    log_transition: np.ndarray,
    log_emission: np.ndarray,
    offsets: np.ndarray,
    weight: np.ndarray | None = None,
    memory: Memory | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """log Σ exp(score) of each sequence (n,), and Σ γ₁ (K,), Σ ξ (K, K) and γ (T, K) of paths drawn by exp(score).

    With `memory`, γ is overwritten next time.

    >>> smooth_scores(np.zeros(2), np.zeros((2, 2)), np.log([[3.0, 1.0]]), np.array([0, 1]))[3]
    array([[0.75, 0.25]])
    """
    initial, transition, level = _scaled(log_initial, log_transition, offsets)
    if _writable(initial, transition):
        smoothed = forward_backward(np.exp(initial), np.exp(transition), log_emission, offsets, weight, memory)
        return smoothed.log_prob + level, smoothed.first, smoothed.pairs, smoothed.posterior
    weight = np.ones(len(level)) if weight is None else weight
    parts = (np.zeros_like(initial), np.zeros_like(transition), np.empty(log_emission.shape))
    log_sum, unused, every = np.empty(len(level)), np.empty(len(level), np.int64), np.arange(len(level))
    given = (initial, transition, log_emission, offsets, weight, every)
    interruptible(_work(log_emission), smooth_in_logs, *given, *parts[::-1], log_sum, unused)
    return log_sum + level, *parts


def _work(log_emission: np.ndarray) -> float:
    return log_emission.size * log_emission.shape[1] * IN_LOGS


def as_array(values: Tensor) -> np.ndarray:
    """In float64, as compiled loops take it."""
    if values.dtype == torch.bfloat16:  # numpy has none
        values = values.double()
    return np.ascontiguousarray(values.numpy(force=True), np.float64)


def _scaled(
    log_initial: np.ndarray, log_transition: np.ndarray, offsets: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Both less their largest values, and what that takes from log p(x) of each sequence."""
    tops = [top if np.isfinite(top := logs.max()) else 0.0 for logs in (log_initial, log_transition)]
    level = tops[0] + (np.diff(offsets) - 1) * tops[1]
    return log_initial - tops[0], log_transition - tops[1], level


def _writable(*logs: np.ndarray) -> bool:
    """Whether no exponential of these, except that of −∞, is too small to be written."""
    return all(((values > -700) | (values == -np.inf)).all() for values in logs)


def sample_paths(filtered: np.ndarray, transition: np.ndarray, offsets: np.ndarray, uniform: np.ndarray) -> np.ndarray:
    """States (T,) drawn from p(z | x), backwards, from the filtered p(zₜ | x₁ … xₜ) and a uniform number for each step.

    p(zₜ | zₜ₊₁, x) ∝ p(zₜ | x₁ … xₜ) p(zₜ₊₁ | zₜ)

    >>> filtered, transition = np.array([[0.5, 0.5], [0.0, 1.0]]), np.array([[1.0, 0.0], [0.0, 1.0]])
    >>> sample_paths(filtered, transition, np.array([0, 2]), np.array([0.1, 0.1]))
    array([1, 1])
    """
    shapes = {"filtered": (filtered, "T K"), "transition": (transition, "K K"), "uniform": (uniform, "T")}
    check_offsets("sample_paths", offsets, check_sizes("sample_paths", shapes)["T"])
    return _sample_paths(filtered, transition, offsets, uniform)  # type: ignore[no-any-return]


@njit(cache=True)  # type: ignore[untyped-decorator]
def _sample_paths(filtered: np.ndarray, transition: np.ndarray, offsets: np.ndarray, uniform: np.ndarray) -> np.ndarray:
    steps, states = filtered.shape
    path = np.empty(steps, dtype=np.int64)
    for n in range(len(offsets) - 1):
        for t in range(offsets[n + 1] - 1, offsets[n] - 1, -1):
            last = t == offsets[n + 1] - 1
            whole = 0.0
            for k in range(states):
                whole += filtered[t, k] * (1.0 if last else transition[k, path[t + 1]])
            total, chosen = 0.0, -1
            for k in range(states):
                own = filtered[t, k] * (1.0 if last else transition[k, path[t + 1]])
                if own > 0.0:
                    total += own
                    chosen = k
                    if uniform[t] * whole < total:
                        break
            path[t] = chosen
    return path


def sample_states(initial: np.ndarray, transition: np.ndarray, uniform: np.ndarray) -> np.ndarray:
    """Paths of a Markov chain, (n, T), from as many uniform numbers: by inversion of the cumulated probabilities.

    >>> sample_states(np.array([1.0, 0.0]), np.array([[0.5, 0.5], [0.0, 1.0]]), np.array([[0.3, 0.2, 0.7, 0.1]]))
    array([[0, 0, 1, 1]])
    """
    shapes = {"initial": (initial, "K"), "transition": (transition, "K K"), "uniform": (uniform, "n T")}
    check_sizes("sample_states", shapes)
    if not ((initial > 0).any() and (transition > 0).any(1).all()):
        raise DataError("sample_states needs a state that can follow in each row of initial and transition.")
    return _sample_states(initial, transition, uniform)  # type: ignore[no-any-return]


@njit(cache=True)  # type: ignore[untyped-decorator]
def _sample_states(initial: np.ndarray, transition: np.ndarray, uniform: np.ndarray) -> np.ndarray:
    count, steps = uniform.shape
    states = initial.shape[0]
    path = np.empty((count, steps), dtype=np.int64)
    for n in range(count):
        for t in range(steps):
            row = initial if t == 0 else transition[path[n, t - 1]]
            total, chosen = 0.0, -1
            for k in range(states):
                if row[k] > 0.0:
                    total += row[k]
                    chosen = k  # the last possible state, should the probabilities sum to a little less than 1
                    if uniform[n, t] < total:
                        break
            path[n, t] = chosen
    return path
