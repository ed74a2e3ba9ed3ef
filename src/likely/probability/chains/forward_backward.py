"""Forward and backward along hidden Markov chains: what is hidden at each step, given all that is seen.

    αₜ(j) = bₜ(j) Σᵢ αₜ₋₁(i) Aᵢⱼ,      βₜ₋₁(i) = Σⱼ Aᵢⱼ bₜ(j) βₜ(j),      log p(x) = log Σⱼ α_T(j)
    γₜ(j) = p(zₜ = j | x) ∝ αₜ(j) βₜ(j),      ξₜ(i, j) = p(zₜ₋₁ = i, zₜ = j | x) ∝ αₜ₋₁(i) Aᵢⱼ bₜ(j) βₜ(j)

Each step is divided by its sum, and bₜ by its largest value, so no length underflows. What a probability loses by being
below 1e-308 of its neighbours cannot matter where Σ αβ of each step stays far above that; the few chains where it does
not (forced through steps that every allowed state finds absurd) are taken once more with logarithms. ξ is summed over
time as one matrix product: nothing of size T × K × K is made.
"""

from __future__ import annotations

import threading
from typing import NamedTuple

import numpy as np
import torch
from numba import njit

from ...core.doors import check_offsets, check_sizes
from ...core.interrupt import interruptible
from ...core.threads import available_threads
from .log_domain import forward_in_logs, smooth_in_logs

__all__ = ["Memory", "Smoothed", "filter_states", "forward_backward"]

COMPILED = {"cache": True, "error_model": "numpy", "fastmath": {"contract", "nsz"}, "nogil": True}
"""Products and sums may be fused, but not reordered: otherwise the compiler widens the wrong loop."""

LEAST_STEP = 1e-100
"""Below this fraction of what the best state would give, a step is worth a second look with logarithms."""
LEAST_MEETING = 1e-150
"""The same for Σ αβ, where forward and backward meet."""
WORTH_A_THREAD = 2**19
"""Numbers from which on forward and backward run at once, if torch is allowed more than one thread."""
IN_LOGS = 10.0
"""How much more a step takes with logarithms, at most."""
NARROW = 16
"""Up to so many states a row of the product is kept in registers."""


class Smoothed(NamedTuple):
    """What all steps together say: log p(x) of each sequence, and expectations, weighted by sequence."""

    log_prob: np.ndarray  # (n,)
    posterior: np.ndarray  # (T, K), γ
    pairs: np.ndarray  # (K, K), Σ ξ
    first: np.ndarray  # (K,), Σ γ₁
    impossible: np.ndarray  # (n,), the step at which no state is possible; −1 if there is none


class Memory:
    """Working memory that is kept between calls: fresh memory of this size costs as much as the recursion.

    >>> memory = Memory()
    >>> memory.of("alpha", 5, 2)[:] = 1.0
    >>> float(memory.of("alpha", 3, 2).sum())
    6.0
    """

    def __init__(self) -> None:
        self._kept: dict[str, np.ndarray] = {}

    def of(self, name: str, rows: int, width: int) -> np.ndarray:
        """An array (rows, width) with whatever it held before."""
        kept = self._kept.get(name)
        if kept is None or kept.shape[1] != width or len(kept) < rows:
            kept = self._kept[name] = np.empty((rows, width))
        return kept[:rows]


