"""GAN: a generator makes rows from noise, and a critic learns to tell them from real ones; each has a loss of its own.

z ~ N(0, 1),    x = G(z, c; θ),    critic d(x, c; φ)

min_φ  E l_real(d(x)) + E l_generated(d(G(z)))        min_θ  E l_generator(d(G(z)))
"""

from __future__ import annotations

import math
from typing import Any, Literal, Self

import torch
from torch import Tensor

from ...core.draws import Refused
from ...core.errors import DataError, DivergenceError
from ...core.random import current_generator, normal_like
from ...core.spec import as_spec, is_among, is_integer, require
from ...inference import MAP, Game, Inference, Player
from ...inference.training.averaging import EMA
from ...likelihoods import Normal
from ...networks import MLP
from ...optim import Adam
from ...priors import Flat
from .base import _Generative
from .critic_penalties import CriticPenalty
from .features import Features
from .gan_losses import LOSSES, weighted_mean
from .module import DensityModule
from .rows import refuse_text
from .whole_rows import WholeRows

__all__ = ["GAN"]

DENSITY = "it makes rows without a density of them; Flow, VAE, Autoregressive and Diffusion have one"
STEPS = 10_000
"""Rounds that `inference="auto"` plays, more or less."""


class GAN(_Generative):
    """Rows from `latent` numbers of noise by a `generator`, trained against a `critic`; any networks.

    `loss` is "non_saturating", "minimax", "least_squares" or "wasserstein" (see `gan_losses`). `penalty` holds the
    critic's gradients: "clip", "gradient", "spectral", or one of `critic_penalties` with numbers of its own, such as
    `Gradient(1.0, norm=0.0, at="real")`. The critic judges `pack` rows at once, so that it sees when they are too much
    alike, and moves `critic_steps` times for each move of the generator.

    It is a game, which only methods of gradients can play: `MAP(Adam(…) | SGD(…) | ExtraGradient(…))` and an `Ensemble`
    of it. `history_` has a loss for each player; none of them says how good the rows are. With `average=EMA()`, new
    rows come from the average of the generators along the way. A game that diverges raises an error, and the model
    keeps its last sound state.

    >>> import numpy as np
    >>> from likely.inference import MAP
    >>> rows = np.random.default_rng(0).normal(size=(64, 2))
    >>> model = GAN(MLP((8,)), MLP((8,)), latent=2, inference=MAP(epochs=2), random_state=0).fit(rows)
    >>> model.sample(3, random_state=0).shape, sorted(model.history_)
    ((3, 2), ['critic_loss', 'generator_loss', 'lr'])
    """

    log_prob_kind_ = Refused(DENSITY)  # type: ignore[assignment]
    log_prob = Refused(DENSITY)  # type: ignore[assignment]
    score = Refused(DENSITY)  # type: ignore[assignment]
    impute = Refused(DENSITY)  # type: ignore[assignment]

    def __init__(
        self,
        generator: Any = MLP((64, 64)),  # noqa: B008 (specs are frozen values)
        critic: Any = MLP((64, 64), activation="leaky_relu"),  # noqa: B008
        latent: int = 16,
        loss: Literal["non_saturating", "minimax", "least_squares", "wasserstein"] = "non_saturating",
        penalty: CriticPenalty | str | None = None,
        pack: int = 1,
        critic_steps: int = 1,
        prior: Any = Flat(),  # noqa: B008
        inference: Any = "auto",
        random_state: Any = None,
        device: Any = "auto",
        verbose: bool = False,
    ) -> None:
        self.generator = generator
        self.critic = critic
        self.latent = latent
        self.loss = loss
        self.penalty = penalty
        self.pack = pack
        self.critic_steps = critic_steps
        self.prior = prior
        self.inference = inference
        self.random_state = random_state
        self.device = device
        self.verbose = verbose

    def fit(self, X: Any, condition: Any = None, sample_weight: Any = None) -> Self:
        """Play the game on rows X, and a condition for each row. If it diverges, the last sound state is kept."""
        try:
            return super().fit(X, condition, sample_weight)
        except DivergenceError as error:
            self.posterior_ = error.posterior
            raise

    # --- what makes it a game -----------------------------------------------------------------------------------
    def _check_arguments(self) -> None:
        for name in ("latent", "pack", "critic_steps"):
            require(is_integer(getattr(self, name)), self, name, "a positive integer")
        require(is_among(self.loss, LOSSES), self, "loss", f"one of {', '.join(map(repr, LOSSES))}")
        self._penalty()

    def _penalty(self) -> CriticPenalty:
        return CriticPenalty() if self.penalty is None else as_spec(self.penalty, CriticPenalty, "penalty")

    def _objective(self) -> Game:
        players = (Player("generator"), Player("critic", steps=self.critic_steps))
        return Game(type(self).__name__, players, updates="alternating")

    def _likelihood(self) -> Any:
        return Normal()

    def _check_rows(self, x: Tensor) -> None:
        super()._check_rows(x)
        refuse_text(self.form_, "GAN makes numbers")

    def _automatic(self, rows: int) -> Inference:
        batch = min(128, max(1, rows // 4))
        epochs = max(20, min(4_000, STEPS * batch // max(1, rows)))
        return MAP(Adam(1e-3, betas=(0.5, 0.9)), epochs=epochs, batch_size=batch, average=EMA(0.999))

    def _module(self) -> DensityModule:
        return Adversarial(
            Features(self.columns_, self.form_.shape, missing=False),
            self.form_.shape,
            None if self.condition_ is None else self.condition_.shape,
            networks=(self.generator, self.critic),
            latent=self.latent,
            loss=self.loss,
            penalty=self._penalty(),
            pack=self.pack,
        )


class Adversarial(DensityModule):
    """A generator and a critic, and the loss of each on a batch of rows."""

    def __init__(
        self,
        units: Features,
        shape: tuple[int, ...],
        condition: tuple[int, ...] | None,
        *,
        networks: tuple[Any, Any],
        latent: int,
        loss: str,
        penalty: CriticPenalty,
        pack: int,
    ) -> None:
        super().__init__()
        self.units, self.shape, self.latent, self.pack = units, shape, latent, pack
        self.loss, self.penalty = loss, penalty
        generator, critic = networks
        told = None if condition is None else (pack * condition[0], *condition[1:])
        self.generator = WholeRows(generator, (latent,), math.prod(shape), condition)
        self.critic = penalty.held(WholeRows(critic, (pack * shape[0], *shape[1:]), 1, told))
        self.apart = any(name.endswith("running_mean") for name, _ in self.critic.named_buffers())
        """Whether real and generated rows must not meet in one batch, whose statistics would tell of both."""

    def adapt(self, x: Tensor, condition: Tensor | None, weight: Tensor | None) -> None:
        self.units.adapt(x, weight)

    # --- the game -----------------------------------------------------------------------------------------------
    def forward(
        self,
        x: Tensor,
        condition: Tensor | None = None,
        players: tuple[str, ...] = ("generator", "critic"),
        weight: Tensor | None = None,
    ) -> Tensor:
        """The mean loss of each of these players, (len(players),)."""
        if self.training:
            self.penalty.project(self.critic)
        order = self._packs(len(x), x.device)
        told, heavy = self._packed(condition, order), self._weights(weight, order)
        with torch.set_grad_enabled(torch.is_grad_enabled() and "generator" in players):
            generated = self._packed(self._made(self._noise(len(x)), condition), order)
        assert generated is not None
        losses = {}
        if "generator" in players:
            own = LOSSES[self.loss].generator(self._score(generated, told))
            losses["generator"] = weighted_mean(own, None if told is None else heavy)
        if "critic" in players:
            real = self._packed(self.units(x), order)
            assert real is not None
            losses["critic"] = self._critic_loss(real, generated.detach(), told, heavy)
        return torch.stack([losses[name] for name in players])

    def _critic_loss(self, real: Tensor, generated: Tensor, told: Tensor | None, weight: Tensor | None) -> Tensor:
        if self.apart:
            scores = self._score(real, told), self._score(generated, told)
        else:
            both = None if told is None else torch.cat([told, told])
            one, two = self._score(torch.cat([real, generated]), both).chunk(2)
            scores = one, two
        terms = LOSSES[self.loss]
        loss = weighted_mean(terms.real(scores[0]), weight)
        loss = loss + weighted_mean(terms.generated(scores[1]), None if told is None else weight)
        price = self.penalty.price(self._score, real, generated, told, weight)
        return loss if price is None else loss + price

    def _score(self, packs: Tensor, told: Tensor | None) -> Tensor:
        inputs = (packs,) if told is None else (packs, told)
        return self.critic(*inputs)[:, 0]  # type: ignore[no-any-return]

    # --- packs --------------------------------------------------------------------------------------------------
    def _packs(self, rows: int, device: torch.device) -> Tensor | None:
        """Which rows are judged together, (packs, pack): all of them, the first ones twice where they do not fill."""
        if self.pack == 1:
            return None
        order = torch.randperm(rows, generator=current_generator(device), device=device)
        places = torch.arange(-(-rows // self.pack) * self.pack, device=device) % rows
        return order[places].view(-1, self.pack)

    @staticmethod
    def _packed(rows: Tensor | None, order: Tensor | None) -> Tensor | None:
        """Rows (n, k, …) as packs (packs, pack · k, …)."""
        return rows if rows is None or order is None else rows[order].flatten(1, 2)

    @staticmethod
    def _weights(weight: Tensor | None, order: Tensor | None) -> Tensor | None:
        """Of packs: the product of those of its rows, which are drawn independently."""
        return weight if weight is None or order is None else weight[order].prod(1)

    # --- new rows -----------------------------------------------------------------------------------------------
    def _noise(self, count: int) -> Tensor:
        return normal_like(self.units.centre.new_empty(count, self.latent))

    def _made(self, noise: Tensor, condition: Tensor | None) -> Tensor:
        """Rows in the units of the networks."""
        return self.generator(noise, condition).unflatten(1, self.shape)  # type: ignore[no-any-return]

    def sample(self, count: int, condition: Tensor | None = None) -> Tensor:
        return self.drawn(count, condition)[0]

    def drawn(self, count: int, condition: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """New rows, and the noise that they are made from."""
        noise = self._noise(count)
        return self.units.inverse(self._made(noise, condition)), noise

    def complete(self, x: Tensor, condition: Tensor | None, draws: int) -> Tensor:
        raise DataError("GAN cannot hold some columns and draw the rest; give them as a condition: fit(X, condition).")
