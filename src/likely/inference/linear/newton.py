"""Newton: the most probable parameters by second-order steps; for linear models this is IRLS.

    θ ← θ − (XᵀSX + P)⁻¹ ∇E,   S = −∂² log p / ∂η² row by row,   P = −∂² log p(θ)

A step that does not lower E is damped until it does; L1 terms are met exactly (proximal Newton). For a network, XᵀSX
becomes JᵀSJ with J the Jacobian of η (Gauss-Newton); late steps add −Σ ∂log p/∂η · ∂²η, which that leaves out.
"""

from __future__ import annotations

import warnings

import torch
from torch import Tensor

from ...core.errors import ConvergenceWarning, SpecError
from ...core.spec import require
from ..posterior import Posterior
from ..problem import Inference, Problem
from .design import Design, design_of
from .glm import LinearEnergy
from .minimise import Minimum, minimise
from .network_energy import NetworkEnergy
from .refine import refine

__all__ = ["Newton"]

LARGEST = 4_000
"""Parameters of one dense system; beyond, the matrix alone outweighs what first-order training needs."""

SAMPLE = 5_000
"""Rows of the first, rough fit of a long regression; the full one then starts a step or two from its end."""


class Newton(Inference):
    """Second-order steps to the mode. Best for linear models with any likelihood; works for small networks.

    Data that the model separates perfectly has its optimum at infinity under a flat prior: the fit stops there with a
    `ConvergenceWarning`, finite weights and predictions near 0 and 1.

    >>> from likely import Regressor
    >>> from likely.likelihoods import Poisson
    >>> model = Regressor(Poisson(), inference=Newton()).fit([[0.0], [0.0], [1.0], [1.0]], [1.0, 3.0, 4.0, 8.0])
    >>> model.predict([[0.0], [1.0]]).round(6)
    array([2., 6.])
    """

    dtype = torch.float64
    needs = frozenset({"eta"})

    max_iter: int = 100
    tol: float = 1e-14

    def validate(self) -> None:
        """Both are positive."""
        require(self.max_iter > 0, self, "max_iter", "positive")
        require(self.tol > 0, self, "tol", "positive")

    def fit(self, problem: Problem) -> Posterior:
        """The mode, as one parameter vector."""
        design = design_of(problem)
        if design is not None and design.parameters <= LARGEST:
            return self._regressions(design)
        energy = NetworkEnergy(problem)
        if energy.size > LARGEST:
            raise SpecError(
                f"Newton would need a matrix of {energy.size:,} × {energy.size:,}; it takes up to {LARGEST:,} "
                "parameters. Use inference=MAP()."
            )
        minimum = minimise(energy, energy.start(), energy.l1(), max_iter=self.max_iter, tol=self.tol, convex=False)
        self._warn(minimum.converged, False, minimum.iterations)
        energy.load(minimum.point)
        return Posterior.of(energy.module, info={"iterations": minimum.iterations})

    def _regressions(self, design: Design) -> Posterior:
        iterations = 0
        for output in range(design.outputs):
            energy = LinearEnergy(design.regression(output))
            point = energy.start()
            rows = len(design.problem.data)
            step = rows // max(SAMPLE, 20 * len(point))
            minimum = _from_a_sample(energy, point, step, self.max_iter, self.tol) if step > 1 else None
            if minimum is None or not minimum.converged:
                start = point if minimum is None else minimum.point
                minimum = minimise(energy, start, energy.l1(), max_iter=self.max_iter, tol=self.tol)
            self._warn(minimum.converged, minimum.unbounded, minimum.iterations)
            energy.write(minimum.point)
            iterations = max(iterations, minimum.iterations)
        return Posterior.of(design.module, info={"iterations": iterations})

    def _warn(self, converged: bool, unbounded: bool, iterations: int) -> None:
        if unbounded:
            warnings.warn(
                "The data are separated perfectly in some direction, so the most probable weights lie at infinity; "
                "the fit stopped on the way there. Give the weights a prior, such as prior=Normal(scale=1.0).",
                ConvergenceWarning,
                stacklevel=5,
            )
        elif not converged:
            warnings.warn(
                f"Newton stopped after {iterations} steps before it converged; raise max_iter, standardise the inputs, "
                "or give the weights a prior.",
                ConvergenceWarning,
                stacklevel=5,
            )


def _from_a_sample(energy: LinearEnergy, point: Tensor, step: int, max_iter: int, tol: float) -> Minimum | None:
    """Fit every step-th row first; then all rows need only a few gradients, or at least have a good start."""
    sample, l1 = energy.thinned(step), energy.l1()
    rough = minimise(sample, point, l1, max_iter=max_iter, tol=1e-2)
    if not rough.converged or rough.unbounded or not bool(torch.isfinite(rough.point).all()):
        return None
    _, _, hessian = sample.value(rough.point, hessian=True)
    refined = None if hessian is None or bool(l1.any()) else refine(energy, rough.point, hessian, tol=max(tol, 1e-8))
    return refined or Minimum(rough.point, False, False, rough.iterations)
