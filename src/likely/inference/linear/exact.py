"""Exact: the conjugate case, solved in closed form.

With y ~ Normal(Wx + b, σ²) and weights ~ Normal(0, s²) (or flat), the posterior is Normal:

    precision  Λ = XᵀX/σ² + I/s²,   mean  θ̂ = Λ⁻¹ Xᵀy/σ²      (ridge with penalty λ = σ²/s²; least squares if flat)

    log evidence = log p(y | θ̂, σ) + log p(θ̂) − ½ log|Λ/2π|
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
from scipy.optimize import brentq
from torch import Tensor

from ...core.errors import ApproximationWarning
from ...core.interrupt import EIGEN, interruptible
from ...core.spec import require
from ..gaussian import GaussianPosterior
from ..posterior import Posterior
from ..problem import Inference, Problem
from .design import Regression, design_of
from .moments import Moments, moments_of, moments_together, moments_with_intercept
from .newton import Newton
from .quadratic_l1 import equilibrated

__all__ = ["Exact"]

REGULAR = 1e-5
"""The least pivot of a regular matrix whose diagonal is 1."""


class Exact(Inference):
    """The closed form for linear models with normal noise: `posterior="point"` (its mode) or `"full"` (all of it).

    Point: a learned σ is the most probable one. Full: a learned σ maximises the evidence, which with flat weights is
    the unbiased RSS / (n − p); predictions then include what is unknown of θ and of σ (Student's t, with n less the
    number of parameters that the data determine as degrees of freedom: exact for flat weights), and
    `posterior_.info["log_evidence"]` is log p(y) at that σ. Where there is no closed form, Newton's method takes
    over, and a warning says so.

    >>> from likely import Regressor
    >>> Regressor(inference=Exact()).fit([[0.0], [1.0], [2.0]], [1.0, 3.0, 5.0]).predict([[3.0]]).round(6)
    array([7.])
    """

    dtype = torch.float64
    needs = frozenset({"eta"})

    posterior: Literal["point", "full"] = "point"

    def validate(self) -> None:
        """Only these two words."""
        require(self.posterior in ("point", "full"), self, "posterior", '"point" or "full"')

    def fit(self, problem: Problem) -> Posterior:
        """Solve each output's regression."""
        design = design_of(problem) if getattr(problem.objective, "least_squares", False) else None
        if design is None or any(l1 for l1, _ in design.regression(0).rates()):
            warnings.warn(
                f"Exact has no closed form for {problem.objective!r} with this network and {problem.prior!r}; "
                "Newton's method found the most probable parameters instead. Say inference=Newton() to choose it.",
                ApproximationWarning,
                stacklevel=4,
            )
            return Newton().fit(problem)
        full = self.posterior == "full"
        solutions, together = [], moments_together(design)
        shared: Spectra = {}
        for output in range(design.outputs):
            regression = design.regression(output)
            moments = moments_of(regression) if together is None else together[output]
            spectra: Spectra = {} if together is None else shared
            solution = _solve(regression, moments, problem.likelihood.known_scale(), full, spectra)
            log_scale = torch.tensor([math.log(solution.scale)], dtype=torch.float64) if design.shared else None
            design.write(output, solution.weight.unsqueeze(0), solution.bias, log_scale)
            solutions.append(solution)
        info = {"log_evidence": sum(s.log_evidence for s in solutions)} if full else {}
        if not full:
            return Posterior.of(design.module)
        covariance = torch.stack([s.covariance for s in solutions])
        degrees = torch.tensor([s.degrees for s in solutions], dtype=torch.float64)
        return GaussianPosterior.around(design.module, covariance, degrees, info)


@dataclass(frozen=True)
class _Solution:
    weight: Tensor
    bias: Tensor | None
    scale: float
    covariance: Tensor  # of [weight, bias]
    log_evidence: float
    degrees: float  # of freedom that σ was learned from; ∞ if it is known


Spectra = dict[int, tuple[Tensor, Tensor]]
"""Eigenvalues and eigenvectors of the matrices that several outputs share, by identity."""


def _solve(regression: Regression, moments: Moments, scale: float | None, full: bool, spectra: Spectra) -> _Solution:
    (_, l2), (_, l2_bias) = regression.rates()
    d = regression.features
    penalised_bias = regression.bias and l2_bias > 0
    gram, cross, root = moments.gram, moments.cross, moments.root
    penalty = torch.full((d,), l2, dtype=torch.float64)
    if penalised_bias:  # then the intercept is one more column, and nothing was centred
        gram, cross = moments_with_intercept(regression)
        penalty, root = torch.cat([penalty, penalty.new_tensor([l2_bias])]), None

    ridge = _Ridge(gram, cross, penalty, spectra)

    def theta(variance: float) -> Tensor:
        if root is not None and not penalty.any():  # the shortest solution, as numpy.linalg.pinv gives it
            return torch.linalg.lstsq(root[:, :d], root[:, d : d + 1], driver="gelsd").solution[:, 0]
        return ridge.theta(variance)

    def residual(point: Tensor) -> float:
        squares = float(moments.spread - 2 * point @ cross + point @ gram @ point)
        return squares if squares > 1e-12 * moments.spread else 0.0

    def evidence_at(variance: float) -> float:
        point = theta(variance)
        return _log_evidence(regression, moments, gram, penalty, point, residual(point), variance)

    def free(variance: float) -> float:
        """Targets less the parameters that they pin down: all of them for a mode, which leaves n as it is."""
        if not full:
            return moments.total
        return moments.total - ridge.pinned(variance) - int(regression.bias and not penalised_bias)

    if scale is not None:
        variance = scale**2
    else:
        variance = _variance(lambda v: residual(theta(v)) / max(free(v), 1e-300), moments, bool(penalty.any()))
    point = theta(variance)
    bias = None
    if regression.bias:
        bias = point[d:] if penalised_bias else (moments.y_mean - point @ moments.x_mean).reshape(1)
    covariance = _covariance(regression, moments, gram, penalty, variance, penalised_bias) if full else torch.empty(0)
    log_evidence = evidence_at(variance) if full else math.nan
    # without a residual nothing is known of σ, and there is no t to speak of
    learned = full and scale is None and free(variance) > 0 and residual(point) > 0
    degrees = free(variance) if learned else math.inf
    return _Solution(point[:d], bias, math.sqrt(variance), covariance, log_evidence, degrees)


