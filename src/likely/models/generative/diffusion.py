"""Diffusion: rows are made of noise, by undoing step by step what adding noise did.

xₜ = αₜ x₀ + σₜ ε        x̂₀ = f(xₜ, t; θ)        p(xₛ | xₜ) = q(xₛ | xₜ, x̂₀)

log p(x) ≥ E log p(x | z₀) − KL(q(x₁|x) ‖ p(x₁)) − ½ Σₜ (SNR(s) − SNR(t)) ‖x − x̂₀(xₜ, t)‖²
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Literal

import torch
from torch import Tensor
from torch.nn.functional import interpolate

from ...core.draws import count_of
from ...core.errors import DataError, SpecError
from ...core.random import current_generator, drawing, evenly, normal_like
from ...core.spec import as_spec, is_integer
from ...inference import MAP, Inference
from ...inference.training.averaging import EMA
from ...likelihoods import Normal
from ...networks import MLP
from ...optim import Adam
from ...optim import Cosine as CosineRate
from ...priors import Flat
from .argument import Argument
from .base import _Generative
from .constants import warn_of_constants
from .field import Field, loudness
from .gaussian_steps import Level, Predicts, data_from, forward_draw, level_at, noise_from, target_of
from .module import DensityModule, ask
from .origin import origin
from .points import Points
from .probability_flow import flow_log_prob
from .samplers import DDPM, Denoiser, Sampler
from .schedules import Cosine, NoiseSchedule, Path
from .transforms.conditioner import start_small

__all__ = ["Diffusion"]

UNCONDITIONED = 0.2
"""The fraction of training rows whose condition is hidden, so that guidance can leave it out."""
JUMPS = 3
"""How often each step is done anew when gaps are filled, so that both parts of a row come to agree."""
MOST_STEPS = 1_000_000
DRAWS = 64
"""Times at which the bound is looked at, if no number is given."""
CHOSEN: ContextVar[dict[str, Any] | None] = ContextVar("settings", default=None)
"""What the arguments say while a question is asked; they may have changed since the fit."""


class Diffusion(_Generative):
    """A diffusion model of rows, images or conditions of them.

    `network` takes rows and a condition (`MLP`, `UNet` for images, any module f(x, condition)); what it answers is
    the "noise", the "data" or the "velocity" (`predict`). `schedule` says how noise comes: `Cosine()`, `Linear()`,
    `Exploding()`, or `Learned()`. `sampler` is `DDPM()`, `DDIM(n)` or `Heun(n)`; `guidance` > 1 pushes draws towards
    their condition, beyond p(x | condition). A condition may be a label, a vector, or an image (of fewer pixels too).
    In a table, text and booleans are points too (see `points`): draws have labels, and the bound counts their
    probability; so it does for a smallest or largest value that many rows have, such as 0 (see `ends`).

    Training minimises ‖target − answer‖² at all times (`weighting="simple"`), or the bound itself ("bound").
    `log_prob` is that bound over `steps` steps, or with `likelihood="flow"` an estimate by the probability-flow ODE.
    Sampler, guidance and likelihood may change after the fit: `model.set_params(sampler=DDIM(20), guidance=2.0)`.

    >>> import numpy as np
    >>> from likely.inference import MAP
    >>> rows = np.random.default_rng(0).normal(size=(64, 2))
    >>> model = Diffusion(MLP((16,)), steps=20, inference=MAP(epochs=2), random_state=0).fit(rows)
    >>> model.sample(3, random_state=0).shape
    (3, 2)
    """

    predict = Argument("predict is what its network answers; a density has log_prob and sample")

    def __init__(
        self,
        network: Any = MLP((128, 128, 128), activation="silu"),  # noqa: B008 (specs are frozen values)
        predict: Predicts = "velocity",
        schedule: NoiseSchedule | str = Cosine(),  # noqa: B008
        steps: int = 1000,
        sampler: Sampler | str = DDPM(200),  # noqa: B008
        guidance: float = 1.0,
        weighting: Literal["simple", "bound"] = "simple",
        likelihood: Literal["bound", "flow"] = "bound",
        prior: Any = Flat(),  # noqa: B008
        inference: Any = "auto",
        random_state: Any = None,
        device: Any = "auto",
        verbose: bool = False,
    ) -> None:
        self.network = network
        self.predict = predict  # type: ignore[assignment]
        self.schedule = schedule
        self.steps = steps
        self.sampler = sampler
        self.guidance = guidance
        self.weighting = weighting
        self.likelihood = likelihood
        self.prior = prior
        self.inference = inference
        self.random_state = random_state
        self.device = device
        self.verbose = verbose

    @property
    def log_prob_kind_(self) -> str:  # type: ignore[override]
        """The bound is one; an ODE solved by steps gives an estimate."""
        return "bound" if self.likelihood == "bound" else "estimate"

    # --- what makes it a diffusion ------------------------------------------------------------------------------
    def _check_arguments(self) -> None:
        choices = {
            "predict": ("noise", "data", "velocity"),
            "weighting": ("simple", "bound"),
            "likelihood": ("bound", "flow"),
        }
        for name, allowed in choices.items():
            value = vars(self)[name]
            if value not in allowed:
                raise SpecError(f"{name}={value!r} must be one of {', '.join(map(repr, allowed))}.")
        if not is_integer(self.steps, 2) or self.steps > MOST_STEPS:
            raise SpecError(f"steps={self.steps!r} must be an integer from 2 to {MOST_STEPS:,}.")
        if not isinstance(self.guidance, int | float) or not self.guidance >= 0:
            raise SpecError(f"guidance={self.guidance!r} must be a number, 0 or more; 1 is p(x | condition) itself.")
        as_spec(self.schedule, NoiseSchedule, "schedule")
        as_spec(self.sampler, Sampler, "sampler")

    def _likelihood(self) -> Any:
        return Normal()

    def _check_rows(self, x: Tensor) -> None:
        super()._check_rows(x)
        labels = [column.name for column in self.form_.columns if column.kind != "number"]
        if labels and self.likelihood == "flow":
            raise DataError(
                f"Column {labels[0]!r} has labels, of which a flow has no probability; use likelihood='bound'."
            )
        warn_of_constants(self, x)

    def _module(self) -> DensityModule:
        condition = None if self.condition_ is None else self.condition_.shape
        predict: Predicts = vars(self)["predict"]
        schedule = as_spec(self.schedule, NoiseSchedule, "schedule")
        units = Points(self.columns_, self.form_.shape, ends=True)
        return Denoising(
            self.network, units, units.out_shape, condition, predict, schedule, self.steps, self._settings()
        )

    def _settings(self) -> dict[str, Any]:
        names = ("guidance", "weighting", "likelihood")
        return {"sampler": as_spec(self.sampler, Sampler, "sampler")} | {name: vars(self)[name] for name in names}

    def _automatic(self, rows: int) -> Inference:
        """Adam along a cosine; rows of numbers come in large batches, which share their targets (see `origin`)."""
        flat = len(self.form_.shape) == 1
        most, steps, fewest = (512, 6_000, 20) if flat else (64, 10_000, 10)
        batch = min(most, max(1, rows // 4))
        epochs = max(fewest, min(4_000, steps * batch // max(1, rows)))
        return MAP(
            Adam(2e-3), epochs=epochs, batch_size=batch, schedule=CosineRate(), clip_norm=1.0, average=EMA(0.999)
        )

    def _draws(self, draws: int | None) -> int:
        return DRAWS if draws is None else count_of(draws, "draws")

    # --- questions ----------------------------------------------------------------------------------------------
    def trajectory(self, n: int = 1, condition: Any = None, random_state: Any = None) -> Any:
        """Rows on their way from noise, (sampler's steps + 1, n, *shape): the first are noise, the last new rows."""
        given = self._spread_condition(condition, count_of(n)) if hasattr(self, "posterior_") else None
        with self._question(self._seed(random_state)):
            return self._cpu(ask(self.posterior_, 0, "trajectory", count_of(n), given)).numpy()

    @contextmanager
    def _question(self, seed: int) -> Iterator[Any]:
        self._check_arguments()
        token = CHOSEN.set(self._settings())
        try:
            with drawing(seed) as generator:
                yield generator
        finally:
            CHOSEN.reset(token)


class Denoising(DensityModule):
    """x̂₀ of noisy rows in units of the data, and what follows from it."""

    low: Tensor
    high: Tensor

    def __init__(
        self,
        network: Any,
        units: Points,
        shape: tuple[int, ...],
        condition: tuple[int, ...] | None,
        predict: Predicts,
        schedule: NoiseSchedule,
        steps: int,
        settings: dict[str, Any],
    ) -> None:
        super().__init__()
        self.units, self.shape, self.predict, self.steps = units, shape, predict, steps
        self.fitted = settings
        self.resized = condition is not None and len(condition) == len(shape) == 3
        told = condition
        if condition is not None:  # one number more says whether the condition is given
            told = (condition[0] + 1, *shape[1:]) if self.resized else (math.prod(condition) + 1,)
        self.path: Path = schedule.path()
        self.field = Field(network, shape, told)
        with torch.no_grad():
            start_small(self.field.network)
        self.gain = loudness(shape)
        self.alike = True
        """Whether training rows have equal weights."""
        self.register_buffer("low", torch.full((math.prod(shape),), -1.0))
        self.register_buffer("high", torch.full((math.prod(shape),), 1.0))

    @property
    def settings(self) -> dict[str, Any]:
        """Sampler, guidance and so on: of the question that is asked, or else of the fit."""
        return CHOSEN.get() or self.fitted

    @torch.no_grad()
    def adapt(self, x: Tensor, condition: Tensor | None, weight: Tensor | None) -> None:
        self.units.adapt(x, weight)
        self.field.adapt(self.told(condition))
        self.alike = weight is None
        rows = self.units.double()(x.double()).flatten(1)
        self.units.to(self.low.dtype)
        self.low.copy_(rows.amin(0))
        self.high.copy_(rows.amax(0))

    # --- the network --------------------------------------------------------------------------------------------
    def told(self, condition: Tensor | None, given: Tensor | None = None) -> Tensor | None:
        """The condition with a number that says whether it is given; hidden ones are 0 throughout."""
        if condition is None:
            return None
        rows = condition if self.resized else condition.flatten(1)
        if self.resized and rows.shape[2:] != self.shape[1:]:
            rows = interpolate(rows, self.shape[1:], mode="bilinear", align_corners=False)
        flag = torch.ones_like(rows[:, :1])
        both = torch.cat([rows, flag], 1)
        return both if given is None else both * given.to(both).view(-1, *(1,) * (both.ndim - 1))

    def answer(self, x: Tensor, t: Tensor, told: Tensor | None, level: Level) -> Tensor:
        """What the network says of noisy rows, which it sees with a variance of about 1."""
        inside = x / (level.alpha.square() + level.sigma.square()).sqrt() if self.path.exploding else x
        answer = self.field(self.gain * inside, t, told)
        return self.with_labels(answer, x, level) if self.units.labels else answer

    def with_labels(self, answer: Tensor, x: Tensor, level: Level) -> Tensor:
        """For labels the network tells chances given the rest of the row, which Bayes' rule joins with their noise."""
        data = self.units.label_means(answer, x, level.alpha, level.sigma)
        own = target_of(self.predict, data, noise_from(data, x, level), level)
        return torch.cat([answer[:, : self.units.dense], own[:, self.units.dense :]], 1)

    def data(self, x: Tensor, t: Tensor, told: Tensor | None, level: Level | None = None) -> Tensor:
        """x̂₀ of rows at times (n,), or at one time (1,) whose level is known."""
        level = level_at(self.path, t, x.ndim) if level is None else level
        return data_from(self.predict, self.answer(x, t, told, level), x, level)

    def denoiser(self, condition: Tensor | None, *, clip: bool) -> Denoiser:
        """x̂₀(x, t), guided, and within the range of the training rows if `clip`."""
        told = self.told(condition)
        guidance = self.settings["guidance"]

        def denoise(x: Tensor, t: Tensor, level: Level) -> Tensor:
            data = self.data(x, t, told, level)
            if told is not None and guidance != 1:
                without = self.data(x, t, torch.zeros_like(told), level)
                data = without + guidance * (data - without)
            if not clip:
                return data
            return data.flatten(1).clamp(self.low, self.high).view_as(data)

        return denoise

    # --- training and the bound ---------------------------------------------------------------------------------
    def forward(self, x: Tensor, condition: Tensor | None = None) -> Tensor:
        z = self.units(x)
        t = evenly(len(x), x)
        told = None
        if condition is not None:
            hidden = torch.empty(len(x), device=x.device).uniform_(generator=current_generator(x.device))
            told = self.told(condition, hidden >= (UNCONDITIONED if self.training else 0.0))
        if self.settings["weighting"] == "bound" or not self.training:
            return self.constant(x, z) - self.term(z, (t * self.steps).ceil().clamp_min(1), told)
        level = level_at(self.path, t, z.ndim)
        noise = normal_like(z)
        noisy = level.alpha * z + level.sigma * noise
        if self.alike:
            z = origin(noisy, z, *level, told)
            noise = noise_from(z, noisy, level)
        answer = self.answer(noisy, t, told, level)
        return -0.5 * (target_of(self.predict, z, noise, level) - answer).square().flatten(1).sum(1)

    def term(self, z: Tensor, index: Tensor, told: Tensor | None) -> Tensor:
        """Σₜ of the KL divergences, estimated from step number `index` (n,) of each row, counted from 1."""
        t, s = index / self.steps, (index - 1) / self.steps
        level = level_at(self.path, t, z.ndim)
        guess = self.data(level.alpha * z + level.sigma * normal_like(z), t, told)
        fall = self.path.log_snr(s).exp() - self.path.log_snr(t).exp()
        return 0.5 * self.steps * fall * (z - guess).square().flatten(1).sum(1)

    def constant(self, x: Tensor, z: Tensor) -> Tensor:
        """E log p(x | z₀) − KL(q(x₁|x) ‖ p(x₁)) in the units of the data: closed forms without the network.

        For labels the first is a draw; it is 0 where the first noise is too little to mistake one for another.
        """
        size, dense = z[0].numel(), self.units.dense
        ends = torch.tensor([0.0, 1.0], dtype=z.dtype, device=z.device)
        alpha, sigma = self.path.alpha(ends), self.path.sigma(ends)
        first = -dense * (0.5 + 0.5 * math.log(2 * math.pi) + torch.log(sigma[0] / alpha[0]))
        if dense < size:
            noisy = alpha[0] * z + sigma[0] * normal_like(z)
            first = first + self.units.label_log_prob(noisy, x, alpha[0], sigma[0])
        variance = self.noise_variance(z)
        drift = (alpha[1] ** 2 * z.square().flatten(1).sum(1)) / variance
        last = 0.5 * (drift + size * (sigma[1] ** 2 / variance - 1 - torch.log(sigma[1] ** 2 / variance)))
        return first - last - self.units.volume - self.units.ends_log_prob(z, x)

    def noise_variance(self, like: Tensor) -> Tensor:
        """The variance of a number at time 1, where new rows begin."""
        end = torch.ones(1, dtype=like.dtype, device=like.device)
        return (self.path.alpha(end) ** 2 + self.path.sigma(end) ** 2)[0]

    def log_prob(self, x: Tensor, condition: Tensor | None = None, draws: int = 1) -> Any:
        z, told = self.units(x), self.told(condition)
        if self.settings["likelihood"] == "flow":
            value = flow_log_prob(lambda rows, t: self.data(rows, t, told), self.path, z, float(self.noise_variance(z)))
            return value - self.units.volume - self.units.ends_log_prob(z, x), torch.zeros_like(value)
        values = []
        shift = torch.rand(len(x), generator=current_generator(x.device), dtype=x.dtype)
        for k in range(draws):  # times of one row are spread evenly over all steps
            z = self.units(x) if k else z
            index = (((shift + k / draws) % 1.0) * self.steps).floor() + 1
            values.append(self.constant(x, z) - self.term(z, index, told))
        bounds = torch.stack(values)
        return bounds.mean(0), bounds.std(0) / math.sqrt(draws) if draws > 1 else torch.full_like(bounds[0], math.nan)

    # --- draws --------------------------------------------------------------------------------------------------
    def sample(self, count: int, condition: Tensor | None = None) -> Tensor:
        denoise, start = self.denoiser(condition, clip=True), self.noise(count)
        return self.back(self.settings["sampler"].run(denoise, self.path, start, self.steps))

    def trajectory(self, count: int, condition: Tensor | None = None) -> Tensor:
        """All states of `sample`."""
        sampler, denoise = self.settings["sampler"], self.denoiser(condition, clip=True)
        return torch.stack(
            [self.back(state) for state in sampler.walk(denoise, self.path, self.noise(count), self.steps)]
        )

    def noise(self, count: int) -> Tensor:
        """Rows at time 1."""
        like = self.low.new_empty(count, *self.shape)
        return normal_like(like) * self.noise_variance(like).sqrt()

    def back(self, z: Tensor) -> Tensor:
        """From the units of the network to those of the data."""
        return self.units.inverse(z)

    def complete(self, x: Tensor, condition: Tensor | None, draws: int) -> Tensor:
        """Known parts are noised to each level and joined with what the model makes; a step is repeated to agree."""
        rows = x.repeat(draws, *(1 for _ in x.shape[1:]))
        given = None if condition is None else condition.repeat(draws, *(1 for _ in condition.shape[1:]))
        gone, z = rows.isnan(), self.units(rows).nan_to_num()
        gaps = self.units.spread(gone)
        sampler = DDPM(min(100, self.steps))
        denoise = self.denoiser(given, clip=True)
        state = self.noise(len(z))
        *before, last = sampler.planned(self.path, sampler.times(self.steps), z)
        for step in before:
            level = step.next_.level
            for jump in range(JUMPS):
                new = sampler.taken(denoise, state, step)
                new = torch.where(gaps, new, level.alpha * z + level.sigma * normal_like(z))
                state = forward_draw(new, level, step.now.level) if jump + 1 < JUMPS else new
        data = self.back(denoise(state, *last.now))
        return torch.where(gone, data, rows).unflatten(0, (draws, len(x)))
