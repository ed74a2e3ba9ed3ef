"""Markov chain Monte Carlo as an inference: chains whose draws are members of the posterior.

    θ₁, θ₂, … ~ p(θ | data) ∝ Πᵢ p(yᵢ | η(xᵢ; θ)) p(θ)

All chains are one tensor program. They start apart from one another, warm up (step sizes, trajectory lengths and the
spread of the posterior are learned from all of them together), and are then judged by R-hat and ESS: of the parameters
of a linear model, and of log p and of η at some training rows for a network, whose units can be exchanged without any
change of the function, so that chains may disagree about weights while they agree about everything they predict.
"""

from __future__ import annotations

import time
import warnings
from typing import Any

import torch
from torch import Tensor

from ...core.callbacks import Callbacks
from ...core.checkpoint import Checkpoint, Saver
from ...core.errors import ConvergenceWarning, TrainingError
from ...core.random import spread
from ...core.spec import require, transient
from ...sampling.density import as_generator
from ...sampling.driver import Driver, Length, own_copy
from ...sampling.sampler import Sampler
from ..coordinates import CoordinateDensity, Coordinates
from ..fingerprint import data_fingerprint
from ..log_posterior import LogPosterior
from ..posterior import Posterior
from ..problem import Inference, Problem
from .convergence import JUDGED, agreement, said_of, untold
from .draws import ChainPosterior
from .improper import check_proper
from .start import coordinates_of, start_chains

__all__ = ["_MarkovChain"]

ENOUGH = 100
"""Draws of a chain from which on a hundredth of its moves is more than one or two that happened to diverge."""
DESCENT = 200
"""Steps that bring the chains of a network near a mode."""


class _MarkovChain(Inference):
    """What all of them share. A method is a file with its fields and `sampler()`, which gives the sampler they mean.

    The posterior has chains · draws members, and predictions average over all of them: for more precise answers raise
    `draws`; where successive draws resemble one another, `thin` keeps every thin-th step, so that as many members are
    worth more. `checkpoint` is a path: a fit that was killed resumes from it to the same bits. `callbacks`
    see each step; one that returns True ends the chains with the draws they have. `stream` is the path of
    a file for the draws; without one they are kept in a temporary file once they take more than a gigabyte.
    """

    dtype = torch.float64
    needs = frozenset({"exact"})
    integrates = True

    chains: int = 16
    draws: int = 100
    warmup: int = 300
    thin: int = 1
    checkpoint: Checkpoint | str | None = transient()
    callbacks: Callbacks = transient(())
    stream: str | None = transient()

    def validate(self) -> None:
        """Counts are integers; the sampler checks its own arguments."""
        for name, least in (("chains", 1), ("draws", 1), ("warmup", 0), ("thin", 1)):
            value = getattr(self, name)
            whole = isinstance(value, int) and not isinstance(value, bool) and value >= least
            require(whole, self, name, f"an integer of {least} or more")
        self.sampler()

    def sampler(self, *, whitened: bool = False) -> Sampler:
        """The method of `likely.sampling` that moves the chains; `whitened` if the posterior is nearly standard."""
        raise NotImplementedError(f"{type(self).__name__} must say its sampler")

    def fit(self, problem: Problem) -> Posterior:
        """The draws of all chains."""
        with torch.no_grad():
            run = _Run(problem, self)
            run.driver.run()
            return run.posterior()


