"""Certificates by randomised smoothing: the most probable answer in noise cannot be changed within a radius.

    g(x) = argmax over c of  P( f(x + ε) = c ),      ε ~ Normal(0, σ² I)
    g(x + δ) = g(x)   for all   ‖δ‖₂ < σ Φ⁻¹(p),      p ≤ P( f(x + ε) = g(x) ),   p > ½

Any classifier f will do. p is the lower end of Clopper and Pearson's interval for the fraction of n draws, so that a
certificate is wrong with a probability of at most α; where p is not above ½ there is none, and the answer abstains.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy import special
from torch import Tensor

from ..core.draws import count_of
from ..core.errors import DataError, SpecError
from ..core.random import drawing, normal_like, seed_of
from ..core.threads import threads_for
from .predictors import Predicting, answering
from .victim import Scoring

__all__ = ["Certified", "certify"]


@dataclass(frozen=True)
class Certified:
    """What is certain about rows: an answer, and how far the row can be moved without changing it."""

    predicted: np.ndarray
    """The certified answers; where none is certain, the best guess."""
    radius: np.ndarray
    """No change smaller than this, in the norm below, changes the answer; 0 without a certificate."""
    abstained: np.ndarray
    """Where there is no certificate."""
    norm: float
    """The p of the norm in which radii are measured."""

    def accuracy(self, y: Any, radius: float = 0.0) -> float:
        """The fraction of rows whose answer is y, and certain within this radius."""
        right = (self.predicted == np.asarray(y)) & ~self.abstained
        return float(np.mean(right & (self.radius >= radius)))

    def __str__(self) -> str:
        sure = ~self.abstained
        middle = f", median radius {np.median(self.radius[sure]):.3g}" if sure.any() else ""
        return f"{int(sure.sum())} of {len(sure)} rows certified in the {self.norm:g}-norm{middle}"


def certify(
    model: Any, X: Any, sigma: float, n: int = 10_000, alpha: float = 0.001, *, n0: int = 100, random_state: Any = None
) -> Certified:
    """Certify the smoothed model by `n` draws of noise per row, after a first `n0` that choose its answer.

    `model` is any fitted classifier that predicts from numbers: a `Classifier`, `GaussianProcess`, `NaiveBayes` or
    `SupportVector`, one of scikit-learn, a pipeline; or a function from rows to logits. `sigma` is in the units of X.
    Models withstand noise that they were trained in: `MAP(noise=Noise(inputs=sigma))`, and no radius is beyond
    σ Φ⁻¹(α^(1/n)).

    >>> from likely import Classifier
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], ["a", "a", "b", "b"]
    >>> model = Classifier(prior="normal(1.0)").fit(X, y)
    >>> found = certify(model, [[0.0], [1.5]], sigma=1.0, n=2000, random_state=0)
    >>> bool(1.2 < found.radius[0] < 1.5), found.abstained  # the boundary is at 1.5
    (True, array([False,  True]))
    """
    if not isinstance(alpha, int | float) or not 0 < alpha < 1:
        raise SpecError(f"alpha={alpha!r} must be a probability between 0 and 1, such as 0.001.")
    draws, first = count_of(n), count_of(n0, "n0")
    victim = answering(model)
    x = victim.read(X)
    _check_sigma(sigma, x)
    classes = getattr(model, "classes_", None)
    places, bounds = np.empty(len(x), dtype=np.int64), np.empty(len(x))
    with drawing(seed_of(random_state)), threads_for(victim.work), torch.no_grad():
        for row in range(len(x)):
            place = int(_counts(victim, x[row], sigma, first).argmax())
            hits = int(_counts(victim, x[row], sigma, draws, place + 1)[place])
            places[row], bounds[row] = place, lower_bound(hits, draws, alpha)
    abstained = bounds <= 0.5
    radius = np.where(abstained, 0.0, sigma * special.ndtri(np.where(abstained, 0.75, bounds)))
    return Certified(places if classes is None else classes[places], radius, abstained, 2.0)


def lower_bound(hits: int, draws: int, alpha: float) -> float:
    """The least probability under which so many hits are not too many: P(Binomial(draws, p) ≥ hits) = α.

    >>> round(lower_bound(100, 100, 0.05), 4)  # α^(1/n)
    0.9705
    """
    return 0.0 if hits == 0 else float(special.betaincinv(hits, draws - hits + 1, alpha))


def _counts(victim: Scoring | Predicting, row: Tensor, sigma: float, draws: int, least: int = 1) -> Tensor:
    """How often each class is the answer for this row in noise: of as many classes as occur, or of `least`."""
    places = []
    for first in range(0, draws, NOISY):
        noise = normal_like(row.expand(min(NOISY, draws - first), *row.shape).contiguous())
        places.append(victim.labels(torch.add(row, noise, alpha=sigma)))
    return torch.bincount(torch.cat(places), minlength=least)


NOISY = 500
"""Draws of a row that are looked at together."""


def _check_sigma(sigma: Any, x: Tensor) -> None:
    if not isinstance(sigma, int | float | np.number) or not 0 < sigma < math.inf:
        raise SpecError(f"sigma={sigma!r} must be a positive number, in the units of X.")
    low, high = float(x.min()), float(x.max())
    if 0 < high - low < sigma / 10:
        raise DataError(
            f"sigma={sigma:g} is far beyond the range of X, which goes from {low:g} to {high:g}; it must be in the "
            "units of X."
        )
