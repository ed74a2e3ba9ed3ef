"""ScoreModel: the gradient of a log density, learned at several levels of noise, and draws by following it.

    s(x, σ; θ) ≈ ∇ log p_σ(x),      p_σ = p ∗ N(0, σ²)

    min Σ_σ λ(σ) E ½‖s(x + σε, σ) − ∇ log p_σ(x + σε)‖²,      λ(σ) = σ² + 0.2²

The normaliser of p never enters, so the model has a score and draws, and no log_prob.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import AbstractContextManager
from functools import partial
from itertools import pairwise
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from ...core.draws import Refused
from ...core.errors import DataError
from ...core.random import drawing, evenly, normal_like
from ...core.spec import is_integer, require
from ...inference import MAP, Inference
from ...inference.objective import RowDensity
from ...inference.training.averaging import EMA
from ...likelihoods import Normal
from ...networks import MLP
from ...optim import Adam, Cosine
from ...priors import Flat
from .base import _Generative
from .constants import warn_of_constants
from .features import Features
from .field import Field
from .langevin import annealed_langevin
from .module import DensityModule, ask
from .rows import refuse_text
from .score_matching import denoising_loss, explicit_loss, sliced_loss

__all__ = ["ScoreModel"]

Objective = Literal["denoising", "sliced", "explicit"]
MOST, FEWEST = 5.0, 0.05
"""The first and the last level of noise, in standard deviations of the columns."""
WIDTH = 0.2
"""The width that a density without noise is taken to have at least, in standard deviations of its columns."""
DWELL = 0.02
"""Turns of the slowest of the sines that tell the network the level: levels side by side look alike to it."""
UNKNOWN = "score matching leaves the normaliser of p unknown; use score_function, or Flow and Diffusion for log_prob"


class ScoreModel(_Generative):
    """s(x) ≈ ∇ log p(x) by any network that takes a condition (the level of noise): `MLP`, `UNet` for images.

    `objective` is "denoising" (no derivative of the network), "sliced" (one random direction per row) or "explicit"
    (the whole trace: one pass back per column); all have the same minimiser. `noise_levels` is how many, falling from 5
    to 0.05 standard deviations of the columns, or the levels themselves; "sliced" and "explicit" may end at 0.
    `score_function` gives the score at the last level, in the units of the data. New rows come by annealed Langevin
    dynamics: `steps` at each level, of size `step` in units of σ².

    >>> rows = np.random.default_rng(0).normal(size=(64, 2))
    >>> model = ScoreModel(MLP((16,)), noise_levels=4, inference=MAP(epochs=2), random_state=0).fit(rows)
    >>> model.sample(3, random_state=0).shape, model.score_function(rows).shape
    ((3, 2), (64, 2))
    >>> model.log_prob(rows)
    Traceback (most recent call last):
    ...
    AttributeError: ScoreModel has no log_prob: score matching leaves the normaliser of p unknown; use ...
    """

    log_prob_kind_ = Refused(UNKNOWN)  # type: ignore[assignment]
    log_prob = Refused(UNKNOWN)  # type: ignore[assignment]
    score = Refused(UNKNOWN)  # type: ignore[assignment]

    def __init__(
        self,
        network: Any = MLP((128, 128), activation="silu"),  # noqa: B008 (specs are frozen values)
        objective: Objective = "denoising",
        noise_levels: int | Sequence[float] = 12,
        steps: int = 30,
        step: float = 0.2,
        prior: Any = Flat(),  # noqa: B008
        inference: Any = "auto",
        random_state: Any = None,
        device: Any = "auto",
        verbose: bool = False,
    ) -> None:
        self.network = network
        self.objective = objective
        self.noise_levels = noise_levels
        self.steps = steps
        self.step = step
        self.prior = prior
        self.inference = inference
        self.random_state = random_state
        self.device = device
        self.verbose = verbose

    # --- what makes it a score model ----------------------------------------------------------------------------
    def _check_arguments(self) -> None:
        kinds = ("denoising", "sliced", "explicit")
        require(self.objective in kinds, self, "objective", "'denoising', 'sliced' or 'explicit'")
        require(is_integer(self.steps), self, "steps", "a positive integer")
        small = isinstance(self.step, int | float) and 0 < self.step <= 1
        require(small, self, "step", "a number above 0 and at most 1")
        if not is_integer(self.noise_levels):
            least = "above 0" if self.objective == "denoising" else "0 or more"
            require(
                self._levels_will_do(), self, "noise_levels", f"a positive integer, or falling numbers, each {least}"
            )

    def _levels_will_do(self) -> bool:
        given = self.noise_levels
        if not isinstance(given, list | tuple | np.ndarray) or not len(given):
            return False
        numbers = all(isinstance(value, int | float | np.number) and math.isfinite(value) for value in given)
        falling = numbers and all(a > b for a, b in pairwise(given))
        return falling and (given[-1] > 0 or (given[-1] == 0 and self.objective != "denoising"))

    def _levels(self) -> list[float]:
        """σ₁ > … > σ_L in standard deviations of the columns."""
        given = self.noise_levels
        if not isinstance(given, int):
            return [float(value) for value in given]
        return np.geomspace(MOST, FEWEST, given).tolist() if given > 1 else [FEWEST]

    def _likelihood(self) -> Any:
        return Normal()

    def _check_rows(self, x: Tensor) -> None:
        super()._check_rows(x)
        refuse_text(self.form_, "ScoreModel follows the gradient of a density of numbers")
        warn_of_constants(self, x)

    def _objective(self) -> RowDensity:
        return RowDensity(type(self).__name__, "bound", random=True)  # ½ E‖∇ log p‖² − F is one, up to a constant

    def _module(self) -> DensityModule:
        condition = None if self.condition_ is None else self.condition_.shape
        units = Features(self.columns_, self.form_.shape, missing=False)
        walk = (self.steps, float(self.step))
        return ScoreModule(self.network, units, self.form_.shape, condition, self.objective, self._levels(), walk)

    def _automatic(self, rows: int) -> Inference:
        batch = min(128, max(1, rows // 4))
        epochs = max(20, min(4_000, 10_000 * batch // max(1, rows)))
        return MAP(Adam(1e-3), epochs=epochs, batch_size=batch, schedule=Cosine(), clip_norm=10.0, average=EMA(0.999))

    # --- questions ----------------------------------------------------------------------------------------------
    def _question(self, seed: int) -> AbstractContextManager[Any]:
        return drawing(seed)

    def score_function(self, X: Any, condition: Any = None, *, level: int = -1) -> np.ndarray:
        """∇ log p(x) of each row, of the shape of X, in the units of the data; at another level of noise if asked.

        Over the members of a posterior it is the mean.
        """
        x, given = self._asked(X, condition)
        count = len(self._levels())
        if not isinstance(level, int | np.integer) or not -count <= level < count:
            raise DataError(f"level={level!r} must be from {-count} to {count - 1}: there are {count} levels of noise.")

        def score(rows: slice, member: int) -> Tensor:
            told = None if given is None else given[rows]
            return self._cpu(ask(self.posterior_, member, "data_score", x[rows], told, level % count))

        total = np.zeros((len(x), *self.form_.shape))
        for member, weight in enumerate(self.posterior_.weights.double().tolist()):
            with self._question(self._seed_of_question(None, member)):
                total += weight * self._in_blocks(len(x), partial(score, member=member)).numpy()
        return total


class ScoreModule(DensityModule):
    """s(z, σ) = −z/(1 + σ²) + f(z/√(1 + σ²), σ)/√((1 + σ²)(σ² + w²)) of rows z in units of the columns.

    The first part is the score of standard normal rows, so the network answers for what differs, at a scale of 1; and
    as the score no longer changes where σ is small (below w), neither does what the network is to answer.
    """

    sigmas: Tensor

    def __init__(
        self,
        network: Any,
        units: Features,
        shape: tuple[int, ...],
        condition: tuple[int, ...] | None,
        objective: Objective,
        levels: list[float],
        walk: tuple[int, float],
    ) -> None:
        super().__init__()
        self.units, self.shape, self.objective, self.levels, self.walk = units, shape, objective, levels, walk
        self.field = Field(network, shape, condition)
        self.register_buffer("sigmas", torch.tensor(levels))

    def adapt(self, x: Tensor, condition: Tensor | None, weight: Tensor | None) -> None:
        self.units.adapt(x, weight)
        self.field.adapt(condition)

    def score(self, z: Tensor, level: Tensor, condition: Tensor | None) -> Tensor:
        """∇ log p_σ(z) at the level (n,) of each row."""
        sigma = self.sigmas[level].view(-1, *(1,) * len(self.shape))
        whole = 1 + sigma.square()
        inner = whole.sqrt()
        t = level.to(z) * (DWELL / max(1, len(self.levels) - 1))
        return self.field(z / inner, t, condition) / (_width(sigma) * inner) - z / whole

    # --- training -----------------------------------------------------------------------------------------------
    def forward(self, x: Tensor, condition: Tensor | None = None) -> Tensor:
        z = self.units(x)
        level = (evenly(len(z), z) * len(self.levels)).long().clamp_max(len(self.levels) - 1)  # as even as can be
        sigma = self.sigmas[level].view(-1, *(1,) * len(self.shape))
        noise = normal_like(z)

        def score(rows: Tensor) -> Tensor:
            return self.score(rows, level, condition)

        if self.objective == "denoising":
            # noise of both signs: at small σ, ε/σ is most of the gradient's variance, and cancels
            loss = 0.5 * (denoising_loss(score, z, noise, sigma) + denoising_loss(score, z, -noise, sigma))
        elif self.objective == "sliced":
            loss = sliced_loss(score, z + sigma * noise, normal_like(z))
        else:
            loss = explicit_loss(score, z + sigma * noise)
        return -_width(sigma).square().flatten() * loss

    # --- answers ------------------------------------------------------------------------------------------------
    def data_score(self, x: Tensor, condition: Tensor | None, level: int) -> Tensor:
        """The score in the units of the data: ∂/∂x = 1/scale · ∂/∂z."""
        levels = torch.full((len(x),), level, device=x.device)
        value = self.score(self.units(x), levels, condition)
        return (value.flatten(1) / self.units.scale).view_as(x)

    def sample(self, count: int, condition: Tensor | None = None) -> Tensor:
        return self.back(self.walked(self.start(count), condition))

    def complete(self, x: Tensor, condition: Tensor | None, draws: int) -> Tensor:
        """Known parts of a row follow the level of noise, and the rest finds its way beside them."""
        rows = x.repeat(draws, *(1 for _ in self.shape))
        given = None if condition is None else condition.repeat(draws, *(1 for _ in condition.shape[1:]))
        gaps, z = rows.isnan(), self.units(rows).nan_to_num()

        def held(state: Tensor, level: int) -> Tensor:
            return torch.where(gaps, state, z + self.levels[level] * normal_like(z))

        state = held(self.start(len(z)), 0)
        new = self.back(self.walked(state, given, held))
        return torch.where(gaps, new, rows).unflatten(0, (draws, len(x)))

    def start(self, count: int) -> Tensor:
        """Rows as noise of the first level leaves them, nearly."""
        return normal_like(self.sigmas.new_empty(count, *self.shape)) * math.hypot(1.0, self.levels[0])

    def walked(self, z: Tensor, condition: Tensor | None, held: Any = None) -> Tensor:
        """Annealed Langevin dynamics, and at the end the mean of what the row was before the last noise: z + σ²s."""
        rows = torch.zeros(len(z), dtype=torch.long, device=z.device)

        def score(state: Tensor, level: int) -> Tensor:
            return self.score(state, rows + level, condition)

        widths = [level or WIDTH for level in self.levels]
        z = annealed_langevin(score, widths, z, *self.walk, held)
        return z + self.levels[-1] ** 2 * score(z, len(widths) - 1)

    def back(self, z: Tensor) -> Tensor:
        """From the units of the network to those of the data."""
        return self.units.inverse(z)


def _width(sigma: Tensor) -> Tensor:
    """√(σ² + w²): the width of the narrowest part of a density with noise σ."""
    return (sigma.square() + WIDTH**2).sqrt()
