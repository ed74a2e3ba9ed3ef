"""One step of all blocks of a causal encoder, compiled: it is too little work to call an operation for each part.

exp and erf are polynomials that run over several numbers at once, as the compiler's own do not:

    eˣ = 2ⁿ Σₖ rᵏ/k!,   r = x − n log 2          erf x = 1 − t P(t) e^(−x²),   t = 1/(1 + 0.3275911 x)

The first is right to the rounding of float32; so is the second, which is formula 7.1.26 of Abramowitz and Stegun.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

__all__ = ["step_blocks"]

COMPILED = {"cache": True, "error_model": "numpy", "fastmath": {"contract", "nsz", "reassoc", "arcp"}, "nogil": True}
"""Sums may be reordered, so that several are added at once."""
IN_ORDER = COMPILED | {"fastmath": {"contract", "nsz"}}
"""Where the order of operations is what makes a result exact."""


@njit(**COMPILED)  # type: ignore[untyped-decorator]
def step_blocks(
    x: np.ndarray,
    at: int,
    keys: np.ndarray,
    values: np.ndarray,
    norms: np.ndarray,
    biases: np.ndarray,
    joint: np.ndarray,
    out: np.ndarray,
    inner: np.ndarray,
    outer: np.ndarray,
    scale: float,
    eps: float,
    pre: bool,
    rectified: bool,
) -> None:
    """x (n, width) becomes what the blocks make of it at step `at`; its keys and values are put at that place.

    Keys and values are (n, layers, heads, steps, size). Weights are stacked over layers: `joint` of queries, keys and
    values, `out` after the heads, `inner` and `outer` of the network; `biases` are of all four, one after the other.
    `norms` are (layers, 2 norms, gain and shift, width). The activation is ReLU where it is `rectified`, or else GELU.
    """
    rows, width = x.shape
    hidden = inner.shape[1]
    normal, seen = np.empty_like(x), np.empty_like(x)
    three, wide = np.empty((rows, 3 * width), x.dtype), np.empty((rows, hidden), x.dtype)
    for layer in range(len(out)):
        bias = biases[layer]
        if pre:
            _normalise(x, norms[layer, 0], eps, normal)
        else:
            normal[:] = x
        _affine(normal, joint[layer], bias[: 3 * width], three)
        _attend(three, at, keys, values, layer, scale, seen)
        _affine(seen, out[layer], bias[3 * width : 4 * width], normal)
        x += normal
        if pre:
            _normalise(x, norms[layer, 1], eps, normal)
        else:
            _normalise(x, norms[layer, 0], eps, x)
            normal[:] = x
        _affine(normal, inner[layer], bias[4 * width : 4 * width + hidden], wide)
        _activate(wide, rectified)
        _affine(wide, outer[layer], bias[4 * width + hidden :], normal)
        x += normal
        if not pre:
            _normalise(x, norms[layer, 1], eps, x)


@njit(**COMPILED)  # type: ignore[untyped-decorator]
def _affine(x: np.ndarray, weight: np.ndarray, bias: np.ndarray, y: np.ndarray) -> None:
    """y = Wx + b of each row; four rows at a time, so that a weight is read once for all of them."""
    rows, size = x.shape
    first = 0
    while first + 4 <= rows:
        for j in range(len(weight)):
            a = b = c = d = bias[j]
            for i in range(size):
                a += weight[j, i] * x[first, i]
                b += weight[j, i] * x[first + 1, i]
                c += weight[j, i] * x[first + 2, i]
                d += weight[j, i] * x[first + 3, i]
            y[first, j], y[first + 1, j], y[first + 2, j], y[first + 3, j] = a, b, c, d
        first += 4
    for row in range(first, rows):
        for j in range(len(weight)):
            a = bias[j]
            for i in range(size):
                a += weight[j, i] * x[row, i]
            y[row, j] = a


@njit(**COMPILED)  # type: ignore[untyped-decorator]
def _normalise(x: np.ndarray, norm: np.ndarray, eps: float, y: np.ndarray) -> None:
    """Layer norm of each row: gain·(x − mean)/√(variance + ε) + shift."""
    rows, width = x.shape
    for row in range(rows):
        mean = x.dtype.type(0)
        for i in range(width):
            mean += x[row, i]
        mean /= width
        square = x.dtype.type(0)
        for i in range(width):
            square += (x[row, i] - mean) ** 2
        over = x.dtype.type(1 / math.sqrt(square / width + eps))
        for i in range(width):
            y[row, i] = (x[row, i] - mean) * over * norm[0, i] + norm[1, i]


@njit(**COMPILED)  # type: ignore[untyped-decorator]
def _attend(
    three: np.ndarray, at: int, keys: np.ndarray, values: np.ndarray, layer: int, scale: float, seen: np.ndarray
) -> None:
    """Keep the keys and values of this step, and let its queries look at all there are."""
    rows, _, heads, _, size = keys.shape
    width = heads * size
    weight, whole, zero = np.empty(at + 1, np.float32), np.empty(at + 1, np.int32), np.float32(0)
    for row in range(rows):
        for head in range(heads):
            first = head * size
            key, value = keys[row, layer, head], values[row, layer, head]
            for i in range(size):
                key[at, i] = three[row, width + first + i]
                value[at, i] = three[row, 2 * width + first + i]
            largest = zero
            for t in range(at + 1):
                score = zero
                for i in range(size):
                    score += three[row, first + i] * key[t, i]
                weight[t] = score * scale
                largest = weight[t] if t == 0 else max(largest, weight[t])
            for t in range(at + 1):
                weight[t] -= largest
            _exponential(weight, whole)
            total = zero
            for i in range(size):
                seen[row, first + i] = 0
            for t in range(at + 1):
                total += weight[t]
                for i in range(size):
                    seen[row, first + i] += weight[t] * value[t, i]
            for i in range(size):
                seen[row, first + i] /= total


@njit(**COMPILED)  # type: ignore[untyped-decorator]
def _activate(x: np.ndarray, rectified: bool) -> None:
    """ReLU, or GELU: x Φ(x) = x (1 + erf(x/√2))/2."""
    rows, width = x.shape
    tail, whole = np.empty(width, np.float32), np.empty(width, np.int32)
    half, one, root = np.float32(0.5), np.float32(1), np.float32(math.sqrt(0.5))
    for row in range(rows):
        if rectified:
            for i in range(width):
                x[row, i] = max(x[row, i], np.float32(0))
            continue
        for i in range(width):
            tail[i] = -half * x[row, i] * x[row, i]
        _exponential(tail, whole)
        for i in range(width):
            t = one / (one + np.float32(0.3275911) * root * abs(x[row, i]))
            p = np.float32(1.061405429)
            for a in (-1.453152027, 1.421413741, -0.284496736, 0.254829592):
                p = p * t + np.float32(a)
            beyond = half * t * p * tail[i]  # Φ(−|x|)
            x[row, i] *= beyond if x[row, i] < 0 else one - beyond


@njit(**IN_ORDER)  # type: ignore[untyped-decorator]
def _exponential(x: np.ndarray, whole: np.ndarray) -> None:
    """eˣ for x ≤ 0, in place: 2ⁿ is written as the exponent of a number."""
    least, over, size = np.float32(-87.0), np.float32(1 / math.log(2)), len(x)
    log_two, below = np.float32(0.693359375), np.float32(-2.12194440e-4)  # log 2 in two parts, the first short
    for i in range(size):
        value = max(x[i], least)
        n = np.floor(value * over + np.float32(0.5))
        rest = value - n * log_two - n * below
        p = np.float32(1 / 720)
        for a in (1 / 120, 1 / 24, 1 / 6, 1 / 2, 1.0, 1.0):
            p = p * rest + np.float32(a)
        x[i] = p
        whole[i] = (np.int32(n) + np.int32(127)) << np.int32(23)
    power = whole.view(np.float32)
    for i in range(size):
        x[i] *= power[i]
