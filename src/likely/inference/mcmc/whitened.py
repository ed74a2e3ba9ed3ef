"""Where chains start, and coordinates in which the posterior is round: there, samplers need little warm-up.

    θ = centre + L z,    L Lᵀ ≈ Cov(θ | data)

A linear model has one mode. Newton's method finds it; the curvature there gives L, and chains start around it, spread
half as wide again as the posterior, so that their agreement later means something. A direction that neither the data
nor the prior speaks of (a constant added to all logits) is left out of L: nothing can be learned along it. A network
has many modes: every chain descends towards one from an initialisation of its own, and L = I.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ...core.random import spread
from ..linear.design import Design, design_of
from ..linear.glm import LinearEnergy
from ..linear.minimise import equilibrated, minimise
from ..log_posterior import LogPosterior
from ..parameters import FlatParameters
from ..problem import Problem

__all__ = ["Whitened", "start_chains", "whitened"]

DENSE = 400
"""Beyond this many parameters a full L costs more than it brings."""
SPREAD = 1.5
"""How much wider than the posterior the starts lie."""


class Whitened:
    """log p(θ | data) as a function of z; −∞ where it is not a number."""

    def __init__(self, target: LogPosterior, centre: Tensor | None = None, factor: Tensor | None = None) -> None:
        self.target, self.centre, self.factor = target, centre, factor

    @property
    def size(self) -> int:
        """How many numbers z are."""
        return self.target.size if self.factor is None else self.factor.shape[1]

    def theta(self, z: Tensor) -> Tensor:
        """(chains, size) → (chains, d)."""
        if self.factor is None or self.centre is None:
            return z
        return torch.addmm(self.centre, z, self.factor.T)

    def __call__(self, z: Tensor) -> Tensor:
        value = self.target(self.theta(z)).double()
        return torch.where(value < torch.inf, value, -torch.inf)  # NaN fails the comparison

    def value_and_grad(self, z: Tensor) -> tuple[Tensor, Tensor]:
        """The value and the slope in z; samplers treat what is not a number as no mass."""
        value, slope = self.target.value_and_grad(self.theta(z))
        return value, slope if self.factor is None else slope @ self.factor


def whitened(problem: Problem, target: LogPosterior) -> Whitened:
    """The coordinates that suit a problem."""
    design = design_of(problem)
    if design is None or target.size > DENSE or target.fixed:
        return Whitened(target)
    roots = []
    for output in range(design.outputs):
        energy = LinearEnergy(design.regression(output))
        found = minimise(energy, energy.start(), energy.l1(), max_iter=50, tol=1e-6)
        hessian = energy.value(found.point, hessian=True)[2]
        assert hessian is not None
        if not bool(found.point.isfinite().all() & hessian.isfinite().all()):
            return Whitened(target)
        # a Laplace prior has no curvature but at 0: its precision is l1² / 2
        roots.append(_root(hessian + torch.diag(0.5 * energy.l1().square())))
        energy.write(found.point)
    start = target.start()
    centre = _flat(design.module).to(start)
    factor = torch.block_diag(*roots).to(start)[_places(design)].contiguous()
    return Whitened(target, centre, factor)


def start_chains(problem: Problem, density: Whitened, chains: int, descent: int, generator: torch.Generator) -> Tensor:
    """Starting points z, (chains, size): around the mode, or after `descent` steps from separate initialisations."""
    if density.factor is None:
        theta = _initialised(problem, density.target, chains)
        return _descended(density, theta, descent)
    like = density.factor
    z = SPREAD * torch.randn((chains, density.size), generator=generator, dtype=like.dtype, device=like.device)
    floor = float(density(torch.zeros_like(z[:1]))) - 5 * density.size - 50
    for _ in range(30):  # where the posterior is far from normal, some of these points are far outside
        outside = ~(density(z) > floor)
        if not bool(outside.any()):
            break
        z[outside] *= 0.5
    return z


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


def _descended(density: Whitened, theta: Tensor, steps: int) -> Tensor:
    """All chains after some steps of Adam up log p; a chain that got nowhere stays where it began."""
    first, second, point, rate = torch.zeros_like(theta), torch.zeros_like(theta), theta, 0.05
    before, _ = density.value_and_grad(theta)
    for step in range(1, steps + 1):
        _, slope = density.value_and_grad(point)
        slope = torch.where(slope.isfinite(), slope, 0.0)
        first, second = torch.lerp(first, slope, 0.1), torch.lerp(second, slope.square(), 0.01)
        unbiased = (second / (1 - 0.99**step)).sqrt() + 1e-12
        point = point + rate * (1 - (step - 1) / steps) / (1 - 0.9**step) * first / unbiased
    after, _ = density.value_and_grad(point)
    return torch.where((after > before).unsqueeze(-1) & point.isfinite(), point, theta)
