"""`inference="auto"`: the exact method where there is one, then the convex one, else gradient training."""

from __future__ import annotations

from ..optim import LBFGS
from .linear.exact import Exact
from .linear.newton import Newton
from .problem import Inference, Problem
from .training.map import MAP

__all__ = ["automatic"]

DENSE = 2_000
"""Parameters up to which Newton's dense steps beat first-order ones on a convex problem."""


def automatic(problem: Problem) -> Inference:
    """Exact for linear models with normal noise, Newton for other linear models, MAP for networks."""
    module = problem.module()
    linear = getattr(module, "linear", None) is not None
    rates = [problem.rates(name, value) for name, value in module.named_parameters()]
    if not linear or any(rate is None for rate in rates):
        return MAP()
    l1 = any(rate is not None and rate.l1 for rate in rates)
    if getattr(problem.objective, "least_squares", False) and not l1:
        return Exact()
    if sum(p.numel() for p in module.parameters()) <= DENSE:
        return Newton()
    return MAP() if l1 else MAP(LBFGS(), epochs=50, batch_size=None, tol=1e-4)