def forward_backward(
    initial: np.ndarray,  # (K,) p(z₁)
    transition: np.ndarray,  # (K, K) p(zₜ = j | zₜ₋₁ = i) in row i
    log_emission: np.ndarray,  # (T, K) log p(xₜ | zₜ), sequences one after the other
    offsets: np.ndarray,  # (n + 1,) where each sequence starts
    weight: np.ndarray | None = None,  # (n,)
    memory: Memory | None = None,
) -> Smoothed:
    """Expectations of the hidden states given whole sequences. With `memory`, the posterior is overwritten next time.

    >>> offsets = np.array([0, 2])
    >>> log_emission = np.log([[0.9, 0.2], [0.1, 0.7]])
    >>> smoothed = forward_backward(np.array([0.5, 0.5]), np.array([[0.8, 0.2], [0.3, 0.7]]), log_emission, offsets)
    >>> smoothed.log_prob.round(4), smoothed.posterior.round(3).tolist()
    (array([-1.8905]), [[0.656, 0.344], [0.258, 0.742]])
    """
    check_chain("forward_backward", initial, transition, log_emission, offsets)
    memory = memory or Memory()
    emission, shift, initial, transition, log_emission = _prepared(initial, transition, log_emission, memory)
    steps, states = log_emission.shape
    count = len(offsets) - 1
    alpha, beta, ahead = (memory.of(name, *emission.shape) for name in ("alpha", "beta", "ahead"))
    level, posterior = memory.of("level", steps, 1)[:, 0], memory.of("posterior", steps, states)
    log_prob, smallest, first = np.empty(count), np.empty(count), np.zeros(len(initial))
    weight = np.ones(count) if weight is None else np.ascontiguousarray(weight, dtype=np.float64)
    check_sizes("forward_backward", {"offsets": (offsets[1:], "n"), "weight": (weight, "n")})
    forwards = (initial, transition, emission, shift, offsets, alpha, level, log_prob, smallest)
    backwards = (np.ascontiguousarray(transition.T), emission, offsets, beta, ahead)
    work = emission.size * float(len(initial))
    if available_threads() > 1 and emission.size > WORTH_A_THREAD:  # neither way waits for the other
        thread = threading.Thread(target=_forwards, args=forwards, daemon=True)
        thread.start()
        interruptible(work, _backwards, *backwards)
        thread.join()
    else:
        interruptible(work, _forwards, *forwards)
        interruptible(work, _backwards, *backwards)
    doubtful = ~(smallest >= LEAST_STEP)
    _meetings(alpha, level, beta, ahead, offsets, weight, posterior, first, doubtful)
    together = torch.from_numpy(alpha)[:-1].T @ torch.from_numpy(ahead)[1:]
    pairs = (together.numpy() * transition)[:states, :states].copy()
    first, impossible = first[:states].copy(), np.full(count, -1)
    if doubtful.any():
        chosen = np.flatnonzero(doubtful)
        logs = _logarithms(initial[:states], transition[:states, :states])
        expected = (posterior, pairs, first, log_prob, impossible)
        interruptible(work * IN_LOGS, smooth_in_logs, *logs, log_emission, offsets, weight, chosen, *expected)
    return Smoothed(log_prob, posterior, pairs, first, impossible)


