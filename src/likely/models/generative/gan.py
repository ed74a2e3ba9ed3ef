"""GAN: a generator makes rows from noise, and a critic learns to tell them from real ones; each has a loss of its own.

z ~ N(0, 1),    x = G(z, c; θ),    critic d(x, c; φ)

min_φ  E l_real(d(x)) + E l_generated(d(G(z)))        min_θ  E l_generator(d(G(z)))

with codes: z has them beside the noise, and a reader Q(code | x; ψ) lowers −E log Q together with the generator
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any, Literal, Self

import numpy as np
import torch
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from ...core.draws import Refused, count_of
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
from .gan_losses import LOSSES, weighted_mean
from .info_codes import Codes, as_codes
from .module import DensityModule, ask
from .points import Points
from .whole_rows import WholeRows

__all__ = ["GAN"]

DENSITY = "it makes rows without a density of them; Flow, VAE, Autoregressive and Diffusion have one"
STEPS = 10_000
"""Rounds that `inference="auto"` plays, more or less."""


def _has_codes(model: GAN) -> bool:
    if model.codes is None:
        raise AttributeError("GAN has no transform: it was made without codes; GAN(codes=Codes(…)) learns them.")
    return True


class GAN(_Generative):
    """Rows from `latent` numbers of noise by a `generator`, trained against a `critic`; any networks.

    `loss` is "non_saturating", "minimax", "least_squares" or "wasserstein" (see `gan_losses`). `penalty` holds the
    critic's gradients: "clip", "gradient", "spectral", or one of `critic_penalties` with numbers of its own, such as
    `Gradient(1.0, norm=0.0, at="real")`. The critic judges `pack` rows at once, so that it sees when they are too much
    alike, and moves `critic_steps` times for each move of the generator. Images are made by `ConvGenerator(size=…)`
    and judged by `ConvNet(…, downsample="stride", activation="leaky_relu")`.

    With `codes=Codes((10,), numbers=2)` (or 10, for ten categories) the generator reads codes beside the noise, and a
    reader, a network like the critic, learns to tell them from its rows: a third player, whose loss L bounds the
    information that rows hold of their codes, I ≥ H(code) − L. `sample(n, codes=…)` makes rows of given codes, and
    `transform` reads those of any rows.

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
        codes: Any = None,
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
        self.codes = codes
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
        self._codes()

    def _codes(self) -> Codes | None:
        if self.codes is None:
            return None
        return Codes((self.codes,)) if is_integer(self.codes, 2) else as_spec(self.codes, Codes, "codes")

    def _penalty(self) -> CriticPenalty:
        return CriticPenalty() if self.penalty is None else as_spec(self.penalty, CriticPenalty, "penalty")

    def _objective(self) -> Game:
        reader = () if self.codes is None else (Player("reader"),)
        players = (Player("generator"), Player("critic", steps=self.critic_steps), *reader)
        return Game(type(self).__name__, players, updates="alternating")

    def _likelihood(self) -> Any:
        return Normal()

    def _automatic(self, rows: int) -> Inference:
        batch = min(128, max(1, rows // 4))
        epochs = max(20, min(4_000, STEPS * batch // max(1, rows)))
        return MAP(Adam(1e-3, betas=(0.5, 0.9)), epochs=epochs, batch_size=batch, average=EMA(0.999))

    def _module(self) -> DensityModule:
        units = Points(self.columns_, self.form_.shape)
        return Adversarial(
            units,
            units.out_shape,
            None if self.condition_ is None else self.condition_.shape,
            networks=(self.generator, self.critic),
            latent=self.latent,
            loss=self.loss,
            penalty=self._penalty(),
            pack=self.pack,
            codes=self._codes(),
        )

    # --- codes --------------------------------------------------------------------------------------------------
    def sample(
        self,
        n: int = 1,
        condition: Any = None,
        random_state: Any = None,
        *,
        return_hidden: bool = False,
        codes: Any = None,
    ) -> Any:
        """n new rows in the form of X, of these codes: one row of them for all, or n; else they are random.

        `return_hidden` adds what rows were made from, (n, codes + latent): the codes, then the noise.
        """
        if codes is None:
            return super().sample(n, condition, random_state, return_hidden=return_hidden)
        check_is_fitted(self)
        spec, count = self._codes(), count_of(n)
        if spec is None:
            raise DataError("codes: this GAN has none; GAN(codes=Codes(…)) learns them.")
        wanted = self._placed(spec.checked(as_codes(codes), count))
        new, hidden = self._drawn(count, self._seed(random_state), self._spread_condition(condition, count), wanted)
        return (new, hidden) if return_hidden else new

    @available_if(_has_codes)
    def transform(self, X: Any, condition: Any = None) -> np.ndarray:
        """What the reader says of rows: probabilities of each category, then means of numbers, (n, …)."""
        x, given = self._asked(X, condition)
        weights = self.posterior_.weights.double().tolist()

        def read(rows: slice, member: int) -> Tensor:
            told = None if given is None else given[rows]
            return self._cpu(ask(self.posterior_, member, "read", x[rows], told))

        members = (self._in_blocks(len(x), partial(read, member=member)) for member in range(len(weights)))
        return sum(weight * own.numpy() for weight, own in zip(weights, members, strict=True))


class Adversarial(DensityModule):
    """A generator and a critic, and the loss of each on a batch of rows."""

    def __init__(
        self,
        units: Points,
        shape: tuple[int, ...],
        condition: tuple[int, ...] | None,
        *,
        networks: tuple[Any, Any],
        latent: int,
        loss: str,
        penalty: CriticPenalty,
        pack: int,
        codes: Codes | None = None,
    ) -> None:
        super().__init__()
        self.units, self.shape, self.latent, self.pack = units, shape, latent, pack
        self.loss, self.penalty, self.codes = loss, penalty, codes
        generator, critic = networks
        told = None if condition is None else (pack * condition[0], *condition[1:])
        inputs = latent if codes is None else latent + codes.width
        self.generator = WholeRows(generator, (inputs,), math.prod(shape), condition)
        self.critic = penalty.held(WholeRows(critic, (pack * shape[0], *shape[1:]), 1, told))
        if codes is not None:
            self.reader = WholeRows(critic, shape, codes.answers, condition)
        self.apart = any(name.endswith("running_mean") for name, _ in self.critic.named_buffers())
        """Whether real and generated rows must not meet in one batch, whose statistics would tell of both."""

    def adapt(self, x: Tensor, condition: Tensor | None, weight: Tensor | None) -> None:
        self.units.adapt(x, weight)

    # --- the game -----------------------------------------------------------------------------------------------
    @property
    def players(self) -> tuple[str, ...]:
        """Whose losses there are."""
        return ("generator", "critic") if self.codes is None else ("generator", "critic", "reader")

    def forward(
        self,
        x: Tensor,
        condition: Tensor | None = None,
        players: tuple[str, ...] | None = None,
        weight: Tensor | None = None,
    ) -> Tensor:
        """The mean loss of each of these players, or of all of them."""
        players = self.players if players is None else players
        if self.training:
            self.penalty.project(self.critic)
        order = self._packs(len(x), x.device)
        told, heavy = self._packed(condition, order), self._weights(weight, order)
        codes, noise = self._codes(len(x)), self._noise(len(x))
        with torch.set_grad_enabled(torch.is_grad_enabled() and "generator" in players):
            made = self._made(noise, condition, codes)
        generated = self._packed(made, order)
        assert generated is not None
        given = None if condition is None else weight  # rows that are made are alike, but for their conditions
        losses = {}
        if "generator" in players:
            own = LOSSES[self.loss].generator(self._score(generated, told))
            losses["generator"] = weighted_mean(own, None if told is None else heavy)
        if codes is not None and ("reader" in players or "generator" in players):
            losses["reader"] = weighted_mean(self.codes.surprise(self._answer(made, condition), codes), given)  # type: ignore[union-attr]
            if "generator" in players:
                losses["generator"] = losses["generator"] + self.codes.weight * losses["reader"]  # type: ignore[union-attr]
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

    def _codes(self, count: int) -> Tensor | None:
        return None if self.codes is None else self.codes.drawn(count, self.units.centre)

    def _made(self, noise: Tensor, condition: Tensor | None, codes: Tensor | None = None) -> Tensor:
        """Rows in the units of the networks."""
        if codes is not None:
            noise = torch.cat([self.codes.encode(codes), noise], 1)  # type: ignore[union-attr]
        return self.units.drawn(self.generator(noise, condition).unflatten(1, self.shape))

    def sample(self, count: int, condition: Tensor | None = None) -> Tensor:
        return self.drawn(count, condition)[0]

    def drawn(self, count: int, condition: Tensor | None = None, codes: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """New rows, and the codes and the noise that they are made from."""
        codes = self._codes(count) if codes is None else codes
        noise = self._noise(count)
        new = self.units.inverse(self._made(noise, condition, codes))
        return new, noise if codes is None else torch.cat([codes, noise], 1)

    def _answer(self, rows: Tensor, condition: Tensor | None) -> Tensor:
        """What the reader says of rows in the units of the networks."""
        return self.reader(rows, condition)  # type: ignore[no-any-return]

    def read(self, x: Tensor, condition: Tensor | None = None) -> Tensor:
        """Codes of rows, as far as they tell them."""
        assert self.codes is not None
        return self.codes.read(self._answer(self.units(x), condition))

    def complete(self, x: Tensor, condition: Tensor | None, draws: int) -> Tensor:
        raise DataError(
            "GAN cannot hold some columns and draw the rest; give them as a condition, fit(X, condition), or use "
            "Autoregressive, Flow, VAE or Diffusion."
        )
