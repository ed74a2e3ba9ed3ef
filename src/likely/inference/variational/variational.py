"""Variational: the normal distribution q(θ) that is nearest to the posterior.

    q = argmax ELBO,   ELBO = E_q[log p(y, θ | x) − log q(θ)] = log p(y | x) − KL(q ‖ p(θ | data)) ≤ log p(y | x)

Gradients go through the draws, θ = μ + Tε, along the path alone ("sticking the landing"): where q is the posterior they
are 0 for every single draw, so that noise fades as q comes near. Draws come in mirrored pairs.
"""

from __future__ import annotations

import math
from typing import Any, Literal

import torch
from torch import Tensor

from ...core.callbacks import Callbacks
from ...core.checkpoint import Checkpoint
from ...core.errors import SpecError, TrainingError
from ...core.random import spread
from ...core.spec import as_spec, require, transient
from ...optim import Adam, Cosine, Optimizer
from ..gaussian import Gaussian
from ..log_posterior import LogPosterior
from ..parameters import stacked
from ..posterior import Posterior
from ..precondition import (
    SMALL,
    hessian,
    lengths,
    precondition,
    within,
)
from ..problem import Inference, Problem
from ..training.engine import Step, optimizer_state, restore_optimizer, train
from ..training.mini_batches import MiniBatches, started, to_float32
from .gaussian_family import FullRank, GaussianFamily, LowRank, MeanField
from .posterior import VariationalPosterior

__all__ = ["Variational"]

LARGEST = 2_000
"""Parameters of a full covariance matrix."""
ROWS = 4_096
"""Rows that the first scales of q are measured on."""
TRACE = 100
"""Numbers kept of the way the ELBO went."""


class Variational(Inference):
    """A normal approximation of the posterior: `"mean-field"`, `"low-rank"` (with `rank` directions) or `"full-rank"`.

    Starts where the inference `by` ends (None: what `inference="auto"` would take) with the widths of the posterior
    there, then climbs the ELBO for `steps` steps of `optimizer`, whose rate falls to 0 along a cosine. Each step takes
    `samples` draws and a mini-batch of `batch_size` rows (None: all). Steps are in units of those first widths, so the
    rate need not be tuned. Predictions average over `draws` members, drawn once with the seed of the fit. A fit with a
    `checkpoint` that was killed resumes from it to the same bits; `callbacks` see the ELBO of each step.

    `posterior_.info` has the `elbo` (on all rows), its standard error `elbo_error`, and `elbo_trace`, its way there.
    With a flat prior on some parameters the ELBO bounds the evidence of a density that is 1 along them.

    >>> from likely import Regressor
    >>> from likely.likelihoods import Normal
    >>> inference = Variational("full-rank", steps=50)
    >>> model = Regressor(Normal(1.0), prior="normal(2.0)", inference=inference, random_state=0)
    >>> model.fit([[0.0], [1.0], [2.0]], [1.0, 3.0, 5.0]).posterior_.gaussian.covariance().round(decimals=4)
    tensor([[ 0.4444, -0.4444],
            [-0.4444,  0.7778]], dtype=torch.float64)
    """

    dtype = torch.float64
    integrates = True

    family: Literal["mean-field", "low-rank", "full-rank"] = "mean-field"
    rank: int = 10
    steps: int = 1000
    samples: int = 8
    batch_size: int | None = 512
    optimizer: Optimizer = Adam(0.05, eps=0.1)
    draws: int = 100
    by: Inference | None = None
    checkpoint: Checkpoint | str | None = transient()
    callbacks: Callbacks = transient(())

    @classmethod
    def example(cls) -> Variational:
        """A few steps."""
        from ..training.map import MAP

        return cls(steps=5, samples=2, draws=4, by=MAP.example())

    def validate(self) -> None:
        """Numbers are positive; text becomes specs."""
        object.__setattr__(self, "optimizer", as_spec(self.optimizer, Optimizer, "optimizer"))
        if self.by is not None:
            object.__setattr__(self, "by", as_spec(self.by, Inference, "by"))
        families = ("mean-field", "low-rank", "full-rank")
        require(self.family in families, self, "family", '"mean-field", "low-rank" or "full-rank"')
        for name in ("rank", "steps", "draws"):
            require(getattr(self, name) > 0, self, name, "a positive integer")
        require(self.samples > 0 and self.samples % 2 == 0, self, "samples", "a positive even number: they are pairs")
        whole = self.batch_size is None or self.batch_size > 0
        require(whole, self, "batch_size", "a positive integer, or None for all rows at once")
        require(not self.optimizer.needs_closure, self, "optimizer", "one without a line search, such as Adam(0.05)")

    def fit(self, problem: Problem) -> Posterior:
        """q, with members drawn from it."""
        problem = to_float32(problem)
        climb = train(lambda seeds: self._climb(problem, seeds[0]), problem, [problem.seed], self)
        density = climb.density
        return VariationalPosterior(
            density.module,
            *stacked(density.module, {}, 1),
            info=climb.info() | {"draws": self.draws, "seed": spread(density.problem.seed, 5)[4]},
            gaussian=climb.gaussian(),
            trainable=list(density.parameters.shapes),
        )

    def _climb(self, problem: Problem, seed: int) -> _Climb:
        density = started(problem.with_(seed=seed), self.by, self.checkpoint)
        if self.family == "full-rank" and density.size > LARGEST:
            raise SpecError(
                f'Variational(family="full-rank") would need a matrix of {density.size:,} × {density.size:,}; it takes '
                f'up to {LARGEST:,} parameters. Use family="low-rank" or "mean-field".'
            )
        return _Climb(self, density, spread(seed, 4))