class _Run:
    """One run: the coordinates that suit the problem, chains driven in them, and what they say."""

    def __init__(self, problem: Problem, spec: _MarkovChain) -> None:
        self.began = time.perf_counter()
        saver = Saver(spec.checkpoint, _fingerprint(problem, spec))
        saved = saver.read()
        if saved is not None:
            if problem.seeded:
                saver.refuse_seeds([saved["seed"]], [problem.seed])
            problem = problem.with_(seed=saved["seed"])
        self.problem, self.spec = problem, spec
        self.target = LogPosterior(problem)
        device = problem.data.x.device
        if saved is None:
            self.coordinates = coordinates_of(problem, self.target)
        else:
            factor = None if saved["factor"] is None else own_copy(saved["factor"], device)
            self.coordinates = Coordinates(own_copy(saved["centre"], device), factor)
        self.driver = Driver(
            spec.sampler(whitened=self.coordinates.dense),
            CoordinateDensity(self.target, self.coordinates),
            as_generator(spread(problem.seed, 1)[0], device),
            Length(spec.draws, spec.warmup, spec.thin),
            saver,
            stream=spec.stream,
            point=self.coordinates.point,
            extra={"seed": problem.seed, "centre": self.coordinates.centre, "factor": self.coordinates.factor},
            title=problem.title,
            verbose=problem.verbose,
            callbacks=spec.callbacks,
        )
        if saved is None:
            self.driver.begin(self._starts())
        else:
            self.driver.resume(saved)

    def _starts(self) -> Tensor:
        descent = min(DESCENT, 2 * self.spec.warmup)
        position = start_chains(self.target, self.coordinates, self.spec.chains, descent, self.driver.generator)
        position = _possible(CoordinateDensity(self.target, self.coordinates), position)
        check_proper(self.target, self.coordinates, position, self.problem.prior)
        return position

    def posterior(self) -> ChainPosterior:
        """All draws as members, with what can be said of them."""
        driver, device = self.driver, self.problem.data.x.device
        drawn = self.target.named(driver.draws.flatten(0, 1).to(device))
        posterior = ChainPosterior.of_draws(self.target.module, drawn, driver.log_prob, driver.stats)
        posterior.info |= {
            "acceptance": float(driver.stats["acceptance_rate"].mean()),
            "step_size": float(driver.stats["step_size"][:, -1].mean()) if "step_size" in driver.stats else None,
            "divergences": driver.divergences,
            **agreement(self.target, driver.draws, driver.log_prob),
            "seconds": time.perf_counter() - self.began,
        }
        self.warn(posterior.info)
        return posterior

    def warn(self, info: dict[str, Any]) -> None:
        """Say so if the chains disagree, are too short to tell, stand still, or lost their way."""
        spec, moves = self.spec, self.spec.chains * self.spec.draws * self.spec.thin
        if spec.draws < JUDGED:  # nothing else can be said of so few
            if few := untold(info, spec.draws):
                warnings.warn(f"{few}.", ConvergenceWarning, stacklevel=5)
            return
        if info["acceptance"] < 1e-3:
            problem = f"Of the moves proposed, {info['acceptance']:.2g} were accepted: the chains stand still"
        elif disagreement := said_of(info):
            problem = disagreement
        elif spec.draws >= ENOUGH and info["divergences"] > 0.01 * moves:
            lost = info["divergences"]
            problem = f"{lost} of {moves} moves diverged, so some parts of the posterior were not reached"
        else:
            return
        warnings.warn(
            f"{problem}. Try a longer warmup (now {spec.warmup}), more steps between draws (thin, now {spec.thin}), "
            "standardised X and y, or a narrower prior; posterior_.to_arviz() shows which chains are stuck.",
            ConvergenceWarning,
            stacklevel=5,
        )


def _possible(density: CoordinateDensity, position: Tensor) -> Tensor:
    """Starts with a finite log-density and gradient; those without are replaced by others."""
    value, gradient = density.value_and_grad(position)
    good = value.isfinite() & gradient.isfinite().all(1)
    if not bool(good.any()):
        finite = bool(value.isfinite().any())
        what = "The gradient of log p(θ | data) is not finite" if finite else f"log p(θ | data) is {float(value[0]):g}"
        raise TrainingError(
            f"{what} where every chain starts, so none can move; standardise X and y, look for NaN in what the "
            "network gives, or give the parameters a narrower prior."
        )
    if bool(good.all()):
        return position
    starts = good.nonzero()[:, 0]
    return position[torch.where(good, torch.arange(len(good)).to(starts), starts[0])]


def _fingerprint(problem: Problem, spec: _MarkovChain) -> dict[str, Any]:
    """What tells one fit from another; a checkpoint of another is refused."""
    if spec.checkpoint is None:
        return {}
    return {
        "inference": repr(spec.replace(checkpoint=None, callbacks=())),
        "likelihood": repr(problem.objective),
        "network": problem.description.text,
        "prior": repr(problem.prior),
        "data": data_fingerprint(problem.data),
    }
