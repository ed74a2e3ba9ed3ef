"""The digamma function ψ = (log Γ)′ and its exponential, for inner loops: arithmetic only.

ψ(x) = ψ(x + 8) − Σ_{i<8} 1/(x + i),      ψ(y + ½) ~ log y + 1/24y² − 7/960y⁴ + 31/8064y⁶ − …
"""

from __future__ import annotations

import math
from typing import Any

from numba import njit

__all__ = ["digamma", "exp_digamma"]

INLINE: dict[str, Any] = {"cache": True, "error_model": "numpy", "inline": "always"}


@njit(**INLINE)
def _correction(x: float) -> float:
    """ψ(x) − log(x + 7.5): the tail of the series less the eight reciprocals, which share one division.

    The factors x + i pair up to q, q + 6, q + 10, q + 12 with q = x(x + 7).
    """
    q = x * (x + 7.0)
    left, right = q * (q + 6.0), (q + 10.0) * (q + 12.0)
    reciprocals = (2.0 * x + 7.0) * ((2.0 * q + 6.0) * right + (2.0 * q + 22.0) * left) / (left * right)
    r = 1.0 / ((x + 7.5) * (x + 7.5))
    tail = 511.0 / 67584.0 + r * (-1414477.0 / 67092480.0 + r * (8191.0 / 98304.0))
    tail = r * (1.0 / 24.0 + r * (-7.0 / 960.0 + r * (31.0 / 8064.0 + r * (-127.0 / 30720.0 + r * tail))))
    return tail - reciprocals


@njit(**INLINE)
def digamma(x: float) -> float:
    """ψ(x) for 0 < x < 1e38, to 1e-14 of max(1, |ψ|).

    >>> round(digamma(1.0), 12)  # −γ, Euler's constant
    -0.577215664902
    """
    return math.log(x + 7.5) + _correction(x)


@njit(**INLINE)
def exp_digamma(x: float) -> float:
    """exp ψ(x) for 0 < x < 1e38, to 1e-12 relative; what would be below e⁻⁷⁰⁰ stays there.

    exp t is (exp t/1024)¹⁰²⁴ by ten squarings, which run on all lanes of a loop; a call of exp does not.

    >>> round(exp_digamma(1.0), 12)
    0.561459483567
    """
    t = max(_correction(x), -700.0) / 1024.0  # |t| < 0.7, where fifteen terms of the series are enough
    e = 1 / 479001600 + t * (1 / 6227020800 + t * (1 / 87178291200 + t * (1 / 1307674368000)))
    e = 1 / 40320 + t * (1 / 362880 + t * (1 / 3628800 + t * (1 / 39916800 + t * e)))
    e = 1 / 24 + t * (1 / 120 + t * (1 / 720 + t * (1 / 5040 + t * e)))
    e = 1.0 + t * (1.0 + t * (1 / 2 + t * (1 / 6 + t * e)))
    for _ in range(10):
        e *= e
    return (x + 7.5) * e
