"""Markov chain Monte Carlo as an inference: chains whose draws are members of the posterior.

    θ₁, θ₂, … ~ p(θ | data) ∝ Πᵢ p(yᵢ | η(xᵢ; θ)) p(θ)

All chains are one tensor program. They start apart from one another, warm up (step sizes, trajectory lengths and the
spread of the posterior are learned from all of them together), and are then judged by R-hat and ESS: of the parameters
of a linear model, and of log p and of η at some training rows for a network, whose units can be exchanged without any
change of the function, so that chains may disagree about weights while they agree about everything they predict.
"""

from __future__ import annotations

import dataclasses
import time
import warnings
from typing import Any

import torch
from torch import Tensor

from ...core import distributed
from ...core.errors import ConvergenceWarning, TrainingError
from ...core.progress import progress
from ...core.random import spread
from ...core.spec import require, transient
from ...sampling.density import as_generator
from ...sampling.sampler import Info, Sampler, State
from ..checkpoint import Checkpoint, Saver, data_fingerprint
from ..coordinates import CoordinateDensity, Coordinates
from ..log_posterior import LogPosterior
from ..posterior import Posterior
from ..problem import Inference, Problem
from .convergence import agreement
from .draws import ChainPosterior, room_for
from .improper import check_proper
from .start import coordinates_of, start_chains

__all__ = ["_MarkovChain"]

AGREE = 1.05
"""R-hat up to which chains are said to agree."""
JUDGED = 100
"""Draws of a chain from which on R-hat says something: in shorter ones chance alone can take it beyond."""
DESCENT = 200
"""Steps that bring the chains of a network near a mode."""


class _MarkovChain(Inference):
    """What all of them share. A method is a file with its fields and `sampler()`, which gives the sampler they mean.

    The posterior has chains · draws members, and predictions average over all of them: for more precise answers raise
    `draws`; where successive draws resemble one another, `thin` keeps every thin-th step, so that as many members are
    worth more. `checkpoint` is a path: a fit that was killed resumes from it to the same bits. `stream` is the path of
    a file for the draws; without one they are kept in a temporary file once they take more than a gigabyte.
    """

    dtype = torch.float64
    needs = frozenset({"exact"})

    chains: int = 16
    draws: int = 100
    warmup: int = 300
    thin: int = 1
    checkpoint: Checkpoint | str | None = transient()
    stream: str | None = transient()

    def validate(self) -> None:
        """Counts are whole numbers; the sampler checks what is its own."""
        for name, least in (("chains", 1), ("draws", 1), ("warmup", 0), ("thin", 1)):
            value = getattr(self, name)
            whole = isinstance(value, int) and not isinstance(value, bool) and value >= least
            require(whole, self, name, f"a whole number of {least} or more")
        self.sampler()

    def sampler(self, *, whitened: bool = False) -> Sampler:
        """The method of `likely.sampling` that moves the chains; `whitened` if the posterior is nearly standard."""
        raise NotImplementedError(f"{type(self).__name__} must say its sampler")

    def fit(self, problem: Problem) -> Posterior:
        """The draws of all chains."""
        with torch.no_grad():
            run = _Run(problem, self)
            run.loop()
            return run.posterior()


