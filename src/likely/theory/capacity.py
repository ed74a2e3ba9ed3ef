"""What linear units can hold, and how fast more of them help.

    Cover     C(n, d) = 2 Σ_{k<d} (n − 1 choose k)   of the 2ⁿ labellings of n points in ℝᵈ are separable through 0
    Barron    ∫_B (f − g_m)² dμ ≤ (2 r C_f)² / m     for some network of m sigmoids, C_f = ∫ ‖ω‖ |f̂(ω)| dω

The points are in general position: no d of them lie in a plane through 0. All labellings are separable up to n = d,
half of them at n = 2d, the capacity; for large d nearly all below it, nearly none above.
"""

from __future__ import annotations

from ..core.errors import SpecError
from .bounds import check_whole, sauer

__all__ = ["barron_bound", "capacity", "cover_count", "separable_fraction"]


def cover_count(n: int, dimension: int) -> int:
    """C(n, d): how many labellings of n points in general position a plane through 0 in ℝᵈ can make.

    A threshold (bias) counts as one dimension more.

    >>> cover_count(3, 3), cover_count(4, 3)                               # all 8, and 14 of 16: XOR is not separable
    (8, 14)
    """
    check_whole(n, "n", "a number of points")
    check_whole(dimension, "dimension", "a number of weights")
    return 2 * sauer(n - 1, dimension - 1)


def separable_fraction(n: int, dimension: int) -> float:
    """C(n, d) / 2ⁿ: the probability that a random labelling of n points is separable.

    >>> separable_fraction(10, 5), round(separable_fraction(15, 5), 3)
    (0.5, 0.09)
    """
    return cover_count(n, dimension) / 2**n


def capacity(dimension: int) -> int:
    """2d: the number of points of which half of all labellings are separable; a unit of d weights holds 2 bits each.

    >>> separable_fraction(capacity(50), 50)
    0.5
    """
    check_whole(dimension, "dimension", "a number of weights")
    return 2 * dimension


def barron_bound(constant: float, width: int, radius: float = 1.0) -> float:
    """(2 r C)²/m: the mean squared error that a network of m sigmoids need not exceed, in any number of dimensions.

    `constant` is the first moment ∫ ‖ω‖ |f̂(ω)| dω of the Fourier transform of f, where f(x) = ∫ f̂(ω) e^(iω·x) dω: ‖a‖
    for cos(a·x). `radius` is that of the ball around 0 in which the inputs lie.

    >>> barron_bound(3.0, 100)
    0.36
    """
    check_whole(width, "width", "a number of hidden units")
    for name, value in (("constant", constant), ("radius", radius)):
        if not 0 <= value < float("inf"):
            raise SpecError(f"{name}={value!r} must be a finite number, 0 or more.")
    return (2 * radius * constant) ** 2 / width