class _Ridge:
    """θ(σ²) = (G + σ²P)⁻¹c for many σ²: one eigendecomposition if all weights are penalised, else one solve per σ²."""

    def __init__(self, gram: Tensor, cross: Tensor, penalty: Tensor, spectra: Spectra) -> None:
        self.gram, self.cross, self.penalty = gram, cross, penalty
        self.uniform = bool((penalty > 0).all())
        if self.uniform:
            self.scale = penalty.rsqrt()
            if id(gram) not in spectra:
                scaled = gram * torch.outer(self.scale, self.scale)
                values, vectors = interruptible(EIGEN * float(len(gram)) ** 3, torch.linalg.eigh, scaled)
                values = values.clamp_min(0)
                values[values < 1e-13 * len(gram) * values[-1]] = 0
                spectra[id(gram)] = values, vectors
            self.values, self.vectors = spectra[id(gram)]
            self.turned = self.vectors.T @ (self.scale * cross)

    def theta(self, variance: float) -> Tensor:
        if not self.uniform:
            penalised = self.gram + torch.diag(variance * self.penalty)
            return _inverse(penalised) @ self.cross
        shrunk = torch.where(self.values > 0, self.turned / (self.values + variance), 0.0)
        return self.scale * (self.vectors @ shrunk)

    def pinned(self, variance: float) -> float:
        """tr G(G + σ²P)⁻¹: how many parameters the data determine."""
        if not self.uniform:
            penalised = self.gram + torch.diag(variance * self.penalty)
            return float((_inverse(penalised) * self.gram).sum())
        return float((self.values / (self.values + variance)).nan_to_num(0.0).sum())


def _inverse(matrix: Tensor) -> Tensor:
    """The inverse of a symmetric matrix whose columns may be of very different size; the shortest one if singular."""
    balanced, scale = equilibrated(matrix)
    factor, info = torch.linalg.cholesky_ex(balanced)
    if not int(info) and float(factor.diagonal().min()) > REGULAR:  # then no units make it singular
        return scale.unsqueeze(-1) * torch.cholesky_inverse(factor) * scale
    return torch.linalg.pinv(matrix, hermitian=True, rtol=1e-13 * len(matrix))


def _log_evidence(
    regression: Regression,
    moments: Moments,
    gram: Tensor,
    penalty: Tensor,
    point: Tensor,
    residual: float,
    variance: float,
) -> float:
    """log ∫ p(y | θ) p(θ) dθ; flat directions are integrated with density 1."""
    precision = gram / variance + torch.diag(penalty)
    proper = penalty[penalty > 0]
    values = interruptible(float(len(precision)) ** 3, torch.linalg.eigvalsh, precision)
    values = values[values > values[-1] * 1e-14]
    fit = -0.5 * (moments.total * math.log(2 * math.pi * variance) + residual / variance)
    prior = -0.5 * float((penalty * point.square()).sum()) + 0.5 * float((proper / (2 * math.pi)).log().sum())
    volume = -0.5 * float((values / (2 * math.pi)).log().sum())
    if regression.bias and len(penalty) == regression.features:  # the flat intercept, integrated out by centring
        volume += -0.5 * math.log(moments.total / variance / (2 * math.pi))
    return fit + prior + volume


def _covariance(
    regression: Regression, moments: Moments, gram: Tensor, penalty: Tensor, variance: float, penalised_bias: bool
) -> Tensor:
    """The posterior covariance of [weight, bias]."""
    inner = _inverse(gram / variance + torch.diag(penalty))
    if not regression.bias or penalised_bias:
        return inner
    mean = moments.x_mean.unsqueeze(-1)
    corner = variance / moments.total + mean.T @ inner @ mean
    return torch.cat([torch.cat([inner, -inner @ mean], 1), torch.cat([-mean.T @ inner, corner], 1)])


def _variance(implied: Callable[[float], float], moments: Moments, penalised: bool) -> float:
    """σ² with σ² = RSS(σ²) / free(σ²): where the derivative of the log-probability (or evidence) in σ² is 0.

    With a penalty, RSS depends on σ² through the weight of the prior; the largest solution is bracketed from above.
    """
    if not penalised:
        return _floor(implied(0.0) if implied(0.0) < math.inf else 0.0, moments)
    top = math.log(4 * moments.spread / max(moments.total, 1.0) + 1e-300)
    grid = [top - 0.5 * step for step in range(80)]
    gaps = [math.exp(u) - implied(math.exp(u)) for u in grid]
    for k in range(1, len(grid)):
        if gaps[k - 1] >= 0 > gaps[k]:
            root = brentq(lambda u: math.exp(u) - implied(math.exp(u)), grid[k], grid[k - 1], xtol=1e-14, rtol=1e-14)
            return _floor(math.exp(root), moments)
    return _floor(0.0, moments)


def _floor(variance: float, moments: Moments) -> float:
    """A noiseless fit has σ = 0, whose density is infinite: keep σ at the rounding error of y, in any unit of y."""
    least = max(1e-20 * moments.spread / max(moments.total, 1.0), 1e-30 * moments.y_mean**2)
    return max(variance, least if least > 0 else 1e-30)
