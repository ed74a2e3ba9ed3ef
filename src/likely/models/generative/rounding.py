"""The likelihood of a column of numbers that suits most tables: a mixture, rounded as the column is."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from ...likelihoods import Likelihood, NormalMixture

__all__ = ["number_likelihood", "on_grid", "significant", "step_of"]

COMPONENTS = 8
"""Components of the mixture."""
DIGITS = 4
"""Decimal places of numbers that count as rounded, at most."""


def number_likelihood(column: Tensor) -> Likelihood:
    """A mixture of Normals. All columns have as many components, so that they can be computed together.

    >>> import torch
    >>> number_likelihood(torch.tensor([1.0, 2.0, 5.0]))
    NormalMixture(components=8, step=1.0)
    """
    return NormalMixture(COMPONENTS, step_of(column[~column.isnan()]))


def step_of(values: Tensor) -> float | None:
    """The largest step that all values are multiples of; None if they have more than four decimal places.

    >>> import torch
    >>> step_of(torch.tensor([300.0, 1200.0])), step_of(torch.tensor([0.25, 3.0])), step_of(torch.tensor([1 / 3]))
    (300.0, 0.25, None)
    """
    for digits in range(DIGITS + 1):
        scaled = values.double() * 10.0**digits
        whole = scaled.round()
        if bool(((scaled - whole).abs() <= 1e-6 * scaled.abs().clamp_min(1.0)).all()) and bool(
            (whole.abs() < 2**53).all()
        ):
            divisor = int(np.gcd.reduce(whole.abs().long().numpy()))
            return max(divisor, 1) / 10.0**digits
    return None


def on_grid(values: Tensor, step: float) -> Tensor:
    """The nearest multiples of a step, as they are written: 50.3 and not 50.300000000000004.

    >>> import torch
    >>> on_grid(torch.tensor([50.31, 2.04], dtype=torch.float64), 0.1).tolist()
    [50.3, 2.0]
    """
    for digits in range(DIGITS + 1):
        scaled = step * 10.0**digits
        if abs(scaled - round(scaled)) < 1e-9 * scaled:
            return (values / step).round() * round(scaled) / 10.0**digits
    return (values / step).round() * step


def significant(values: Tensor, digits: int = 8) -> Tensor:
    """Numbers of so many digits, as they are written: 2.2 and not 2.200000047683716. Zero and what is tiny stay.

    >>> significant(torch.tensor([2.2, -1234.5678, 0.0]).double()).tolist()
    [2.2, -1234.5677, 0.0]
    """
    size = values.abs()
    plain = (size > 1e-12) & (size < 1e15)  # 10ᵏ is exact up to k = 22
    places = digits - 1 - torch.where(plain, size, 1.0).log10().floor()
    up, down = 10.0 ** places.clamp_min(0), 10.0 ** (-places).clamp_min(0)
    return torch.where(plain, (values * up / down).round() * down / up, values)
