"""Autoencoder: rows through a narrow code and back.

    z = encoder(x),    max Σ log p(x | η = decoder(z))  −  sparsity · Σ|z|  −  contraction · ‖∂z/∂x‖²

With a linear encoder and decoder and Normal noise of one size, the codes span the plane of the principal components.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.func import vjp, vmap

from ...core.draws import Refused
from ...core.random import normal_like
from ...core.spec import is_integer, require
from ...inference.objective import Objective, RowDensity
from ...networks import MLP
from ...priors import Flat
from ..emissions import Columns
from .features import Features
from .latent_code import _LatentCode
from .module import DensityModule
from .observed import Observed
from .whole_rows import WholeRows

__all__ = ["Autoencoder"]

ROUNDS = 10
"""How often gaps are filled by what the code of the filled row gives."""
DENSITY = "it maps rows to codes and back, and is not a distribution of rows; VAE is"


class Autoencoder(_LatentCode):
    """Codes of `latent` numbers, by any two networks; `likelihood` says what it means to give a row back.

    `noise` is the standard deviation of noise on the encoder's inputs in training, in units of the columns: a denoising
    autoencoder. `sparsity` is the price of Σ|z|; `contraction` that of ‖∂z/∂x‖², the squared derivatives of the code.
    Missing values are not counted, and the encoder is told where they are. `score` is the mean log p(x | code of x).

    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(100, 1)) * [1.0, -2.0, 0.5] + 0.01 * rng.normal(size=(100, 3))
    >>> from likely.inference import MAP
    >>> from likely.optim import Adam
    >>> linear = Autoencoder(1, MLP(()), MLP(()), inference=MAP(Adam(0.05), epochs=150), random_state=0).fit(X)
    >>> linear.transform(X).shape, bool(np.abs(linear.reconstruct(X) - X).mean() < 0.2)
    ((100, 1), True)
    """

    log_prob_kind_ = Refused(DENSITY)  # type: ignore[assignment]
    log_prob = Refused(DENSITY)  # type: ignore[assignment]
    sample = Refused(DENSITY)  # type: ignore[assignment]

    def __init__(
        self,
        latent: int = 16,
        encoder: Any = MLP((200, 200)),  # noqa: B008 (specs are frozen values)
        decoder: Any = MLP((200, 200)),  # noqa: B008
        likelihood: Any = "auto",
        noise: float = 0.0,
        sparsity: float = 0.0,
        contraction: float = 0.0,
        prior: Any = Flat(),  # noqa: B008
        inference: Any = "auto",
        random_state: Any = None,
        device: Any = "auto",
        verbose: bool = False,
    ) -> None:
        self.latent = latent
        self.encoder = encoder
        self.decoder = decoder
        self.likelihood = likelihood
        self.noise = noise
        self.sparsity = sparsity
        self.contraction = contraction
        self.prior = prior
        self.inference = inference
        self.random_state = random_state
        self.device = device
        self.verbose = verbose

    def _check_arguments(self) -> None:
        require(is_integer(self.latent), self, "latent", "a positive integer")
        for name in ("noise", "sparsity", "contraction"):
            value = getattr(self, name)
            good = isinstance(value, int | float) and math.isfinite(value) and value >= 0
            require(good, self, name, "a number, 0 or more")

    def _objective(self) -> Objective:
        return RowDensity(type(self).__name__, "bound", random=self.noise > 0)

    def _marginalises(self) -> bool:
        return True

    def _module(self) -> DensityModule:
        return AutoencoderModule(
            self.columns_,
            self.form_.shape,
            None if self.condition_ is None else self.condition_.shape,
            missing=self.missing_,
            latent=self.latent,
            encoder=self.encoder,
            decoder=self.decoder,
            costs=(float(self.noise), float(self.sparsity), float(self.contraction)),
        )

    def score(self, X: Any, condition: Any = None, sample_weight: Any = None) -> float:
        """The mean of log p(x | code of x), in nats per row: how well rows come back."""
        x, given = self._asked(X, condition)
        total = np.zeros(len(x))
        for member, weight in enumerate(self.posterior_.weights.tolist()):
            total += weight * self._member_log_prob(member, x, given, 1, 0)[0].numpy()
        return float(np.average(total, weights=sample_weight))


class AutoencoderModule(DensityModule):
    """log p(x | code of x), less what the code costs."""

    def __init__(
        self,
        columns: Columns,
        shape: tuple[int, ...],
        condition: tuple[int, ...] | None,
        *,
        missing: bool,
        latent: int,
        encoder: Any,
        decoder: Any,
        costs: tuple[float, float, float],
    ) -> None:
        super().__init__()
        self.missing = missing
        self.noise, self.sparsity, self.contraction = costs
        self.features, self.observed = Features(columns, shape, missing), Observed(columns, shape)
        self.encoder = WholeRows(encoder, self.features.out_shape, latent, condition)
        self.decoder = WholeRows(decoder, (latent,), self.observed.size, condition)

    def adapt(self, x: Tensor, condition: Tensor | None, weight: Tensor | None) -> None:
        self.features.adapt(x, weight)
        self.observed.adapt(x, weight)

    def forward(self, x: Tensor, condition: Tensor | None = None) -> Tensor:
        inputs = self.features(x)
        if self.noise and self.training:
            inputs = inputs + self.noise * normal_like(inputs)
        if self.contraction:
            z, squares = self._with_jacobian(inputs, condition)
        else:
            z, squares = self.encoder(inputs, condition), None
        whole = self.training and not self.missing
        value = self.observed.log_prob(self.decoder(z, condition), x, whole=whole)
        if self.sparsity:
            value = value - self.sparsity * z.abs().sum(-1)
        return value if squares is None else value - self.contraction * squares

    def _with_jacobian(self, inputs: Tensor, condition: Tensor | None) -> tuple[Tensor, Tensor]:
        """Codes, and ‖∂z/∂inputs‖² of each row: exact, by one pass back for each number of the code."""
        z, pull = vjp(lambda rows: self.encoder(rows, condition), inputs)  # type: ignore[misc]
        basis = torch.eye(z.shape[-1], dtype=z.dtype, device=z.device).unsqueeze(1).expand(-1, *z.shape)
        (derivatives,) = vmap(pull)(basis)  # (latent, n, *shape)
        return z, derivatives.flatten(2).square().sum((0, 2))

    def log_prob(self, x: Tensor, condition: Tensor | None = None, draws: int = 1) -> Tensor:
        """log p(x | code of x), (n,)."""
        return self.observed.log_prob(self.decoder(self.middle(x, condition)[0], condition), x)

    def middle(self, x: Tensor, condition: Tensor | None = None) -> tuple[Tensor, Tensor | None]:
        """The code of each row."""
        return self.encoder(self.features(self._whole(x, condition)), condition), None

    def reconstructed(self, z: Tensor, condition: Tensor | None = None) -> Tensor:
        """The mean of rows given codes."""
        return self.observed.mean(self.decoder(z, condition))

    def complete(self, x: Tensor, condition: Tensor | None, draws: int) -> Tensor:
        """What the code of the rest of a row gives for its gaps, drawn from the likelihood."""
        z, _ = self.middle(x, condition)
        out = self.decoder(z, condition)
        new = self.observed.sample(out.expand(draws, *out.shape))
        return torch.where(x.isnan(), new.to(x), x)

    def _whole(self, x: Tensor, condition: Tensor | None) -> Tensor:
        """Rows for an encoder that has not seen gaps: filled by means, then by what the code of that row gives."""
        if self.missing or not bool(x.isnan().any()):
            return x
        gaps = x.isnan()
        now = torch.where(gaps, self.observed.mean(torch.zeros_like(self.observed.offset)).to(x), x)
        for _ in range(ROUNDS):
            z = self.encoder(self.features(now), condition)
            now = torch.where(gaps, self.reconstructed(z, condition).to(x), x)
        return now
