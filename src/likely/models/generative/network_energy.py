"""An energy by any network: normal noise, tilted by what the network says.

    F(x) = f(z; θ) + ½‖z‖²,      z = (x − centre) / scale

The quadratic term makes exp(−F) integrable wherever f grows slower than it falls, as that of rectified units does; at
f = 0 rows are standard normal in their units. Chains are Langevin's with Metropolis' correction, so p is what they
leave as it is, whatever their step; log Z is found by annealing f from 0, which starts at a known normaliser.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

from ...core.random import normal_like
from .energy_function import TEMPERATURES, EnergyFunction, log_mean
from .features import Features
from .langevin import BEST, Tilted, adjusted_step
from .whole_rows import WholeRows

__all__ = ["NetworkEnergy"]

FOLLOWED = 0.1
"""How quickly the logarithm of a step size follows the rate of acceptance."""


class NetworkEnergy(EnergyFunction):
    """f by a network with one output, on rows in the units of their columns.

    >>> from likely.models.generative.observed import columns_of
    >>> from likely.networks import MLP
    >>> rows = torch.randn(8, 2)
    >>> energy = NetworkEnergy(MLP((4,)), Features(columns_of("normal", rows), (2,), missing=False), (2,))
    >>> energy.adapt(rows, None)
    >>> energy.free_energy(energy.encode(rows)).shape
    torch.Size([8])
    """

    moves = "langevin"
    step_scale: Tensor

    def __init__(self, network: Any, units: Features, shape: tuple[int, ...]) -> None:
        super().__init__()
        self.units, self.shape = units, shape
        self.network = WholeRows(network, shape, 1)
        self.register_buffer("step_scale", torch.tensor(self._first_size()))

    def _first_size(self) -> float:
        """A step that is accepted often where rows are standard normal."""
        return math.prod(self.shape) ** (-1 / 3)

    def adapt(self, x: Tensor, weight: Tensor | None) -> None:
        self.units.adapt(x, weight)

    def encode(self, x: Tensor) -> Tensor:
        return self.units(x)  # type: ignore[no-any-return]

    def decode(self, state: Tensor) -> Tensor:
        return self.units.inverse(state)

    # --- the energy ---------------------------------------------------------------------------------------------
    def tilt(self, state: Tensor) -> Tensor:
        """f(z) of each state, (n,)."""
        return self.network(state)[:, 0]  # type: ignore[no-any-return]

    def free_energy(self, state: Tensor) -> Tensor:
        return self.tilt(state) + 0.5 * state.flatten(1).square().sum(1)

    def noise(self, count: int) -> Tensor:
        return normal_like(self.step_scale.new_empty(count, *self.shape))

    def noise_log_prob(self, state: Tensor) -> Tensor:
        flat = state.flatten(1)
        return -0.5 * (flat.square() + math.log(2 * math.pi)).sum(1)

    # --- chains -------------------------------------------------------------------------------------------------
    @torch.no_grad()
    def moved(self, state: Tensor, steps: int) -> Tensor:
        """In training, the size of a step follows its rate of acceptance."""
        at, size = Tilted.at(self.tilt, state), float(self.step_scale)
        for _ in range(steps):
            at, accepted = adjusted_step(self.tilt, at, size)
            size = _followed(size, accepted) if self.training else size
        if self.training:
            self.step_scale.fill_(size)
        return at.z

    @torch.no_grad()
    def annealed(self, count: int, steps: int, rest: int = 0) -> tuple[Tensor, Tensor]:
        """States of p by way of p_β ∝ q(z) exp(−βf(z)), β = 0 … 1, and log w, whose E w is Z over that of q.

        At the end `rest` steps at β = 1.
        """
        at, size = Tilted.at(self.tilt, self.noise(count)), self._first_size()
        log_weight = torch.zeros(count, dtype=torch.float64, device=self.step_scale.device)
        betas = torch.linspace(0, 1, steps + 1, dtype=torch.float64).tolist()
        for before, beta in pairwise(betas):
            log_weight -= (beta - before) * at.value.double()
            at, accepted = adjusted_step(self.tilt, at, size, beta)
            size = _followed(size, accepted)
        for _ in range(rest):
            at, accepted = adjusted_step(self.tilt, at, size)
            size = _followed(size, accepted)
        return at.z, log_weight

    def drawn(self, count: int, steps: int) -> Tensor:
        return self.annealed(count, -(-steps // 2), steps // 2)[0]

    @torch.no_grad()
    def filled(self, state: Tensor, gaps: Tensor, steps: int) -> Tensor:
        """Annealed as well, with what is known held."""
        at, size = Tilted.at(self.tilt, torch.where(gaps, self.noise(len(state)), state)), self._first_size()
        for step in range(steps):
            beta = min(1.0, 2 * (step + 1) / steps)
            at, accepted = adjusted_step(self.tilt, at, size, beta, gaps)
            size = _followed(size, accepted)
        return at.z

    def log_normaliser(self, chains: int) -> tuple[Tensor, Tensor]:
        mean, error = log_mean(self.annealed(chains, TEMPERATURES)[1])
        known = 0.5 * math.prod(self.shape) * math.log(2 * math.pi) + self.units.scale.double().log().sum()
        return known + mean, error


def _followed(size: float, accepted: float) -> float:
    """A step size nearer to the one whose moves are accepted as often as is best."""
    return size * math.exp(FOLLOWED * (accepted - BEST))