class _Run:
    """One run: everything that changes, so that it can be written to a checkpoint and taken up again."""

    def __init__(self, problem: Problem, spec: _MarkovChain) -> None:
        self.began = time.perf_counter()
        self.saver = Saver(spec.checkpoint, _fingerprint(problem, spec))
        saved = self.saver.read()
        if saved is not None:
            if problem.seeded:
                self.saver.refuse_seeds([saved["seed"]], [problem.seed])
            problem = problem.with_(seed=saved["seed"])
        self.problem, self.spec = problem, spec
        self.target = LogPosterior(problem)
        self.generator = as_generator(spread(problem.seed, 1)[0], problem.data.x.device)
        self.index, self.divergences = 0, 0
        self.stats: dict[str, Tensor] = {}
        self.log_prob = torch.empty((spec.chains, spec.draws), dtype=torch.float64)
        shape = (spec.chains, spec.draws, self.target.size)
        self.kept, self.file = room_for(shape, spec.stream, again=saved is not None)
        distributed.sum_(torch.zeros(()))  # no process writes to a file that another still makes
        if saved is None:
            self.coordinates = coordinates_of(problem, self.target)
        else:
            place = problem.data.x.device
            centre, factor = (
                None if saved[name] is None else _own(saved[name], place) for name in ("centre", "factor")
            )
            assert centre is not None
            self.coordinates = Coordinates(centre, factor)
        self.density = CoordinateDensity(self.target, self.coordinates)
        self.sampler = spec.sampler(whitened=self.coordinates.dense)
        self.state = self._begin() if saved is None else self._resume(saved)

    def _begin(self) -> State:
        descent = min(DESCENT, 2 * self.spec.warmup)
        position = start_chains(self.target, self.coordinates, self.spec.chains, descent, self.generator)
        position = _possible(self.density, position)
        check_proper(self.target, self.coordinates, position, self.problem.prior)
        return self.sampler.init(position, self.density)

    # --- the loop -----------------------------------------------------------------------------------------------
    def loop(self) -> None:
        spec, total = self.spec, self.spec.warmup + self.spec.draws * self.spec.thin
        with progress(self.problem.title, total, show=self.problem.verbose) as report:
            while self.index < total:
                self.state, info = self.sampler.step(self.state, self.density, self.generator)
                if self.index < spec.warmup:
                    self.state = self.sampler.adapt(self.state, info, self.index, spec.warmup)
                else:
                    self.keep(info)
                self.index += 1
                if self.problem.verbose:
                    report(self.index, **self.numbers(info))
                if self.saver.due():
                    self.save()
        if spec.checkpoint is not None:
            self.save()

    def keep(self, info: Info) -> None:
        """Count what diverged; every thin-th step is a draw."""
        if "diverging" in info.stats:
            self.divergences += int(info.stats["diverging"].sum())
        number, rest = divmod(self.index - self.spec.warmup + 1, self.spec.thin)
        if rest:
            return
        self.kept[:, number - 1] = self.coordinates.point(self.state.position).to(self.kept)
        self.log_prob[:, number - 1] = self.state.log_prob
        for name, value in {"acceptance_rate": info.acceptance, **info.stats}.items():
            if name not in self.stats:
                self.stats[name] = torch.zeros((len(value), self.spec.draws), dtype=value.dtype)
            self.stats[name][:, number - 1] = value

    def numbers(self, info: Info) -> dict[str, float]:
        """What to show beside the bar."""
        found = {"acceptance": float(info.acceptance.mean())}
        if "step_size" in info.stats:
            found["step size"] = float(info.stats["step_size"].mean())
        return found | {"divergences": self.divergences}

    # --- state --------------------------------------------------------------------------------------------------
    def save(self) -> None:
        """Write all that the rest of the run depends on; draws that lie in a file of their own are only flushed."""
        done = max(0, self.index - self.spec.warmup) // self.spec.thin
        if self.file is not None:
            self.file.flush()
        self.saver.write(
            {
                "seed": self.problem.seed,
                "index": self.index,
                "divergences": self.divergences,
                "generator": self.generator.get_state(),
                "centre": self.coordinates.centre,
                "factor": self.coordinates.factor,
                "state": _plain(self.state),
                "draws": self.kept[:, :done].contiguous() if self.spec.stream is None else None,
                "log_prob": self.log_prob[:, :done].contiguous(),
                "stats": {name: value[:, :done].contiguous() for name, value in self.stats.items()},
            }
        )

    def _resume(self, saved: dict[str, Any]) -> State:
        self.index, self.divergences = saved["index"], saved["divergences"]
        self.generator.set_state(saved["generator"])
        done = saved["log_prob"].shape[1]
        if saved["draws"] is not None:
            self.kept[:, :done] = saved["draws"]
        self.log_prob[:, :done] = saved["log_prob"]
        for name, value in saved["stats"].items():
            self.stats[name] = torch.zeros((len(value), self.spec.draws), dtype=value.dtype)
            self.stats[name][:, :done] = value
        position = _own(saved["state"]["position"], self.problem.data.x.device)
        state: State = _like(self.sampler.init(position, self.density), saved["state"])
        return state

    # --- the end ------------------------------------------------------------------------------------------------
    def posterior(self) -> ChainPosterior:
        flat = self.kept.flatten(0, 1)
        place = self.problem.data.x.device
        drawn = self.target.named(flat.to(place))
        found = ChainPosterior.of_draws(self.target.module, drawn, self.log_prob, self.stats)
        found.info |= {
            "acceptance": float(self.stats["acceptance_rate"].mean()),
            "step_size": float(self.stats["step_size"][:, -1].mean()) if "step_size" in self.stats else None,
            "divergences": self.divergences,
            **agreement(self.target, self.kept, self.log_prob),
            "seconds": time.perf_counter() - self.began,
        }
        self.warn(found.info)
        return found

    def warn(self, info: dict[str, Any]) -> None:
        """Say so if the chains disagree, stand still, or lost their way."""
        spec, moves = self.spec, self.spec.chains * self.spec.draws * self.spec.thin
        if spec.draws < JUDGED:
            return
        if info["acceptance"] < 1e-3:
            problem = f"Of the moves proposed, {info['acceptance']:.2g} were accepted: the chains stand still"
        elif info["rhat"] is not None and info["rhat"] > AGREE:
            problem = f"The chains do not agree: R-hat of {info['rhat_of']} is {info['rhat']:.2f}, above {AGREE}"
        elif self.divergences > 0.01 * moves:
            problem = f"{self.divergences} of {moves} moves diverged, so some parts of the posterior were not reached"
        else:
            return
        warnings.warn(
            f"{problem}. Try a longer warmup (now {spec.warmup}), more steps between draws (thin, now {spec.thin}), "
            "standardised X and y, or a narrower prior; posterior_.to_arviz() shows which chains are stuck.",
            ConvergenceWarning,
            stacklevel=5,
        )


