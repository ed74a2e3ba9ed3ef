"""log p(x) of sequences for many hidden Markov models side by side, with all derivatives, in one compiled pass.

    α̂ₜ ∝ bₜ ⊙ (Aᵀ α̂ₜ₋₁),   β̂ₜ = A (bₜ₊₁ ⊙ β̂ₜ₊₁) / cₜ₊₁,   γₜ = α̂ₜ ⊙ β̂ₜ,   log p(x) = Σₜ log cₜ

What `chain_log_prob` does for one model, this does for the S draws of a sampler at once.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numba import njit
from torch import Tensor

__all__ = ["chains_log_prob"]


def chains_log_prob(log_initial: Tensor, log_transition: Tensor, log_emission: Tensor, offsets: Tensor) -> Tensor:
    """log p of each of n sequences for each of S models, (n, S), differentiable once in the first three arguments.

    `log_initial` is (S, K), `log_transition` (S, K, K), `log_emission` (T, S, K); `offsets` (n + 1,) says where
    sequences start. A sequence of probability 0 has value −∞ and no gradient.

    >>> start, move = torch.tensor([[0.5, 0.5]]).log(), torch.tensor([[[0.9, 0.1], [0.1, 0.9]]]).log()
    >>> emission = torch.tensor([[[0.2, 0.4]], [[0.3, 0.1]]]).log()
    >>> chains_log_prob(start, move, emission, torch.tensor([0, 2])).exp()          # sums over four paths
    tensor([[0.0520]])
    """
    value: Tensor = _Chains.apply(log_initial, log_transition, log_emission, offsets)
    return value


class _Chains(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, log_initial: Tensor, log_transition: Tensor, log_emission: Tensor, offsets: Tensor) -> Tensor:
        given = (log_initial, log_transition, log_emission)
        logs = [np.ascontiguousarray(part.detach().double().cpu().numpy()) for part in given]
        starts = np.ascontiguousarray(offsets.cpu().numpy().astype(np.int64))
        members, states = logs[0].shape
        value = np.empty((len(starts) - 1, members))
        first, pairs = (np.zeros((len(value), members, *shape)) for shape in ((states,), (states, states)))
        posterior = np.zeros(logs[2].shape)
        _smooth(*logs, starts, value, first, pairs, posterior)
        ctx.parts = tuple(torch.from_numpy(part).to(log_emission) for part in (first, pairs, posterior))
        ctx.owner = torch.repeat_interleave(torch.arange(len(value)), torch.from_numpy(np.diff(starts)))
        return torch.from_numpy(value).to(log_emission)

    @staticmethod
    @torch.autograd.function.once_differentiable  # type: ignore[untyped-decorator]
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        first, pairs, posterior = ctx.parts
        weight = gradient.unsqueeze(-1)  # (n, S, 1)
        return (first * weight).sum(0), (pairs * weight.unsqueeze(-1)).sum(0), posterior * weight[ctx.owner], None


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _smooth(
    log_initial: np.ndarray,
    log_transition: np.ndarray,
    log_emission: np.ndarray,
    offsets: np.ndarray,
    value: np.ndarray,
    first: np.ndarray,
    pairs: np.ndarray,
    posterior: np.ndarray,
) -> None:
    """Forward and backward for each model and sequence; writes log p, γ₁, Σ ξ and γ."""
    members, states = log_initial.shape
    longest = 0
    for n in range(len(offsets) - 1):
        longest = max(longest, offsets[n + 1] - offsets[n])
    forward, emitted = np.empty((longest, states)), np.empty((longest, states))
    scale, beta, moved = np.empty(longest), np.empty(states), np.empty(states)
    for s in range(members):
        initial, transition = np.exp(log_initial[s]), np.exp(log_transition[s])
        for n in range(len(offsets) - 1):
            begin, steps, total, possible = offsets[n], offsets[n + 1] - offsets[n], 0.0, True
            for t in range(steps):
                top = -np.inf
                for k in range(states):
                    top = max(top, log_emission[begin + t, s, k])
                if not np.isfinite(top):
                    possible = False
                    break
                mass = 0.0
                for k in range(states):
                    emitted[t, k] = np.exp(log_emission[begin + t, s, k] - top)
                    reach = initial[k]
                    if t > 0:
                        reach = 0.0
                        for j in range(states):
                            reach += forward[t - 1, j] * transition[j, k]
                    forward[t, k] = reach * emitted[t, k]
                    mass += forward[t, k]
                if not mass > 0.0:
                    possible = False
                    break
                for k in range(states):
                    forward[t, k] /= mass
                scale[t] = mass
                total += np.log(mass) + top
            if not possible:
                value[n, s] = -np.inf
                continue
            value[n, s] = total
            beta[:] = 1.0
            for t in range(steps - 1, -1, -1):
                for k in range(states):
                    posterior[begin + t, s, k] = forward[t, k] * beta[k]
                if t > 0:
                    for k in range(states):
                        moved[k] = emitted[t, k] * beta[k] / scale[t]
                    for j in range(states):
                        beta[j] = 0.0
                        for k in range(states):
                            part = transition[j, k] * moved[k]
                            beta[j] += part
                            pairs[n, s, j, k] += forward[t - 1, j] * part
            for k in range(states):
                first[n, s, k] = posterior[begin, s, k]
