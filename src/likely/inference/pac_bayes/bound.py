"""PAC-Bayes bounds: with probability ≥ 1 − δ over n rows, for every distribution q of parameters at once,

    kl(R̂(q) ‖ R(q)) ≤ c = (KL(q‖p) + log(2√n/δ)) / n        kl(a ‖ b) = a log a/b + (1 − a) log (1 − a)/(1 − b)

R(q) is the mean loss (in [0, 1]) of one parameter vector drawn from q for each prediction, p any distribution that was
chosen without the rows.
"""

from __future__ import annotations

import math
from typing import Literal

from scipy.special import xlogy

from ...core.errors import SpecError

__all__ = ["binary_kl", "kl_inverse", "pac_bayes_bound"]


def binary_kl(a: float, b: float) -> float:
    """kl(a ‖ b) between coins with these probabilities: a log a/b + (1 − a) log (1 − a)/(1 − b).

    >>> round(binary_kl(0.5, 0.25), 4)
    0.1438
    """
    if (b <= 0 and a > 0) or (b >= 1 and a < 1):
        return math.inf
    rest = (1 - a) * (math.log1p(-a) - math.log1p(-b)) if a < 1 and b < 1 else 0.0
    return max(float(xlogy(a, a / b)) + rest if a > 0 else rest, 0.0)


def kl_inverse(q: float, c: float) -> float:
    """The largest p with kl(q ‖ p) ≤ c, by bisection: from a mean seen, the largest true mean still believable.

    >>> round(kl_inverse(0.0, 0.1), 6) == round(1 - math.exp(-0.1), 6)
    True
    >>> round(kl_inverse(0.1, binary_kl(0.1, 0.3)), 9)
    0.3
    """
    if not 0 <= q <= 1:
        raise SpecError(f"q={q!r} must be a mean between 0 and 1.")
    if not c >= 0:
        raise SpecError(f"c={c!r} must be 0 or more.")
    low, high = q, 1.0
    while high - low > 1e-15 * high:
        middle = 0.5 * (low + high)
        if middle in (low, high):
            break
        low, high = (middle, high) if binary_kl(q, middle) <= c else (low, middle)
    return high  # the end above the root, so that rounding never makes the bound too small


def pac_bayes_bound(
    empirical: float, kl: float, n: int, delta: float = 0.05, form: Literal["kl", "mcallester", "quadratic"] = "kl"
) -> float:
    """A bound on the true mean loss of the randomised predictor, which holds with probability ≥ 1 − δ.

    `empirical` is its mean loss on the n rows, `kl` = KL(q‖p). With c = (kl + log(2√n/δ)) / n the forms are
    "kl": the inverse of kl(R̂ ‖ ·) at c (Seeger, Langford, Maurer), the tightest; "mcallester": R̂ + √(c/2);
    "quadratic": (√(R̂ + c/2) + √(c/2))², which is differentiable and tight for small R̂.

    >>> [round(pac_bayes_bound(0.05, 20.0, 1000, form=form), 3) for form in ("kl", "quadratic", "mcallester")]
    [0.117, 0.136, 0.166]
    """
    if not 0 <= empirical <= 1:
        raise SpecError(f"empirical={empirical!r} must be a mean loss between 0 and 1.")
    if not kl >= 0:
        raise SpecError(f"kl={kl!r} must be 0 or more: it is a Kullback-Leibler divergence.")
    if not n >= 1:
        raise SpecError(f"n={n!r} must be a number of rows, 1 or more.")
    if not 0 < delta < 1:
        raise SpecError(f"delta={delta!r} must be a probability, above 0 and below 1.")
    c = (kl + math.log(2 * math.sqrt(n) / delta)) / n
    match form:
        case "kl":
            return kl_inverse(empirical, c)
        case "mcallester":
            return min(1.0, empirical + math.sqrt(c / 2))
        case "quadratic":
            return min(1.0, (math.sqrt(empirical + c / 2) + math.sqrt(c / 2)) ** 2)
    raise SpecError(f'form={form!r} must be "kl", "mcallester" or "quadratic".')