class _Climb(Step):
    """One ascent of the ELBO, in coordinates φ in which the posterior is about as wide in every direction."""

    def __init__(self, spec: Variational, density: LogPosterior, seeds: list[int]) -> None:
        self.spec, self.density, self.seeds = spec, density, seeds
        self.gradient = MiniBatches(density, spec.batch_size, seeds[0])
        self.random = torch.Generator().manual_seed(seeds[1])
        centre = density.start()
        rows = torch.randperm(self.gradient.rows, generator=torch.Generator().manual_seed(seeds[2]))[:ROWS]
        few = self.gradient.rows <= ROWS

        def value_and_grad(theta: Tensor) -> tuple[Tensor, Tensor]:
            return density.value_and_grad(theta) if few else self.gradient.on(rows, theta)

        problem = density.problem
        self.constant = float(problem.log_prior(density.named(centre)) - density.log_prior(centre.unsqueeze(0)))
        self.coordinates = precondition(value_and_grad, centre, seeds[3], dense=spec.family == "full-rank")
        assert self.coordinates.factor is not None
        self.widths = self.coordinates.factor
        self.log_det = float(self.coordinates.log_det())
        self.value_and_grad = value_and_grad
        self.curvature = self._curvature()
        self.family = self._family(centre)
        self.links = self._links()
        self.elbos: list[float] = []
        self.length = spec.steps
        self.optimizer = spec.optimizer.build(list(self.family.parameters()))

    def _curvature(self) -> Tensor | None:
        """−∇² log p at the centre, in coordinates φ, where that is cheap to have."""
        own = self.coordinates
        if self.spec.family == "full-rank" or len(own.centre) > SMALL:
            return None
        return hessian(self.value_and_grad, own.centre) * torch.outer(self.widths, self.widths)

    def _family(self, centre: Tensor) -> GaussianFamily:
        shift = torch.zeros_like(centre)
        if self.spec.family == "mean-field":
            return MeanField(shift)
        if self.spec.family == "full-rank":
            return FullRank(shift)
        return LowRank(shift, self._directions(min(self.spec.rank, len(centre))))

    def _directions(self, rank: int) -> Tensor:
        """Where the posterior is wider than its coordinates one by one say: small random ones where that is unknown."""
        directions = 0.1 / math.sqrt(rank) * self._noise(len(self.coordinates.centre), rank)
        if self.curvature is not None:
            values, vectors = torch.linalg.eigh(self.curvature)
            wide = vectors[:, :rank] * (1 / values[:rank].clamp(1e-6, 1) - 1).sqrt()
            axes = self.widths.unsqueeze(-1) * wide
            wide = wide * lengths(self.value_and_grad, self.coordinates.centre, axes).clamp_max(1)
            directions = directions + wide
        axes = self.widths.unsqueeze(-1) * directions
        return directions * within(self.value_and_grad, self.coordinates.centre, axes, self.seeds[3])

    def _links(self) -> Tensor | None:
        """A control variate of the mean-field gradients: the curvature between coordinates, if it makes them steadier.

        Coordinates that are correlated in the posterior push each other about, by Σ_{j≠i} Hᵢⱼ sⱼεⱼ on coordinate i.
        That is 0 on average, also times εᵢ, so it can be taken away.
        """
        if self.curvature is None or self.spec.family != "mean-field":
            return None
        links = self.curvature - torch.diag(self.curvature.diagonal())
        noise = self._noise(32, self.family.columns)
        path = self._path(noise)[0]
        plain, steady = ((push * noise).var(0).sum() for push in (path, path + noise @ links))
        return links if bool(steady < plain) else None

    def advance(self, at: int) -> None:
        """One step up."""
        for group in self.optimizer.param_groups:
            group["lr"] = self.spec.optimizer.lr * Cosine().factor(at, self.length)
        half = self._noise(self.spec.samples // 2, self.family.columns)
        noise = torch.cat([half, -half])
        path, elbo = self._path(noise)
        phi = self.family.draw(noise)
        if self.links is not None:
            path = path + (phi - self.family.shift).detach() @ self.links
        self.optimizer.zero_grad(set_to_none=True)
        (-(path * phi).sum() / len(phi)).backward()  # type: ignore[no-untyped-call]
        self.optimizer.step()
        self.elbos.append(elbo)
        if not math.isfinite(elbo):
            raise TrainingError(
                f"The ELBO is {elbo:g} at step {at + 1}: log p is not finite at some draws of θ. Try a prior on "
                "the weights, a smaller optimizer rate, or standardised inputs."
            )

    def report(self, at: int) -> dict[str, float]:
        """The mean of the last estimates."""
        return {"elbo": sum(self.elbos[-20:]) / len(self.elbos[-20:])}

    def state(self) -> dict[str, Any]:
        return {
            "family": [value.detach() for value in self.family.parameters()],
            "optimizer": optimizer_state(self.optimizer),
            "gradient": self.gradient.state(),
            "random": self.random.get_state(),
            "elbos": self.elbos,
        }

    @torch.no_grad()
    def restore(self, state: dict[str, Any]) -> None:
        for own, kept in zip(self.family.parameters(), state["family"], strict=True):
            own.copy_(kept)
        restore_optimizer(self.optimizer, state["optimizer"])
        self.gradient.restore(state["gradient"])
        self.random.set_state(state["random"])
        self.elbos = state["elbos"]

    @torch.no_grad()
    def _path(self, noise: Tensor) -> tuple[Tensor, float]:
        """∇_φ [log p − log q] at the draws of this noise, and the ELBO as they estimate it."""
        value, gradient = self.gradient(self.coordinates.point(self.family.draw(noise)))
        log_q, score = self.family.score(noise)
        elbo = float((value - log_q).mean()) + self.log_det + self.constant
        return self.coordinates.pull(gradient) - score, elbo

    def gaussian(self) -> Gaussian:
        """q in the parameters' own coordinates."""
        q, own = self.family.gaussian(), self.coordinates
        scale = None if q.scale is None else q.scale * self.widths
        factor = None if q.factor is None else own.spread(q.factor.T).T
        return Gaussian(own.point(q.mean.unsqueeze(0))[0], scale, factor)

    @torch.no_grad()
    def info(self) -> dict[str, Any]:
        """The ELBO on all rows from new, independent draws; the fewer, the more rows there are."""
        estimates = []
        count = max(16, min(1000, 2_000_000 // self.gradient.rows))
        for first in range(0, count, 50):
            noise = self._noise(min(50, count - first), self.family.columns)
            phi = self.family.draw(noise)
            estimates.append(self.density(self.coordinates.point(phi)) - self.family.score(noise)[0])
        values = torch.cat(estimates).double() + self.constant + self.log_det
        block = math.ceil(len(self.elbos) / TRACE)
        parts = [self.elbos[first : first + block] for first in range(0, len(self.elbos), block)]
        return {
            "elbo": float(values.mean()),
            "elbo_error": float(values.std()) / math.sqrt(len(values)),
            "elbo_trace": [sum(part) / len(part) for part in parts],
        }

    def _noise(self, count: int, columns: int) -> Tensor:
        like = self.density.start()
        return torch.randn(count, columns, dtype=like.dtype, generator=self.random).to(like.device)
