"""Negatives: rows that a model has now, or that are noise, to be set against rows of the data.

    ∇ log p(x) = −∇F(x) + E_p[∇F]      the mean over the model by a few steps of a Markov chain

CD         chains start at the rows of the batch, anew at every step: quick, and biased towards them
PCD        chains go on from where they were at the last step: as θ moves slowly, they stay near p
Langevin   the same for rows of numbers, where now and then a chain starts anew, and energies are kept small
NCE        rows of a known density q are told from rows of the data; log Z is a parameter like any other:

    G(x) = −F(x) − log Z − log q(x) − log ν,      log σ(G(x)) + Σ log σ(−G(x₋)),   ν rows x₋ ~ q for each x
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from ...core.random import current_generator
from ...core.spec import Spec, is_integer, require
from ...optim.base import is_number

__all__ = ["CD", "NCE", "PCD", "Langevin", "Negatives"]


class Negatives(Spec, axis="negatives"):
    """What stands against the rows of the data in training."""

    moves: ClassVar[str | None] = None
    """The only chains that it knows to use: "gibbs" or "langevin"; None if any will do."""
    learns_normaliser: ClassVar[bool] = False

    @property
    def memory(self) -> int:
        """Chains that are kept from step to step."""
        return 0

    def surrogate(self, density: Any, state: Tensor) -> Tensor:
        """Of each state (n,), what training adds up, by the `energy`, `chain` and `log_z` of a density."""
        raise NotImplementedError(f"{type(self).__name__} must say what training adds up")


class CD(Negatives):
    """Contrastive divergence: `steps` of a chain from each row.

    >>> CD(3)
    CD(steps=3)
    """

    steps: int = 1

    def validate(self) -> None:
        require(is_integer(self.steps), self, "steps", "a positive integer")

    def surrogate(self, density: Any, state: Tensor) -> Tensor:
        energy = density.energy
        return energy.free_energy(energy.moved(state, self.steps)) - energy.free_energy(state)


class PCD(Negatives):
    """Persistent contrastive divergence: so many chains, which go `steps` on at each step of training.

    >>> PCD(1, chains=64)
    PCD(chains=64)
    """

    steps: int = 1
    chains: int = 128

    def validate(self) -> None:
        require(is_integer(self.steps), self, "steps", "a positive integer")
        require(is_integer(self.chains), self, "chains", "a positive integer")

    @property
    def memory(self) -> int:
        return self.chains

    def surrogate(self, density: Any, state: Tensor) -> Tensor:
        own, other, chain = density.energy.contrast(state, density.chain, self.steps)
        density.keep(chain)
        return other.mean() - own


class Langevin(PCD):
    """Chains of Langevin dynamics over rows of numbers (Du & Mordatch): a fraction `restart` of them begins anew.

    `penalty` times the squares of what the network says of rows and of negatives is taken off: it holds their level,
    which no chain tells, and keeps energies from running away. Each step is accepted as Metropolis asks, with a size
    that follows the rate of acceptance.

    >>> Langevin(20, chains=64)
    Langevin(steps=20, chains=64)
    """

    moves: ClassVar[str | None] = "langevin"

    steps: int = 10
    chains: int = 128
    restart: float = 0.02
    penalty: float = 0.001

    def validate(self) -> None:
        super().validate()
        require(is_number(self.restart) and 0 <= self.restart <= 1, self, "restart", "a fraction, from 0 to 1")
        require(is_number(self.penalty) and self.penalty >= 0, self, "penalty", "a number, 0 or more")

    def surrogate(self, density: Any, state: Tensor) -> Tensor:
        chain = density.energy.moved(self._some_new(density), self.steps)
        density.keep(chain)
        # ½‖z‖² has no parameters: what the network says is all that training can change
        own, other = density.energy.tilt(torch.cat([state, chain])).split([len(state), len(chain)])
        return other.mean() - own - self.penalty * (own.square() + other.square().mean())

    def _some_new(self, density: Any) -> Tensor:
        chain: Tensor = density.chain
        chance = chain.new_empty(len(chain), *(1 for _ in chain.shape[1:]))
        anew = chance.uniform_(generator=current_generator(chain.device)) < self.restart
        return torch.where(anew, density.energy.noise(len(chain)), chain)


class NCE(Negatives):
    """Noise-contrastive estimation with `ratio` rows of noise for each row.

    Noise is normal in the units of the columns, or independent 0 and 1 with their means. It needs no chain; where noise
    and rows have little in common it learns slowly.

    >>> NCE(5)
    NCE(ratio=5)
    """

    learns_normaliser: ClassVar[bool] = True

    ratio: int = 4

    def validate(self) -> None:
        require(is_integer(self.ratio), self, "ratio", "a positive integer")

    def surrogate(self, density: Any, state: Tensor) -> Tensor:
        energy = density.energy
        noise = energy.noise(self.ratio * len(state))
        both = torch.cat([state, noise])
        log_odds = -energy.free_energy(both) - density.log_z - energy.noise_log_prob(both) - math.log(self.ratio)
        own, other = log_odds.split([len(state), len(noise)])
        return logsigmoid(own) + logsigmoid(-other).view(len(state), self.ratio).sum(1)
