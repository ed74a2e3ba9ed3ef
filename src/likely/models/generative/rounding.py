"""The likelihood of a column of numbers that suits most tables: a mixture, rounded as the column is."""

from __future__ import annotations

from torch import Tensor

from ...likelihoods import Likelihood, NormalMixture

__all__ = ["number_likelihood", "step_of"]

COMPONENTS = 8
"""Components of the mixture."""
DIGITS = range(-3, 5)
"""Decimal places that numbers may be rounded to: from thousands to the fourth after the point."""


def number_likelihood(column: Tensor) -> Likelihood:
    """A mixture of Normals. All columns have as many components, so that they can be computed together.

    >>> number_likelihood(torch.tensor([1.0, 2.0, 5.0]))
    NormalMixture(components=8, step=1.0)
    """
    return NormalMixture(COMPONENTS, step_of(column[~column.isnan()]))


def step_of(values: Tensor) -> float | None:
    """The largest power of ten that all values are multiples of; None if they are not rounded.

    >>> step_of(torch.tensor([300.0, 1200.0])), step_of(torch.tensor([0.25, 3.0])), step_of(torch.tensor([1 / 3]))
    (100.0, 0.01, None)
    """
    for digits in DIGITS:
        scaled = values.double() * 10.0**digits
        if bool(((scaled - scaled.round()).abs() <= 1e-6 * scaled.abs().clamp_min(1.0)).all()):
            return 10.0**-digits
    return None
