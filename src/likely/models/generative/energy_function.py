"""An energy of rows: what training, chains and normalisers ask of it.

p(x) = exp(−F(x)) / Z        q(x): noise of a known density, where chains and annealing begin
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

__all__ = ["EnergyFunction", "log_mean"]

TEMPERATURES = 1000
"""Steps of annealing between the noise and the model."""


class EnergyFunction(nn.Module):
    """F with its parameters, on states: rows in the units and the shape in which the energy reads them."""

    moves: str
    """What its chains move by: "gibbs" or "langevin"."""

    @property
    def enumerable(self) -> bool:
        """Whether log Z is a sum that can be done."""
        return False

    def adapt(self, x: Tensor, weight: Tensor | None) -> None:
        """Take units, noise and first guesses from the training rows."""
        raise NotImplementedError

    def encode(self, x: Tensor) -> Tensor:
        """States of rows (n, *shape)."""
        raise NotImplementedError

    def decode(self, state: Tensor) -> Tensor:
        """Rows of states: the inverse of `encode`."""
        raise NotImplementedError

    def free_energy(self, state: Tensor) -> Tensor:
        """F of each state, (n,)."""
        raise NotImplementedError

    def noise(self, count: int) -> Tensor:
        """Draws of q."""
        raise NotImplementedError

    def noise_log_prob(self, state: Tensor) -> Tensor:
        """log q of each state, (n,)."""
        raise NotImplementedError

    def moved(self, state: Tensor, steps: int) -> Tensor:
        """States after so many steps of a chain that leaves p as it is."""
        raise NotImplementedError

    def chains(self, count: int) -> Tensor:
        """Where so many chains begin that are to go on and on."""
        return self.noise(count)

    def contrast(self, state: Tensor, chain: Tensor, steps: int) -> tuple[Tensor, Tensor, Tensor]:
        """F of states (n,) and of where chains are so many steps on (chains,), and the chains there."""
        chain = self.moved(chain, steps)
        own, other = self.free_energy(torch.cat([state, chain])).split([len(state), len(chain)])
        return own, other, chain

    def hidden(self, state: Tensor) -> Tensor | None:
        """The hidden units of rows, drawn given these, (n, hidden); None where there are none."""
        return None

    def drawn(self, count: int, steps: int) -> Tensor:
        """States of new rows, by chains of so many steps from the noise."""
        raise NotImplementedError

    def filled(self, state: Tensor, gaps: Tensor, steps: int) -> Tensor:
        """States whose gaps are drawn given the rest."""
        raise NotImplementedError

    def log_normaliser(self, chains: int) -> tuple[Tensor, Tensor]:
        """log ∫ exp(−F(x)) dx over rows, and its standard error by so many chains."""
        raise NotImplementedError


def log_mean(log_weight: Tensor) -> tuple[Tensor, Tensor]:
    """The logarithm of the mean of independent weights (n,), and its standard error.

    >>> log_mean(torch.zeros(4))
    (tensor(0.), tensor(0.))
    """
    mean = torch.logsumexp(log_weight, 0) - math.log(len(log_weight))
    return mean, (log_weight - mean).exp().std() / math.sqrt(len(log_weight))
