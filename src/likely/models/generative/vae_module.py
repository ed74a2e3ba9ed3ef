"""The variational autoencoder as a module: encoder, codes, decoder, and the bound that trains them.

log p(x | c)  ≥  bound( log p(x | z, c),  log p(z) − log q(z | x, c) ),      z ~ q(z | x, c)
p(x | c)      =  E_q[ p(x | z, c) p(z) / q(z | x, c) ]
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from ...core.random import current_generator
from ..emissions import Columns
from .bounds import Bound
from .features import Features
from .ladder import Codes, Ladder, start_of
from .latent_priors import LatentPrior
from .module import DensityModule
from .observed import Observed
from .whole_rows import WholeRows

__all__ = ["VAEModule"]

BLOCK = 1 << 20
"""Numbers of η that are held at a time when many draws are weighed."""
NARROW = -2.5
"""log σ of q after plain autoencoding, which leaves it to itself: groups of codes would be blurred by a wide q."""
PROPOSALS = 20
"""Draws of a code of which one is kept, by its weight, to fill in what a row lacks."""
ROUNDS = 25
"""Steps of a chain that fills in rows for an encoder which has not seen gaps."""


class VAEModule(DensityModule):
    """p(x | condition) = ∫ p(x | z, condition) p(z) dz with q(z | x, condition)."""

    def __init__(
        self,
        columns: Columns,
        shape: tuple[int, ...],
        condition: tuple[int, ...] | None,
        *,
        missing: bool,
        latent: int,
        levels: int,
        encoder: Any,
        decoder: Any,
        between: Any,
        prior: LatentPrior,
        bound: Bound,
    ) -> None:
        super().__init__()
        self.bound, self.missing = bound, missing
        self.features, self.observed = Features(columns, shape, missing), Observed(columns, shape)
        self.codes = Ladder(latent, levels, prior, between, start_of(math.prod(shape)))
        self.encoder = WholeRows(encoder, self.features.out_shape, self.codes.size, condition)
        self.decoder = WholeRows(decoder, (latent,), self.observed.size, condition)

    def adapt(self, x: Tensor, condition: Tensor | None, weight: Tensor | None) -> None:
        self.features.adapt(x, weight)
        self.observed.adapt(x, weight)

    # --- the parts ----------------------------------------------------------------------------------------------
    def encoded(self, x: Tensor, condition: Tensor | None) -> Tensor:
        """What the encoder says of rows, (n, size)."""
        return self.encoder(self.features(x), condition)

    def decoded(self, z: Tensor, condition: Tensor | None) -> Tensor:
        """What the decoder gives for codes (draws, n, latent): (draws, n, numbers of η)."""
        told = None if condition is None else condition.expand(len(z), *condition.shape).flatten(0, 1)
        return self.decoder(z.flatten(0, 1), told).unflatten(0, z.shape[:2])

    def middle(self, x: Tensor, condition: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Mean and log-scale of q(z | x)."""
        return self.codes.middle(self.encoded(self._whole(x, condition), condition))

    def reconstructed(self, z: Tensor, condition: Tensor | None = None) -> Tensor:
        """The mean of rows given codes (n, latent)."""
        return self.observed.mean(self.decoded(z.unsqueeze(0), condition)[0])

    def reconstruction(self, x: Tensor, condition: Tensor | None = None, read: Tensor | None = None) -> Tensor:
        """log p(x | z) at the mean code of each row, (n,), less ½ Σ (log σ − `NARROW`)², so that q becomes narrow.

        The encoder may `read` a corrupted row in place of x.
        """
        seen = self.encoded(x if read is None else read, condition)
        mean, _ = self.codes.middle(seen)
        out = self.decoded(mean.unsqueeze(0), condition)
        value = self.observed.log_prob(out, x, whole=self.training and not self.missing)[0]
        return value - 0.5 * sum((log_scale - NARROW).square().sum(-1) for _, log_scale in self.codes.seen(seen))

    def clusters(self, x: Tensor, condition: Tensor | None = None) -> Tensor:
        """q(component | x), for a mixture prior."""
        mean, log_scale = self.codes.seen(self.encoded(self._whole(x, condition), condition))[-1]
        return self.codes.prior.responsibilities(mean, log_scale)  # type: ignore[operator, no-any-return]

    # --- bounds -------------------------------------------------------------------------------------------------
    def forward(self, x: Tensor, condition: Tensor | None = None) -> Tensor:
        bound = self.bound
        codes = self.codes.codes(self.encoded(x, condition), bound.count, analytic=bound.analytic)
        whole = self.training and not self.missing
        return bound.of(self.observed.log_prob(self.decoded(codes.z, condition), x, whole=whole), codes.log_ratio)

    def log_prob(self, x: Tensor, condition: Tensor | None = None, draws: int = 1) -> Tensor:
        """log of p(x | z) p(z) / q(z | x) for so many draws of z, (draws, n)."""
        out = self.encoded(self._whole(x, condition), condition)
        step = max(1, BLOCK // (self.observed.size * max(1, len(x))))
        parts = [
            self._weights(x, condition, self.codes.codes(out, min(step, draws - first)))
            for first in range(0, draws, step)
        ]
        return torch.cat(parts)

    def _weights(self, x: Tensor, condition: Tensor | None, codes: Codes) -> Tensor:
        return self.observed.log_prob(self.decoded(codes.z, condition), x) + codes.log_ratio

    # --- new rows -----------------------------------------------------------------------------------------------
    def sample(self, count: int, condition: Tensor | None = None) -> Tensor:
        return self.drawn(count, condition)[0]

    def drawn(self, count: int, condition: Tensor | None = None) -> tuple[Tensor, Tensor]:
        z = self.codes.sample(count, self.observed.offset)
        return self.observed.sample(self.decoded(z.unsqueeze(0), condition)[0]), z

    def complete(self, x: Tensor, condition: Tensor | None, draws: int) -> Tensor:
        """z ~ p(z | what is known of x), then x ~ p(x | z) where it is not."""
        rows = x.repeat(draws, *(1,) * (x.ndim - 1))  # a chain, or a choice among proposals, of its own for each draw
        told = None if condition is None else condition.repeat(draws, *(1,) * (condition.ndim - 1))
        filled = self._chosen(rows, told) if self.missing else self._chain(rows, told)
        return filled.unflatten(0, (draws, len(x)))

    def _chosen(self, x: Tensor, condition: Tensor | None) -> Tensor:
        """By sampling-importance-resampling: one of `PROPOSALS` codes from q(z | what is known), by its weight."""
        codes = self.codes.codes(self.encoded(x, condition), PROPOSALS)
        weights = self._weights(x, condition, codes)
        kept = _one_of(weights)
        z = codes.z[kept, torch.arange(len(x), device=x.device)]
        return self._filled(x, z, condition)

    def _chain(self, x: Tensor, condition: Tensor | None) -> Tensor:
        """By a chain whose limit is p(gaps | rest) (Mattei and Frellsen, 2018), for an encoder that reads whole rows.

        z' ~ q(z | x) replaces z with probability min(1, w(z') / w(z)), w(z) = p(x | z) p(z) / q(z | x); then the gaps
        of x are drawn from p(x | z).
        """
        out = self.encoded(self._whole(x, condition), condition)
        levels = self.codes.codes(out, 1).levels
        now = self._filled(x, levels[-1][0], condition)
        for _ in range(ROUNDS):
            out = self.encoded(now, condition)
            new, old = self.codes.codes(out, 1), self.codes.codes(out, 1, at=levels)
            gain = (self._weights(now, condition, new) - self._weights(now, condition, old))[0]
            uniform = torch.rand(len(x), generator=current_generator(x.device), dtype=gain.dtype, device=x.device)
            taken = (uniform.log() < gain).unsqueeze(-1)
            levels = [torch.where(taken, ours, theirs) for ours, theirs in zip(new.levels, levels, strict=True)]
            now = self._filled(x, levels[-1][0], condition)
        return now

    def _filled(self, x: Tensor, z: Tensor, condition: Tensor | None) -> Tensor:
        return torch.where(x.isnan(), self.observed.sample(self.decoded(z.unsqueeze(0), condition)[0]).to(x), x)

    def _whole(self, x: Tensor, condition: Tensor | None) -> Tensor:
        """Rows for an encoder that has not seen gaps: those are filled by means, and then by what these lead to."""
        if self.missing or not bool(x.isnan().any()):
            return x
        gaps = x.isnan()
        middle = self.observed.mean(torch.zeros_like(self.observed.offset)).to(x)
        now = torch.where(gaps, middle, x)
        for _ in range(3):
            mean, _ = self.codes.middle(self.encoded(now, condition))
            now = torch.where(gaps, self.reconstructed(mean, condition).to(x), x)
        return now


def _one_of(log_weights: Tensor) -> Tensor:
    """One index of the first axis for each column, in proportion to weights (draws, n)."""
    shares = torch.softmax(log_weights, 0).T
    return torch.multinomial(shares, 1, generator=current_generator(shares.device))[:, 0]
