"""How well a linear model fits as a whole: deviance and dispersion.

    D = 2 Σ w (log p(y | best η of the row) − log p(y | η̂))        φ = Σ w (y − μ)² / V(μ) / (n − p)

For a Normal, as in every table of a regression: D is the residual sum of squares, φ = σ² without bias.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from ...inference.linear.design import Regression
from ...likelihoods import Likelihood
from ...likelihoods.offset import _WithOffset

__all__ = ["deviance_of", "dispersion_of"]

STEPS = 60
"""Of Newton's method towards the best η of single rows: where it lies at infinity, each comes nearer by 1."""


def deviance_of(regression: Regression, likelihood: Likelihood) -> float:
    """D over all rows."""
    total = 0.0
    for eta, y, weight in _fitted(regression):
        if likelihood.least_squares:
            gap = (y - eta[:, 0]).square()
        else:
            best = torch.zeros_like(eta[:, 0]) if likelihood.labels else _saturated(regression, likelihood, eta, y)
            gap = 2 * (best - likelihood.log_prob(eta, y))
        total += float((gap * weight).sum())
    return total


def dispersion_of(regression: Regression, likelihood: Likelihood, parameters: int) -> float:
    """φ over all rows; NaN for labels, which have no mean."""
    if likelihood.labels and regression.design.layer.out_features // regression.design.outputs > 1:
        return float("nan")
    squares, count = 0.0, 0.0
    for eta, y, weight in _fitted(regression):
        distribution = likelihood.distribution(eta)
        variance = torch.ones_like(y) if likelihood.least_squares else distribution.variance
        squares += float((weight * (y - distribution.mean).square() / variance).sum())
        count += float(weight.sum())
    return squares / (count - parameters) if count > parameters else float("nan")


def _fitted(regression: Regression) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """η, y and the weight of all rows, in blocks."""
    design = regression.design
    own = design.layer.out_features // design.outputs
    for x, y, weight in regression.blocks():
        eta = design.layer(x)[:, regression.output * own : (regression.output + 1) * own].detach()
        if design.module.shared is not None:
            shared = design.module.shared.detach().view(-1, design.shared)[regression.output]
            eta = torch.cat([eta, shared.expand(len(x), -1)], -1)
        family = design.problem.likelihood
        if isinstance(family, _WithOffset):
            eta, y = family.apart(eta, y)
        yield eta, y, eta.new_ones(len(y)) if weight is None else weight


def _saturated(regression: Regression, likelihood: Likelihood, eta: Tensor, y: Tensor) -> Tensor:
    """log p of each row at the η that suits it best, its learned constants held."""
    own = regression.design.layer.out_features // regression.design.outputs
    point, best = eta.clone(), likelihood.log_prob(eta, y)
    for _ in range(STEPS):
        _, score, second = likelihood.derivatives_in(own, point, y)
        step = torch.linalg.lstsq(second, score[:, :own].unsqueeze(-1)).solution.squeeze(-1).clamp(-50.0, 50.0)
        length = 1.0
        for _ in range(8):
            trial = point.clone()
            trial[:, :own] += length * step
            value = likelihood.log_prob(trial, y)
            better = value > best
            point, best = torch.where(better.unsqueeze(-1), trial, point), torch.where(better, value, best)
            step = torch.where(better.unsqueeze(-1), 0.0, step)
            length /= 4
            if bool(better.all()):
                break
    return best
