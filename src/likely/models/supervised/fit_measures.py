"""How well a linear model fits as a whole: deviance and dispersion, those of generalised linear models.

    D = 2 φ Σ w (log p(y | best η of the row) − log p(y | η̂))      φ̂ = Σ w (y − μ)² / V(μ) / (n − p),   Var y = φ V(μ)

Neither depends on the φ that was learned. For a Normal φ is σ², so D is the residual sum of squares and φ̂ is σ² without
bias; for a Gamma φ is 1/α and V = μ²; a LogNormal is a Normal of log y. Other families have no φ: counts and labels
(φ = 1), or constants that are no factor of the variance (NegativeBinomial, StudentT, Beta, ZeroInflated …). These are
held at what was learned, so that D is twice the distance to the best log-likelihood, V the variance of the fitted
distribution, and φ̂ near 1 where the family describes the scatter. A family whose scatter depends on x has neither.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
from torch import Tensor

from ...inference.linear.design import Design, Regression
from ...likelihoods import Likelihood
from ...likelihoods.offset import _WithOffset

__all__ = ["measures_of"]

STEPS = 60
"""Of Newton's method towards the best η of single rows: where it lies at infinity, each comes nearer by 1."""


def measures_of(design: Design, likelihood: Likelihood, coefficients: int) -> dict[str, float]:
    """`deviance` over all outputs, and of a single output with a mean its `dispersion`, where they are known."""
    numbers = design.layer.out_features // design.outputs
    if numbers > 1 and not likelihood.labels:
        return {}
    regressions = [design.regression(output) for output in range(design.outputs)]
    told = {"deviance": sum(_deviance(regression, likelihood) for regression in regressions)}
    if numbers == 1 and design.outputs == 1 and not likelihood.ordered:
        told["dispersion"] = _dispersion(regressions[0], likelihood, coefficients)
    return {name: value for name, value in told.items() if math.isfinite(value)}


def _deviance(regression: Regression, likelihood: Likelihood) -> float:
    """D of one output."""
    own, total = regression.design.layer.out_features // regression.design.outputs, 0.0
    for eta, y, weight in _fitted(regression):
        family, eta, y = likelihood.at_unit_dispersion(eta, y)
        best = torch.zeros_like(eta[:, 0]) if family.labels else _saturated(own, family, eta, y)
        total += float((2 * (best - family.log_prob(eta, y)) * weight).sum())
    return total


def _dispersion(regression: Regression, likelihood: Likelihood, coefficients: int) -> float:
    """φ̂ of one output; NaN where the variance is infinite, or no row is left over."""
    squares, count = 0.0, 0.0
    for eta, y, weight in _fitted(regression):
        family, eta, y = likelihood.at_unit_dispersion(eta, y)
        distribution = family.distribution(eta)
        variance = torch.where(distribution.variance.isfinite(), distribution.variance, math.nan)
        squares += float((weight * (y - distribution.mean).square() / variance).sum())
        count += float(weight.sum())
    return squares / (count - coefficients) if count > coefficients else math.nan


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


def _saturated(own: int, likelihood: Likelihood, eta: Tensor, y: Tensor) -> Tensor:
    """log p of each row at the η that suits it best, its learned constants held."""
    point, best = eta.clone(), likelihood.log_prob(eta, y)
    for _ in range(STEPS):
        _, score, second = likelihood.derivatives_in(own, point, y)
        step = torch.linalg.lstsq(second, score[:, :own].unsqueeze(-1)).solution.squeeze(-1).clamp(-50.0, 50.0)
        length, before = 1.0, best
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
        if not bool((best > before).any()):
            break
    return best
