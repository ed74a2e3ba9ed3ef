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

__all__ = ["chains_log_prob", "smooth_chains"]

TOGETHER = 64
"""Models that go over a sequence side by side: what is kept of them stays in a cache."""


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


def smooth_chains(
    log_initial: Tensor, log_transition: Tensor, log_emission: Tensor, offsets: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """log p of each sequence (n, S), and what it depends on: γ₁ (n, S, K), Σ ξ (n, S, K, K) and all γ (T, S, K).

    >>> start, move = torch.tensor([[0.5, 0.5]]).log(), torch.tensor([[[0.9, 0.1], [0.1, 0.9]]]).log()
    >>> emission = torch.tensor([[[0.2, 0.4]], [[0.3, 0.1]]]).log()
    >>> smooth_chains(start, move, emission, torch.tensor([0, 2]))[3][:, 0]         # p(zₜ | x)
    tensor([[0.5385, 0.4615],
            [0.6346, 0.3654]])
    """
    given = ((log_initial, 0), (log_transition, 0), (log_emission, 1))
    initial, transition, emission = (part.detach().double().cpu().movedim(axis, -1) for part, axis in given)
    starts = np.ascontiguousarray(offsets.cpu().numpy().astype(np.int64))
    top = emission.amax(1)
    top = torch.where(top == -torch.inf, 0.0, top)  # what cannot be seen is 0 in every state
    states, members = initial.shape
    value = torch.empty(len(starts) - 1, members, dtype=torch.float64)
    first, pairs = (value.new_zeros(len(value), *shape, members) for shape in ((states,), (states, states)))
    posterior = value.new_zeros(len(emission), states, members)
    parts = (initial.exp(), transition.exp(), (emission - top.unsqueeze(1)).exp(), top)
    written = (value, first, pairs, posterior)
    _smooth(*(part.contiguous().numpy() for part in parts), starts, *(part.numpy() for part in written))
    return value.to(log_emission), *(part.movedim(-1, 1).to(log_emission) for part in written[1:])  # type: ignore[return-value]


class _Chains(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, log_initial: Tensor, log_transition: Tensor, log_emission: Tensor, offsets: Tensor) -> Tensor:
        value, *ctx.parts = smooth_chains(log_initial, log_transition, log_emission, offsets)
        ctx.owner = torch.repeat_interleave(torch.arange(len(value)), offsets.diff())
        return value

    @staticmethod
    @torch.autograd.function.once_differentiable  # type: ignore[untyped-decorator]
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        first, pairs, posterior = ctx.parts
        weight = gradient.unsqueeze(-1)  # (n, S, 1)
        return (first * weight).sum(0), (pairs * weight.unsqueeze(-1)).sum(0), posterior * weight[ctx.owner], None


@njit(cache=True, nogil=True, error_model="numpy")  # type: ignore[untyped-decorator]
def _smooth(
    initial: np.ndarray,  # (K, S)
    transition: np.ndarray,  # (K, K, S)
    emitted: np.ndarray,  # (T, K, S), the largest of each step 1
    top: np.ndarray,  # (T, S), the logarithm of what that took
    offsets: np.ndarray,
    value: np.ndarray,
    first: np.ndarray,
    pairs: np.ndarray,
    posterior: np.ndarray,
) -> None:
    """Forward and backward for each sequence; writes log p, γ₁, Σ ξ and γ.

    The innermost loops go over models, which do not wait for one another: the processor takes several at once.
    """
    states, members = initial.shape
    longest = 0
    for n in range(len(offsets) - 1):
        longest = max(longest, offsets[n + 1] - offsets[n])
    width = min(members, TOGETHER)
    forward, inverse = np.empty((longest, states, width)), np.empty((longest, width))
    beta, moved, counted = np.empty((states, width)), np.empty((states, width)), np.empty((states, states, width))
    mass, product, total = np.empty(width), np.empty(width), np.empty(width)
    for begin in range(0, members, TOGETHER):
        size = min(TOGETHER, members - begin)
        for n in range(len(offsets) - 1):
            total[:] = 0.0
            product[:] = 1.0
            for t in range(offsets[n + 1] - offsets[n]):
                row = offsets[n] + t
                mass[:] = 0.0
                for k in range(states):
                    here = forward[t, k]
                    seen = emitted[row, k, begin : begin + size]
                    if t == 0:
                        here[:size] = initial[k, begin : begin + size]
                    else:
                        here[:] = 0.0
                        for j in range(states):
                            before, move = forward[t - 1, j], transition[j, k, begin : begin + size]
                            for s in range(size):
                                here[s] += before[s] * move[s]
                    for s in range(size):
                        here[s] *= seen[s]
                        mass[s] += here[s]
                scale, level = inverse[t], top[row, begin : begin + size]
                small = False
                for s in range(size):
                    scale[s] = 1.0 / mass[s]
                    small |= not product[s] * mass[s] > 1e-200  # NaN as well
                    total[s] += level[s]
                for k in range(states):
                    here = forward[t, k]
                    for s in range(size):
                        here[s] *= scale[s]
                if not small:  # a logarithm takes longer than all the rest: one for many steps
                    for s in range(size):
                        product[s] *= mass[s]
                    continue
                for s in range(size):
                    total[s] += np.log(product[s]) + np.log(mass[s])
                    product[s] = 1.0
                    if not total[s] > -np.inf:  # impossible from here on, and without a gradient
                        total[s] = -np.inf
                        scale[s] = 0.0
                        for k in range(states):
                            forward[t, k, s] = 0.0
                            emitted[row, k, begin + s] = 0.0
            for s in range(size):
                value[n, begin + s] = total[s] + np.log(product[s])
            beta[:] = 1.0
            counted[:] = 0.0
            for t in range(offsets[n + 1] - offsets[n] - 1, -1, -1):
                row = offsets[n] + t
                scale = inverse[t]
                for k in range(states):
                    here, after, target = forward[t, k], beta[k], posterior[row, k, begin : begin + size]
                    seen, weight = emitted[row, k, begin : begin + size], moved[k]
                    for s in range(size):
                        target[s] = here[s] * after[s]
                        weight[s] = seen[s] * after[s] * scale[s]
                if t == 0:
                    break
                for j in range(states):
                    before, after = forward[t - 1, j], beta[j]
                    after[:] = 0.0
                    for k in range(states):
                        move, weight, count = transition[j, k, begin : begin + size], moved[k], counted[j, k]
                        for s in range(size):
                            part = move[s] * weight[s]
                            after[s] += part
                            count[s] += before[s] * part
            for k in range(states):
                first[n, k, begin : begin + size] = posterior[offsets[n], k, begin : begin + size]
                for j in range(states):
                    pairs[n, j, k, begin : begin + size] = counted[j, k, :size]
