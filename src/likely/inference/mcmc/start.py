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

import numpy as np
import torch
from scipy.optimize import minimize
from torch import Tensor, nn

from ...core.random import spread
from ...optim import Adam
from ...optim.schedules import Linear
from ..coordinates import CoordinateDensity, Coordinates
from ..linear.design import Design, design_of
from ..linear.glm import LinearEnergy
from ..linear.minimise import minimise
from ..linear.quadratic_l1 import equilibrated
from ..log_posterior import LogPosterior
from ..parameters import FlatParameters
from ..precondition import precondition
from ..problem import Problem

__all__ = ["coordinates_of", "start_chains"]

DENSE = 400
"""Beyond this many parameters a full W costs more than it brings."""
DESCENT = Adam(0.05, betas=(0.9, 0.99), eps=1e-12)
"""How the chains of a network come near a mode."""
STARTS, FIRST = 8, 50
"""From so many initialisations, and by so many steps, the mode of a density is sought before it is found exactly."""
SPREAD = 1.5
"""How much wider than the posterior the starts lie."""


def coordinates_of(problem: Problem, target: LogPosterior) -> Coordinates:
    """The coordinates that suit a problem."""
    start = target.start()
    plain = Coordinates(torch.zeros_like(start))
    if "eta" not in problem.objective.offers:
        return _around_mode(target) if target.size <= DENSE else plain
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
        return _descended(density, _initialised(target.problem, target, chains), descent)
    like = coordinates.centre
    phi = SPREAD * torch.randn((chains, coordinates.size), generator=generator, dtype=like.dtype, device=like.device)
    floor = float(density(torch.zeros_like(phi[:1]))) - 5 * coordinates.size - 50
    for _ in range(30):  # where the posterior is far from normal, some of these points are far outside
        outside = ~(density(phi) > floor)
        if not bool(outside.any()):
            break
        phi[outside] *= 0.5
    return phi


def _around_mode(target: LogPosterior) -> Coordinates:
    """The curvature at the best of several modes."""
    plain = CoordinateDensity(target, Coordinates(torch.zeros_like(target.start())))
    ends = _descended(plain, _initialised(target.problem, target, STARTS), FIRST)
    best = ends[int(target(ends).nan_to_num(nan=-torch.inf).argmax())]

    def energy(theta: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = target.value_and_grad(torch.from_numpy(theta).to(best).unsqueeze(0))
        if not bool(value.isfinite().all() & gradient.isfinite().all()):
            return np.inf, np.zeros_like(theta)
        return -float(value), -gradient[0].double().cpu().numpy()

    lowest = minimize(energy, best.double().cpu().numpy(), jac=True, method="L-BFGS-B", options={"maxiter": 500})
    centre = torch.from_numpy(lowest.x).to(best)
    return precondition(target.value_and_grad, centre, target.problem.seed, dense=True)


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


def _initialised(problem: Problem, target: LogPosterior, chains: int) -> Tensor:
    """The parameters of a new module for each chain: (chains, d)."""
    modules = (problem.module(seed) for seed in spread(problem.seed, chains))
    return torch.stack([target.parameters.flat(dict(module.named_parameters())) for module in modules])


def _descended(density: CoordinateDensity, theta: Tensor, steps: int) -> Tensor:
    """All chains after some steps up log p, ever shorter; a chain that got nowhere stays where it began."""
    before, _ = density.value_and_grad(theta)
    point = theta.clone().requires_grad_()
    optimizer, rate = DESCENT.build([point]), Linear()
    for step in range(steps):
        _, gradient = density.value_and_grad(point.detach())
        point.grad = -torch.where(gradient.isfinite(), gradient, 0.0)
        for group in optimizer.param_groups:
            group["lr"] = DESCENT.lr * rate.factor(step, steps)
        optimizer.step()
    last = point.detach()
    after, _ = density.value_and_grad(last)
    return torch.where((after > before).unsqueeze(-1) & last.isfinite(), last, theta)
