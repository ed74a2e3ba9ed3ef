"""`inference="auto"`: the exact method where there is one, then the convex one, else gradient training."""

from __future__ import annotations

from ..data.sparse_rows import SparseRows
from ..optim import LBFGS
from .linear.exact import Exact
from .linear.newton import Newton
from .problem import Inference, Problem
from .training.map import MAP

__all__ = ["automatic"]

DENSE = 2_000
"""Parameters up to which Newton's dense steps beat first-order ones on a convex problem."""


def automatic(problem: Problem) -> Inference:
    """Exact for linear models with normal noise, Newton for others whose targets have an η each, MAP for networks."""
    description, rates = problem.description, list(problem.penalties.values())
    if not description.linear or any(rate is None for rate in rates):
        return MAP()
    l1 = any(rate is not None and rate.l1 for rate in rates)
    wide = isinstance(problem.data.x, SparseRows) and description.size > DENSE  # whose moments would be dense
    if getattr(problem.objective, "least_squares", False) and not l1 and not wide:
        return Exact()
    if description.size <= DENSE and "eta" in problem.objective.offers:
        return Newton()
    return MAP() if l1 else MAP(LBFGS(), epochs=50, batch_size=None, tol=1e-4)
