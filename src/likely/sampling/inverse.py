"""Inverse transform sampling: a uniform number through the quantile function.

U ~ Uniform(0, 1)   ⇒   F⁻¹(U) ~ F,       F⁻¹(p) = the smallest x with F(x) ≥ p
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.distributions import Distribution

from ..core.errors import DataError
from ..probability.quantiles import quantile as quantile_of
from .density import as_generator, integer

__all__ = ["inverse_cdf", "inverse_transform"]

Function = Callable[[Tensor], Tensor]


def inverse_transform(quantile: Function | Distribution, n: int, random_state: Any = None) -> Tensor:
    """n independent draws of the distribution with this quantile function, in float64.

    A univariate torch distribution answers with its own quantiles. With only a distribution function F in hand, give
    `inverse_cdf(F, low, high)`.

    >>> draws = inverse_transform(lambda p: -torch.log1p(-p), 10_000, random_state=0)  # exponential
    >>> bool((draws.mean() - 1).abs() < 0.05)
    True
    """
    generator = as_generator(random_state)
    count = integer(n, "n", 1)
    if isinstance(quantile, Distribution):
        distribution = quantile
        shape = (count, *distribution.batch_shape, *distribution.event_shape)
        quantile = lambda p: quantile_of(distribution, p).double()  # noqa: E731 (one name for both kinds)
    else:
        shape = (count,)
    if not callable(quantile):
        raise DataError(f"quantile must be a function or a torch distribution; found {type(quantile).__name__}.")
    # rand may give 0, whose quantile is −∞ for many; half a unit in the last place keeps p inside (0, 1).
    p = torch.rand(shape, generator=generator, dtype=torch.float64) + 2.0**-54
    try:
        draws = quantile(p)
    except NotImplementedError as error:
        raise DataError(
            f"{type(distribution).__name__} has no quantile function; give inverse_cdf(cdf, low, high)."
        ) from error
    if not isinstance(draws, Tensor) or draws.shape != p.shape:
        raise DataError(f"quantile must give a tensor with one number for each probability, shape {tuple(p.shape)}.")
    if bool(draws.isnan().any()):
        raise DataError(f"quantile is NaN at the probability {p[draws.isnan()][0].item():.6g}.")
    return draws


def inverse_cdf(cdf: Function, low: float, high: float) -> Function:
    """The quantile function of a distribution function F on [low, high], by bisection to the last bit.

    F must not fall, and reach from F(low) = 0 to F(high) = 1 (up to 1e-6: what lies outside is moved to the ends).

    >>> inverse_cdf(lambda x: x**2, 0.0, 1.0)(torch.tensor([0.25, 0.81], dtype=torch.float64))
    tensor([0.5000, 0.9000], dtype=torch.float64)
    """
    if not low < high or not torch.isfinite(torch.tensor([low, high])).all():
        raise DataError(f"low and high must be finite with low < high; found {low!r} and {high!r}.")
    ends = torch.tensor([low, high], dtype=torch.float64)
    reached = cdf(ends)
    if not (abs(float(reached[0])) <= 1e-6 and abs(float(reached[1]) - 1) <= 1e-6):
        raise DataError(
            f"cdf is {float(reached[0]):.6g} at low={low:g} and {float(reached[1]):.6g} at high={high:g}; it must "
            "reach from 0 to 1 between them: widen the bracket."
        )

    def quantile(p: Tensor) -> Tensor:
        p = p.double()
        below, above = torch.full_like(p, low), torch.full_like(p, high)
        for _ in range(1100):  # enough for any two floating numbers
            middle = 0.5 * below + 0.5 * above
            if bool(((middle <= below) | (middle >= above)).all()):
                break
            enough = cdf(middle) >= p
            above = torch.where(enough, middle, above)
            below = torch.where(enough, below, middle)
        return above

    return quantile