def _possible(density: CoordinateDensity, position: Tensor) -> Tensor:
    """Starts with a finite log-density and slope; those without take the place of others."""
    value, slope = density.value_and_grad(position)
    good = value.isfinite() & slope.isfinite().all(1)
    if not bool(good.any()):
        finite = bool(value.isfinite().any())
        what = "The slope of log p(θ | data) is not finite" if finite else f"log p(θ | data) is {float(value[0]):g}"
        raise TrainingError(
            f"{what} where every chain starts, so there is no way to go; standardise X and y, look for NaN in what the "
            "network gives, or give the parameters a narrower prior."
        )
    if bool(good.all()):
        return position
    places = good.nonzero()[:, 0]
    return position[torch.where(good, torch.arange(len(good)).to(places), places[0])]


def _fingerprint(problem: Problem, spec: _MarkovChain) -> dict[str, Any]:
    """What tells one fit from another; a checkpoint of another is refused."""
    if spec.checkpoint is None:
        return {}
    return {
        "inference": repr(spec.replace(checkpoint=None)),
        "likelihood": repr(problem.objective),
        "network": " ".join(repr(problem.module()).split()),
        "prior": repr(problem.prior),
        "data": data_fingerprint(problem.data),
    }


def _plain(value: Any) -> Any:
    """A state as dicts, lists and tensors. A matrix that lies in memory column by column is kept that way."""
    if isinstance(value, Tensor) and value.ndim == 2 and not value.is_contiguous() and value.T.is_contiguous():
        return {"transposed": value.T}
    if dataclasses.is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    return [_plain(part) for part in value] if isinstance(value, tuple | list) else value


def _like(template: Any, saved: Any) -> Any:
    """What `_plain` took apart, put together as the template is."""
    if dataclasses.is_dataclass(template) and not isinstance(template, type):
        parts = {field.name: _like(getattr(template, field.name), saved[field.name]) for field in _fields(template)}
        return dataclasses.replace(template, **parts)
    if isinstance(template, tuple):
        parts_ = [_like(part, kept) for part, kept in zip(template, saved, strict=True)]
        return type(template)(*parts_) if hasattr(template, "_fields") else tuple(parts_)
    if isinstance(saved, dict):
        return _own(saved["transposed"], template.device).T
    return _own(saved, template.device) if isinstance(template, Tensor) else saved


def _own(saved: Tensor, place: torch.device) -> Tensor:
    """A copy in memory of its own: products depend, in their last bits, on how their numbers lie there."""
    return saved.clone().to(place)


def _fields(value: Any) -> Any:
    return dataclasses.fields(value)