def filter_states(
    initial: np.ndarray, transition: np.ndarray, log_emission: np.ndarray, offsets: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """log p(x) (n,), p(zₜ | x₁ … xₜ) (T, K), and the step at which no state is possible (n,; −1 if there is none).

    >>> offsets = np.array([0, 2])
    >>> log_emission = np.log([[0.9, 0.2], [0.1, 0.7]])
    >>> initial, transition = np.array([0.5, 0.5]), np.array([[0.8, 0.2], [0.3, 0.7]])
    >>> log_prob, posterior, _ = filter_states(initial, transition, log_emission, offsets)
    >>> log_prob.round(4), posterior.round(3).tolist()
    (array([-1.8905]), [[0.818, 0.182], [0.258, 0.742]])
    """
    check_chain("filter_states", initial, transition, log_emission, offsets)
    count, (steps, states) = len(offsets) - 1, log_emission.shape
    log_prob, impossible = np.empty(count), np.full(count, -1)
    if min(initial.min(), transition.min()) < LEAST_STEP:  # what looks lost may be all that is left later on
        filtered, logs = np.empty((steps, states)), _logarithms(initial, transition)
        log_emission = np.ascontiguousarray(log_emission, dtype=np.float64)
        work, places = log_emission.size * states * IN_LOGS, (filtered, log_prob, impossible)
        interruptible(work, forward_in_logs, *logs, log_emission, offsets, *places)
        return log_prob, filtered, impossible
    emission, shift, initial, transition, log_emission = _prepared(initial, transition, log_emission, Memory())
    alpha, level = np.empty_like(emission), np.empty(steps)
    told = (alpha, level, log_prob, np.empty(count))
    interruptible(emission.size * float(states), _forwards, initial, transition, emission, shift, offsets, *told)
    known = level[:, None] > 0
    filtered = np.divide(alpha[:, :states], level[:, None], out=np.zeros((steps, states)), where=known)
    for sequence in np.flatnonzero(log_prob == -np.inf):
        rows = slice(offsets[sequence], offsets[sequence + 1])
        impossible[sequence] = int(np.flatnonzero((log_emission[rows] == -np.inf).all(1))[0])
        filtered[rows][impossible[sequence] :] = 0.0
    return log_prob, filtered, impossible


def check_chain(
    owner: str, initial: np.ndarray, transition: np.ndarray, log_emission: np.ndarray, offsets: np.ndarray
) -> None:
    """What the compiled recursions of this folder index: shapes that agree, and sequences that cover the steps."""
    shapes = {"initial": (initial, "K"), "transition": (transition, "K K"), "log_emission": (log_emission, "T K")}
    check_sizes(owner, shapes)
    check_offsets(owner, offsets, len(log_emission))


def _logarithms(initial: np.ndarray, transition: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    with np.errstate(divide="ignore"):
        return np.log(initial), np.log(np.ascontiguousarray(transition))


def _prepared(
    initial: np.ndarray, transition: np.ndarray, log_emission: np.ndarray, memory: Memory
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """exp(log b − shift) with the shifts, and all arrays with states that never occur up to a multiple of four."""
    log_emission = np.ascontiguousarray(log_emission, dtype=np.float64)
    steps, states = log_emission.shape
    width = -(-states // 4) * 4
    emission, shift = memory.of("emission", steps, width), memory.of("shift", steps, 1)[:, 0]
    _shift(log_emission, emission, shift)
    torch.from_numpy(emission).exp_()
    first, follow = np.zeros(width), np.zeros((width, width))
    first[:states], follow[:states, :states] = initial, transition
    return emission, shift, first, follow, log_emission


@njit(**COMPILED)  # type: ignore[untyped-decorator]
def _shift(log_emission: np.ndarray, emission: np.ndarray, shift: np.ndarray) -> None:
    steps, states = log_emission.shape
    for t in range(steps):
        largest = -np.inf
        for k in range(states):
            largest = max(largest, log_emission[t, k])
        shift[t] = largest
        for k in range(states):
            emission[t, k] = log_emission[t, k] - largest if largest > -np.inf else -np.inf
        for k in range(states, emission.shape[1]):
            emission[t, k] = -np.inf


@njit(inline="always", **COMPILED)  # type: ignore[untyped-decorator]
def _product(
    row: np.ndarray, matrix: np.ndarray, scale: float, gain: np.ndarray, plain: np.ndarray, out: np.ndarray
) -> float:
    """plain = (row · matrix) · scale, out = plain ∘ gain, and the sum of that.

    Four columns at a time, in two chains that do not wait for each other. Indices are unsigned, which tells the
    compiler that none of them counts from the end.
    """
    size = row.shape[0]
    total = 0.0
    if size > NARROW:
        for to in range(size):
            out[to] = 0.0
        for state in range(size):
            own = row[state]
            for to in range(size):
                out[to] += own * matrix[state, to]
        for to in range(size):
            plain[to] = out[to] * scale
            out[to] *= scale * gain[to]
            total += out[to]
        return total
    one, two, three = np.uintp(1), np.uintp(2), np.uintp(3)
    for column in range(0, size, 4):
        j = np.uintp(column)
        a0, a1, a2, a3 = 0.0, 0.0, 0.0, 0.0
        b0, b1, b2, b3 = 0.0, 0.0, 0.0, 0.0
        for pair in range(0, size, 2):
            i = np.uintp(pair)
            p, q = row[i], row[i + one]
            a0 += p * matrix[i, j]
            a1 += p * matrix[i, j + one]
            a2 += p * matrix[i, j + two]
            a3 += p * matrix[i, j + three]
            b0 += q * matrix[i + one, j]
            b1 += q * matrix[i + one, j + one]
            b2 += q * matrix[i + one, j + two]
            b3 += q * matrix[i + one, j + three]
        a0, a1, a2, a3 = (a0 + b0) * scale, (a1 + b1) * scale, (a2 + b2) * scale, (a3 + b3) * scale
        plain[j] = a0
        plain[j + one] = a1
        plain[j + two] = a2
        plain[j + three] = a3
        a0, a1, a2, a3 = a0 * gain[j], a1 * gain[j + one], a2 * gain[j + two], a3 * gain[j + three]
        out[j] = a0
        out[j + one] = a1
        out[j + two] = a2
        out[j + three] = a3
        total += (a0 + a1) + (a2 + a3)
    return total


@njit(**COMPILED)  # type: ignore[untyped-decorator]
def _forward(
    initial: np.ndarray,
    transition: np.ndarray,
    emission: np.ndarray,
    shift: np.ndarray,
    alpha: np.ndarray,
    level: np.ndarray,
    start: int,
    stop: int,
) -> tuple[float, float]:
    """log p(x) of one sequence, and its smallest step. αₜ keeps its sum, level[t] = p(xₜ | x₁ … xₜ₋₁) / exp shift.

    The division by a step's sum is made in the next step, which so need not wait for it.
    """
    states = initial.shape[0]
    predicted, total = np.empty(states), 0.0
    for j in range(states):
        alpha[start, j] = initial[j] * emission[start, j]
        total += alpha[start, j]
    level[start] = total
    for t in range(start + 1, stop):
        total = _product(alpha[t - 1], transition, 1.0 / total, emission[t], predicted, alpha[t])
        level[t] = total
    return _log_of_product(level[start:stop], shift[start:stop])


@njit(**COMPILED)  # type: ignore[untyped-decorator]
def _log_of_product(factors: np.ndarray, shifts: np.ndarray) -> tuple[float, float]:
    """Σ log factor + Σ shift, with one logarithm for as many factors as can be multiplied; the least factor."""
    smallest, total, product = np.inf, 0.0, 1.0
    for t in range(factors.shape[0]):
        own = factors[t]
        if own == 0.0:  # what follows is not a number
            return -np.inf, 0.0
        if not own >= smallest:
            smallest = own
        total += shifts[t]
        product *= own
        if product < LEAST_MEETING or product > 1.0 / LEAST_MEETING:
            total += np.log(product)
            product = 1.0
    return total + np.log(product), smallest


@njit(**COMPILED)  # type: ignore[untyped-decorator]
def _forwards(
    initial: np.ndarray,
    transition: np.ndarray,
    emission: np.ndarray,
    shift: np.ndarray,
    offsets: np.ndarray,
    alpha: np.ndarray,
    level: np.ndarray,
    log_prob: np.ndarray,
    smallest: np.ndarray,
) -> None:
    for n in range(offsets.shape[0] - 1):
        log_prob[n], smallest[n] = _forward(
            initial, transition, emission, shift, alpha, level, offsets[n], offsets[n + 1]
        )


@njit(**COMPILED)  # type: ignore[untyped-decorator]
def _backward(
    backwards: np.ndarray, emission: np.ndarray, beta: np.ndarray, ahead: np.ndarray, start: int, stop: int
) -> None:
    """βₜ ≤ 1, and bₜ βₜ, whose recursion is the forward one with the transposed transition, from the end."""
    total = 0.0
    for j in range(backwards.shape[0]):
        beta[stop - 1, j] = 1.0
        ahead[stop - 1, j] = emission[stop - 1, j]
        total += emission[stop - 1, j]
    for t in range(stop - 2, start - 1, -1):
        total = _product(ahead[t + 1], backwards, 1.0 / total, emission[t], beta[t], ahead[t])


@njit(**COMPILED)  # type: ignore[untyped-decorator]
def _backwards(
    backwards: np.ndarray, emission: np.ndarray, offsets: np.ndarray, beta: np.ndarray, ahead: np.ndarray
) -> None:
    for n in range(offsets.shape[0] - 1):  # one loop in each function: with two, the inner one is compiled badly
        _backward(backwards, emission, beta, ahead, offsets[n], offsets[n + 1])


@njit(**COMPILED)  # type: ignore[untyped-decorator]
def _meet(
    alpha: np.ndarray, level: np.ndarray, beta: np.ndarray, ahead: np.ndarray, weight: float, posterior: np.ndarray
) -> bool:
    """γ of one sequence, and bβ scaled so that ξ = A ∘ α bβ, with 0 at the first step; whether all is well."""
    steps, states = alpha.shape
    well = True
    for t in range(steps):
        meeting = 0.0
        for j in range(states):
            meeting += alpha[t, j] * beta[t, j]
        well &= meeting >= LEAST_MEETING * level[t]
        scale = weight / meeting
        for j in range(posterior.shape[1]):
            posterior[t, j] = alpha[t, j] * beta[t, j] * scale
        scale = scale / level[t - 1] if t > 0 else 0.0
        for j in range(states):
            ahead[t, j] *= scale
    return well


@njit(**COMPILED)  # type: ignore[untyped-decorator]
def _meetings(
    alpha: np.ndarray,
    level: np.ndarray,
    beta: np.ndarray,
    ahead: np.ndarray,
    offsets: np.ndarray,
    weight: np.ndarray,
    posterior: np.ndarray,
    first: np.ndarray,
    doubtful: np.ndarray,
) -> None:
    """All sequences that are not doubtful; those that now are leave nothing behind."""
    for n in range(offsets.shape[0] - 1):
        start, stop = offsets[n], offsets[n + 1]
        if not doubtful[n]:
            own = (alpha[start:stop], level[start:stop], beta[start:stop], ahead[start:stop])
            doubtful[n] = not _meet(*own, weight[n], posterior[start:stop])
        if doubtful[n]:
            alpha[start:stop] = 0.0
            ahead[start:stop] = 0.0
        else:
            for j in range(posterior.shape[1]):
                first[j] += posterior[start, j]
