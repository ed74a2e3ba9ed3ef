"""Bounds on the error on new rows, from the error on n independent rows; each holds with probability ≥ 1 − δ.

    Hoeffding (K hypotheses)       R ≤ R̂ + √(log(K/δ) / 2n)
    Vapnik (VC dimension d)        R ≤ R̂ + 1/n + √(log(4 Π(2n)/δ) / n),      Π(m) ≤ Σ_{i≤d} (m choose i)
    PAC-Bayes (randomised)         kl(R̂ ‖ R) ≤ (KL(q‖p) + log(2√n/δ)) / n

Π(m), the growth function, is the largest number of ways in which the hypotheses label m points; the sum that bounds it
is Sauer's lemma. All but the first hold for every hypothesis at once, so also for the one that was fitted to the rows.
"""

from __future__ import annotations

import math
from typing import Literal

from ..core.errors import SpecError
from ..inference.pac_bayes.bound import binary_kl, kl_inverse, pac_bayes_bound

__all__ = [
    "binary_kl",
    "check_whole",
    "hoeffding_bound",
    "kl_inverse",
    "pac_bayes_bound",
    "sample_size",
    "sauer",
    "vc_bound",
    "vc_dimension",
]

FAMILIES = {
    "linear": lambda d: d + 1,
    "homogeneous": lambda d: d,
    "thresholds": lambda d: 1,
    "intervals": lambda d: 2,
    "rectangles": lambda d: 2 * d,
}


def vc_dimension(
    family: Literal["linear", "homogeneous", "thresholds", "intervals", "rectangles"] = "linear", features: int = 1
) -> int:
    """The most points that the family can label in every way.

    "linear": half-spaces w·x + b > 0 (d + 1); "homogeneous": those without b (d); "thresholds": x > t (1);
    "intervals": a < x < b (2); "rectangles": boxes along the axes (2d).

    >>> vc_dimension("linear", features=10)
    11
    """
    if family not in FAMILIES:
        raise SpecError(f"family={family!r} must be one of {', '.join(FAMILIES)}.")
    check_whole(features, "features", "a number of columns")
    if family in ("thresholds", "intervals") and features != 1:
        raise SpecError(f"features={features!r} must be 1 for {family}, which are sets of single numbers.")
    return FAMILIES[family](features)


def sauer(n: int, dimension: int) -> int:
    """Sauer's lemma: Σ_{i≤d} (n choose i), the most labellings of n points by a family of VC dimension d.

    >>> sauer(3, 3), sauer(10, 2)
    (8, 56)
    """
    check_whole(n, "n", "a number of points", least=0)
    check_whole(dimension, "dimension", "a VC dimension", least=0)
    if dimension >= n:
        return 2**n
    term = total = 1
    for i in range(1, dimension + 1):
        term = term * (n - i + 1) // i
        total += term
    return total


def hoeffding_bound(empirical: float, n: int, delta: float = 0.05, hypotheses: int = 1) -> float:
    """R̂ + √(log(K/δ) / 2n): for a mean of n losses in [0, 1], and for all of K hypotheses chosen before the rows.

    >>> round(hoeffding_bound(0.1, 1000), 4)
    0.1387
    """
    _checked(empirical, n, delta)
    check_whole(hypotheses, "hypotheses", "a number of hypotheses")
    return min(1.0, empirical + math.sqrt(math.log(hypotheses / delta) / (2 * n)))


def vc_bound(
    empirical: float, n: int, dimension: int, delta: float = 0.05, form: Literal["absolute", "relative"] = "absolute"
) -> float:
    """Vapnik's inequality for every hypothesis of a family at once, with Sauer's sum for its growth function Π(2n).

    "absolute":  P(sup |R − R̂| > ε) ≤ 4 Π(2n) exp(−n (ε − 1/n)²),  so  R ≤ R̂ + 1/n + √(log(4 Π(2n)/δ) / n).
    "relative":  P(sup (R − R̂)/√R > ε) ≤ 4 Π(2n) exp(−n ε²/4),  so with E = 4 log(4 Π(2n)/δ) / n
    R ≤ R̂ + E/2 (1 + √(1 + 4R̂/E)), which is of order 1/n where the rows are fitted without error.

    >>> round(vc_bound(0.0, 10_000, dimension=3), 3), round(vc_bound(0.0, 10_000, dimension=3, form="relative"), 3)
    (0.057, 0.013)
    """
    _checked(empirical, n, delta)
    excess = (math.log(sauer(2 * n, dimension)) + math.log(4 / delta)) / n
    match form:
        case "absolute":
            return min(1.0, empirical + 1 / n + math.sqrt(excess))
        case "relative":
            return min(1.0, empirical + 2 * excess * (1 + math.sqrt(1 + empirical / excess)))
    raise SpecError(f'form={form!r} must be "absolute" or "relative".')


def sample_size(gap: float, delta: float = 0.05, *, dimension: int | None = None, hypotheses: int | None = None) -> int:
    """The fewest rows for which R ≤ R̂ + gap is certain with probability ≥ 1 − δ.

    By Hoeffding for a number of `hypotheses` (1 if neither is given), or by Vapnik for a family of this VC `dimension`.

    >>> sample_size(0.05), sample_size(0.05, dimension=3)
    (600, 13303)
    """
    if not 0 < gap < 1:
        raise SpecError(f"gap={gap!r} must be above 0 and below 1.")
    _checked(0.0, 1, delta)
    if dimension is not None and hypotheses is not None:
        raise SpecError("Give dimension or hypotheses, not both: the first is for infinite families.")
    if dimension is None:
        count = 1 if hypotheses is None else hypotheses
        check_whole(count, "hypotheses", "a number of hypotheses")
        return max(1, math.ceil(math.log(count / delta) / (2 * gap**2)))
    enough = 1
    while vc_bound(0.0, enough, dimension, delta) > gap:
        enough *= 2
    few = enough // 2
    while enough - few > 1:
        middle = (few + enough) // 2
        few, enough = (few, middle) if vc_bound(0.0, middle, dimension, delta) <= gap else (middle, enough)
    return enough


def _checked(empirical: float, n: int, delta: float) -> None:
    if not 0 <= empirical <= 1:
        raise SpecError(f"empirical={empirical!r} must be a mean loss between 0 and 1.")
    check_whole(n, "n", "a number of rows")
    if not 0 < delta < 1:
        raise SpecError(f"delta={delta!r} must be a probability, above 0 and below 1.")


def check_whole(value: int, name: str, meaning: str, least: int = 1) -> None:
    """Refuse what is not an integer of `least` or more, by its name and meaning."""
    if isinstance(value, bool) or value != int(value) or value < least:
        raise SpecError(f"{name}={value!r} must be {meaning}: an integer, {least} or more.")
