"""Codes at several levels, each given the one above (Sønderby et al., 2016).

    p(z) = p(z_L) Π p(z_l | z_{l+1})            q(z | x) = q(z_L | x) Π q(z_l | x, z_{l+1})

    q(z_l | x, z_{l+1})  ∝  N(z_l; what the encoder saw in x) · p(z_l | z_{l+1})

All q and p but the top prior are normal, so that every divergence between them is known. With one level this is the
plain VAE: q(z | x) from the encoder, p(z) the latent prior.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from torch import Tensor, nn

from .latent_priors import LatentPrior
from .normals import divergence, drawn, log_normal, product
from .whole_rows import WholeRows

__all__ = ["Codes", "Ladder", "bounded", "start_of"]

REACH = 10.0
"""The largest |log σ|: a bad step of training cannot overflow."""
WIDEST = -1.0
"""log σ of q at the start of training, at most: codes are narrow enough to carry something."""


class Codes(NamedTuple):
    """Draws of the lowest code z (draws, n, latent), and log p(z) − log q(z | x) over all levels.

    The latter is (draws, n), or what broadcasts to it, and its expectation where that is known in closed form.
    `levels` are the codes of all levels, the top first.
    """

    z: Tensor
    log_ratio: Tensor
    levels: list[Tensor]


def bounded(log_scale: Tensor) -> Tensor:
    """log σ within ±`REACH`."""
    return log_scale.clamp(-REACH, REACH)


def start_of(columns: int) -> float:
    """log σ of q at the start of training, where an encoder gives about 0: what so many columns tell of a code.

    Each adds to the precision of a code, 1 + columns / 2 in all. With σ = e⁻¹ the decoder of an image learns to ignore
    most codes before it can use them, and comes back slowly.

    >>> start_of(4), round(start_of(784), 2)
    (-1.0, -2.99)
    """
    return min(WIDEST, -0.5 * math.log1p(columns / 2))


class Ladder(nn.Module):
    """p(z) and q(z | x) of `levels` codes with `latent` numbers each. `size` numbers per row come from an encoder.

    Where that gives 0 for log σ, it is `start`.
    """

    def __init__(self, latent: int, levels: int, prior: LatentPrior, between: Any, start: float = WIDEST) -> None:
        super().__init__()
        self.latent, self.levels, self.start = latent, levels, start
        self.size = 2 * latent * levels
        self.prior = prior.build(latent)
        self.between = nn.ModuleList(WholeRows(between, (latent,), 2 * latent) for _ in range(levels - 1))

    def seen(self, out: Tensor) -> list[tuple[Tensor, Tensor]]:
        """What the encoder saw: mean and log-scale of each level, the lowest first; each (n, latent)."""
        pieces = out.split(self.latent, -1)
        return [
            (mean, bounded(0.5 * scale + self.start)) for mean, scale in zip(pieces[::2], pieces[1::2], strict=True)
        ]

    def codes(self, out: Tensor, draws: int, *, analytic: bool = False, at: Sequence[Tensor] | None = None) -> Codes:
        """Draws of z given the rows that an encoder gave `out` for; or the codes `at` of all levels, weighed anew."""
        *lower, (mean, log_scale) = self.seen(out)
        z = drawn(mean, log_scale, draws) if at is None else at[0]
        levels = [z]
        ratio = self.prior.log_ratio(mean, log_scale) if analytic else None
        if ratio is None:
            ratio = self.prior.log_prob(z) - log_normal(z, mean, log_scale)
        for (mean, log_scale), network in zip(reversed(lower), reversed(self.between), strict=True):
            above, above_scale = self._given(network, z)
            own, scale = product(mean, log_scale, above, above_scale)  # (draws, n, latent)
            z = drawn(own, scale) if at is None else at[len(levels)]
            levels.append(z)
            if analytic:
                ratio = ratio - divergence(own, scale, above, above_scale)
            else:
                ratio = ratio + log_normal(z, above, above_scale) - log_normal(z, own, scale)
        return Codes(z, ratio, levels)

    def middle(self, out: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and log-scale of q for the lowest code, given the means of those above: both (n, latent)."""
        *lower, (mean, log_scale) = self.seen(out)
        for (own, own_scale), network in zip(reversed(lower), reversed(self.between), strict=True):
            above, above_scale = self._given(network, mean.unsqueeze(0))
            mean, log_scale = product(own, own_scale, above[0], above_scale[0])
        return mean, log_scale

    def sample(self, count: int, like: Tensor) -> Tensor:
        """Codes of the lowest level from the prior, (count, latent)."""
        z = self.prior.sample(count, like)
        for network in reversed(self.between):
            mean, log_scale = self._given(network, z.unsqueeze(0))
            z = drawn(mean[0], log_scale[0])
        return z

    @staticmethod
    def _given(network: nn.Module, z: Tensor) -> tuple[Tensor, Tensor]:
        """p(z_l | z_{l+1}): mean and log-scale, both (draws, n, latent)."""
        mean, log_scale = network(z.flatten(0, 1)).unflatten(0, z.shape[:2]).chunk(2, -1)
        return mean, bounded(log_scale)
