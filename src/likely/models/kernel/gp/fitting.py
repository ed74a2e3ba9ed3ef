"""Fitting a Gaussian process: the problem that targets pose, the search for its hyperparameters, and what it ends with.

    log p(y | X, θ) → max over θ, then f | y, θ

in closed form for normal noise of one σ, by Laplace's approximation for all other likelihoods.
"""

from __future__ import annotations

import math
import warnings

import torch
from torch import Tensor

from ....core.errors import ConvergenceWarning, LikelyWarning
from ....core.progress import progress
from ....core.threads import factorisation
from ....kernels import KernelModule
from ....likelihoods import Likelihood, Target
from .evidence import MAX_ITER, Bounds, Optimum, maximise
from .hyperparameters import free, limits, names_of, read, spread_out
from .inducing import InducingPosterior, InducingRegression
from .laplace import Laplace, LaplacePosterior
from .regression import ExactPosterior, Regression

__all__ = ["exact", "learn", "pose", "report_search", "solve", "solving_work"]

SOME = 100
"""Rows over which the variance of the kernel's functions is measured."""
FAR, ROWS = 5.0, 16
"""How many times larger than the kernel's functions targets are too large for them; rows at which these are looked at.

With a lengthscale alone to learn, RBF() finds a sine in targets of standard deviation 3, and takes it for noise in
those of 5.9.
"""


def exact(likelihood: Likelihood) -> bool:
    """Whether the evidence has a closed form: normal noise of one σ.

    >>> from likely.likelihoods import Normal, Poisson
    >>> exact(Normal()), exact(Poisson())
    (True, False)
    """
    return likelihood.least_squares and likelihood.event_dim == 0


def pose(
    module: KernelModule,
    likelihood: Likelihood,
    target: Target,
    x: Tensor,
    y: Tensor,
    weight: Tensor,
    *,
    constant: bool,
) -> Regression | Laplace:
    """The evidence of targets y at rows x as a function of the hyperparameters; with a `constant` mean or none."""
    if exact(likelihood):
        return Regression(module, x, y, weight, likelihood.known_scale(), constant)
    offset, units = likelihood.baseline(y, weight)
    latent = likelihood.size(target) - likelihood.shared(target)
    return Laplace(module, likelihood, x, y, weight, constant, offset.double(), latent, float(units[0]))


def learn(problem: Regression | Laplace, inducing: Tensor | None, starts: int, seed: int, *, verbose: bool) -> Optimum:
    """The hyperparameters with the most evidence, searched for from so many starts."""
    own, bounds = problem.start()
    kernel = problem.kernel
    given = read(free(kernel))
    suggested, *scattered = spread_out(kernel, problem.x, problem.unit**2, max(1, starts - 1), seed)
    others = [suggested, *scattered][: starts - 1 if len(given) else 0]
    points = [torch.cat([start, own]) for start in (given, *others)]
    growth = math.inf if math.isinf(problem.widest) else problem.widest / max(_spread(kernel, problem.x), 1e-300)
    bounds = limits(kernel, problem.reach, suggested, growth) + bounds
    evidence: Regression | Laplace | InducingRegression = problem
    if inducing is not None:
        assert isinstance(problem, Regression)  # `inducing_points` is asked for normal noise alone
        evidence = InducingRegression(problem, inducing)
    with progress("GaussianProcess", MAX_ITER, show=verbose) as report:
        best = maximise(evidence, points, bounds, seed=seed, first=problem, report=report)
    if math.isinf(growth):
        return best
    # functions as wide as they may be are no failure of the search: beyond, the approximation is not to be believed
    return best.without({index for index in best.held if _widest(index, kernel, best.hyperparameters, bounds)})


def solve(
    problem: Regression | Laplace, hyperparameters: Tensor, inducing: Tensor | None, latent_weights: Tensor | None
) -> ExactPosterior | InducingPosterior | LaplacePosterior:
    """The posterior of f at hyperparameters that were learned; Laplace's approximation begins at its mode's weights."""
    if isinstance(problem, Laplace):
        assert latent_weights is not None
        return problem.solve(hyperparameters, latent_weights)
    if inducing is None:
        return problem.solve(hyperparameters)
    with torch.no_grad():
        return InducingRegression(problem, inducing).solve(hyperparameters)


def solving_work(x: Tensor, inducing: Tensor | None) -> float:
    """The work between two waits of what solves for f: a factorisation of the rows, or m inducing points times them.

    >>> solving_work(torch.zeros(100, 2), torch.zeros(10, 2))
    10000
    """
    return factorisation(len(x)) if inducing is None else len(inducing) ** 2 * len(x)


def report_search(best: Optimum, problem: Regression | Laplace, *, converged: bool) -> None:
    """Warn, in the name of `fit`, of a search that its bounds held back or that did not come to its end.

    And of a kernel whose functions are too small for the targets, which are noise to it.
    """
    names = names_of(problem.kernel) + problem.names()
    if isinstance(problem, Regression) and (amplitude := _fixed_amplitude(problem.kernel, problem.x)) is not None:
        size = problem.unit if problem.constant else float(problem.y.square().mean().sqrt())
        if size > FAR * amplitude:
            warnings.warn(
                f"The targets have a standard deviation of {size:.3g} and the kernel's functions one of "
                f"{amplitude:.3g}, which it cannot change, so that most of what the targets do is taken for noise: "
                "multiply the kernel by a variance, which is learned (1.0 * kernel), or standardise y.",
                LikelyWarning,
                stacklevel=3,
            )
    if best.held:
        ended = ", ".join(f"{names[index]} {_shown(names[index], best.hyperparameters[index])}" for index in best.held)
        warnings.warn(
            f"The evidence still rises beyond the bounds of the search, where it ended at {ended}: start the "
            "kernel's hyperparameters nearer to what suits the data, hold them (learn=False), or fix what the data "
            "do not tell (such as Normal(scale=…) where there is no noise).",
            ConvergenceWarning,
            stacklevel=3,
        )
    elif not converged:
        warnings.warn(
            f"The evidence was still rising after {best.evaluations} evaluations, or Newton's method did not "
            "settle; standardise X, start the kernel's hyperparameters elsewhere, or take a simpler kernel.",
            ConvergenceWarning,
            stacklevel=3,
        )


def _widest(index: int, kernel: KernelModule, theta: Tensor, bounds: Bounds) -> bool:
    """Whether this is a variance of the kernel at its upper bound."""
    names, high = names_of(kernel), bounds[index][1]
    return index < len(names) and names[index] == "variance" and high is not None and float(theta[index]) >= high


@torch.no_grad()
def _spread(kernel: KernelModule, x: Tensor) -> float:
    """The variance of the kernel's functions over some of the rows; a constant is not part of it."""
    some = x[:: max(1, len(x) // SOME)]
    return float(kernel.diagonal(some).mean() - kernel(some, some).mean())


def _fixed_amplitude(kernel: KernelModule, x: Tensor) -> float | None:
    """The standard deviation of the kernel's functions, where no hyperparameter that is learned changes it; else None.

    It is that of some rows.
    """
    learned = free(kernel)
    with torch.enable_grad():
        variance = kernel.diagonal(x[:ROWS]).mean()
        slopes = torch.autograd.grad(variance, learned, allow_unused=True) if variance.requires_grad else []
    changes = any(slope is not None and bool((slope.abs() > 1e-6 * variance).any()) for slope in slopes)
    return None if changes else float(variance.detach().sqrt())


def _shown(name: str, number: Tensor) -> str:
    """As a person knows it: all but means are held as logarithms."""
    return f"= {float(number if name == 'mean' else number.exp()):.3g}"
