"""Where chains start, and coordinates in which the posterior is round: there, samplers need little warm-up.

    θ = centre + Wφ,    W Wᵀ ≈ Cov(θ | data)

A linear model has one mode. Newton's method finds it; the curvature there gives W, and chains start around it, spread
half as wide again as the posterior, so that their agreement later means something. A direction that neither the data
nor the prior speaks of (a constant added to all logits) is left out of W: nothing can be learned along it. A density
of few parameters is treated alike around the best mode that several descents find: its other modes are mostly the same
one with its components exchanged. A network has many modes: every chain descends towards one from an initialisation of
its own, and W = I.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ..coordinates import CoordinateDensity, Coordinates
from ..linear.design import Design, design_of
from ..linear.glm import LinearEnergy
from ..linear.minimise import minimise
from ..linear.quadratic_l1 import equilibrated
from ..log_posterior import LogPosterior
from ..mode import descended, initialised, mode_of
from ..parameters import FlatParameters
from ..precondition import precondition
from ..problem import Problem

__all__ = ["coordinates_of", "start_chains"]

DENSE = 400
"""Beyond this many parameters a full W costs more than it brings."""
SPREAD = 1.5
"""How much wider than the posterior the starts lie."""


def coordinates_of(problem: Problem, target: LogPosterior) -> Coordinates:
    """The coordinates that suit a problem."""
    start = target.start()
    plain = Coordinates(torch.zeros_like(start))
    if "eta" not in problem.objective.offers:
        if target.size > DENSE:
            return plain
        return precondition(target.value_and_grad, mode_of(target), problem.seed, dense=True)
    design = design_of(problem)
    if design is None or target.size > DENSE or target.fixed:
        return plain
    roots = []
    for output in range(design.outputs):
        energy = LinearEnergy(design.regression(output))
        minimum = minimise(energy, energy.start(), energy.l1(), max_iter=50, tol=1e-6)
        hessian = energy.value(minimum.point, hessian=True)[2]
        assert hessian is not None
        if not bool(minimum.point.isfinite().all() & hessian.isfinite().all()):
            return plain
        # a Laplace prior has no curvature but at 0: its precision is l1² / 2
        roots.append(_root(hessian + torch.diag(0.5 * energy.l1().square())))
        energy.write(minimum.point)
    centre = _flat(design.module).to(start)
    factor = torch.block_diag(*roots).to(start)[_places(design)].contiguous()
    return Coordinates(centre, factor)


def start_chains(
    target: LogPosterior, coordinates: Coordinates, chains: int, descent: int, generator: torch.Generator
) -> Tensor:
    """Starting points φ, (chains, size): around the mode, or after `descent` steps from separate initialisations."""
    density = CoordinateDensity(target, coordinates)
    if not coordinates.dense:
        return descended(density, initialised(target, chains), descent)
    like = coordinates.centre
    phi = SPREAD * torch.randn((chains, coordinates.size), generator=generator, dtype=like.dtype, device=like.device)
    floor = float(density(torch.zeros_like(phi[:1]))) - 5 * coordinates.size - 50
    for _ in range(30):  # where the posterior is far from normal, some of these points are far outside
        outside = ~(density(phi) > floor)
        if not bool(outside.any()):
            break
        phi[outside] *= 0.5
    return phi


def _root(precision: Tensor) -> Tensor:
    """R (p, r) with R Rᵀ the inverse of a precision, without the directions in which it is 0."""
    balanced, scale = equilibrated(precision)
    values, vectors = torch.linalg.eigh(balanced)
    seen = values > 1e-11 * len(values)
    root = scale.unsqueeze(-1) * vectors[:, seen] * values[seen].rsqrt()
    return root[:, root.abs().amax(0) > 0]


def _places(design: Design) -> Tensor:
    """Where each flat parameter stands in the vectors of the regressions, one after another."""
    for output in range(design.outputs):
        first = output * design.parameters
        LinearEnergy(design.regression(output)).write(torch.arange(first, first + design.parameters).double())
    return _flat(design.module).long()


def _flat(module: nn.Module) -> Tensor:
    own = dict(module.named_parameters())
    return FlatParameters.of(own).flat(own)
