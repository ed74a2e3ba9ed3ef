"""The restricted Boltzmann machine: binary rows x and binary hidden units h, each layer independent given the other.

E(x, h) = −bᵀx − cᵀh − xᵀWh            p(x) = Σₕ exp(−E(x, h)) / Z = exp(−F(x)) / Z

F(x) = −bᵀx − Σⱼ softplus(cⱼ + Wⱼᵀx)
p(hⱼ = 1 | x) = σ(cⱼ + Wⱼᵀx),   p(xᵢ = 1 | h) = σ(bᵢ + Wᵢh)
log Z = log Σₕ exp(cᵀh + Σᵢ softplus(bᵢ + Wᵢh))       2ᴴ terms: exact for few hidden units (or few visible ones)
"""

from __future__ import annotations

import math
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn.functional import softplus

from ...core.random import current_generator
from .energy_function import TEMPERATURES, EnergyFunction, log_mean

__all__ = ["RBMModule", "bernoulli"]

EXACT = 20
"""Units of the smaller layer up to which log Z is a sum over all of its states."""
BLOCK = 1 << 12
"""States that are summed at a time."""
SPREAD = 0.01
"""The standard deviation of the first weights."""


class RBMModule(EnergyFunction):
    """W (visible, hidden), b (visible,) and c (hidden,), and what follows from them, on rows of a shape.

    Chains that go on and on are kept as their hidden units: those drawn from the last negatives are the next start, so
    that W meets each batch of negatives once.

    >>> rbm = RBMModule((3,), 2)
    >>> with torch.no_grad():
    ...     _ = rbm.weight.zero_()
    >>> bool((rbm.summed_log_normaliser() - 5 * math.log(2)).abs() < 1e-6)
    True
    """

    moves = "gibbs"
    noise_logit: Tensor

    def __init__(self, shape: tuple[int, ...], hidden: int) -> None:
        super().__init__()
        self.shape = shape
        visible = math.prod(shape)
        self.weight = nn.Parameter(torch.randn(visible, hidden) * SPREAD)
        self.visible_bias = nn.Parameter(torch.zeros(visible))
        self.hidden_bias = nn.Parameter(torch.zeros(hidden))
        self.register_buffer("noise_logit", torch.zeros(visible))

    @torch.no_grad()
    def adapt(self, x: Tensor, weight: Tensor | None) -> None:
        """Noise has independent columns with the mean of the rows, and so has the model before training."""
        flat = x.flatten(1)
        if weight is None:
            ones, total = flat.sum(0, dtype=torch.float64), float(len(flat))
        else:
            ones, total = weight.double().cpu() @ flat.double(), float(weight.double().sum())
        mean = (ones + 0.5) / (total + 1.0)
        self.noise_logit.copy_(torch.logit(mean))
        self.visible_bias.copy_(self.noise_logit)

    def encode(self, x: Tensor) -> Tensor:
        return x.flatten(1)

    def decode(self, state: Tensor) -> Tensor:
        return state.unflatten(1, self.shape)

    # --- the energy ---------------------------------------------------------------------------------------------
    def hidden_input(self, x: Tensor) -> Tensor:
        """c + Wᵀx, (n, hidden)."""
        return torch.addmm(self.hidden_bias, x, self.weight)

    def visible_input(self, h: Tensor) -> Tensor:
        """b + Wh, (n, visible)."""
        return torch.addmm(self.visible_bias, h, self.weight.T)

    def free_energy(self, state: Tensor) -> Tensor:
        return self._energy(state, self.hidden_input(state))

    def _energy(self, x: Tensor, hidden_input: Tensor) -> Tensor:
        return -(x @ self.visible_bias) - softplus(hidden_input).sum(-1)

    def noise(self, count: int) -> Tensor:
        return bernoulli(self.noise_logit.expand(count, -1))

    def noise_log_prob(self, state: Tensor) -> Tensor:
        return (state * self.noise_logit - softplus(self.noise_logit)).sum(-1)

    # --- chains -------------------------------------------------------------------------------------------------
    @torch.no_grad()
    def moved(self, state: Tensor, steps: int) -> Tensor:
        """Draws of all hidden units and all visible ones by turns."""
        for _ in range(steps):
            state = bernoulli(self.visible_input(bernoulli(self.hidden_input(state))))
        return state

    @torch.no_grad()
    def chains(self, count: int) -> Tensor:
        return bernoulli(self.hidden_input(self.noise(count)))

    def contrast(self, state: Tensor, chain: Tensor, steps: int) -> tuple[Tensor, Tensor, Tensor]:
        with torch.no_grad():
            new = self.moved(bernoulli(self.visible_input(chain)), steps - 1)
        both = torch.cat([state, new])
        inputs = self.hidden_input(both)
        own, other = self._energy(both, inputs).split([len(state), len(new)])
        return own, other, bernoulli(inputs.detach()[len(state) :])

    def hidden(self, state: Tensor) -> Tensor:
        return bernoulli(self.hidden_input(state))

    def drawn(self, count: int, steps: int) -> Tensor:
        return self.moved(self.noise(count), steps)

    def filled(self, state: Tensor, gaps: Tensor, steps: int) -> Tensor:
        new = torch.where(gaps, self.noise(len(state)), state)
        for _ in range(steps):
            new = torch.where(gaps, self.moved(new, 1), state)
        return new

    # --- the normaliser -----------------------------------------------------------------------------------------
    @property
    def enumerable(self) -> bool:
        """Whether log Z is a sum that can be done."""
        return min(self.weight.shape) <= EXACT

    def log_normaliser(self, chains: int) -> tuple[Tensor, Tensor]:
        if self.enumerable:
            value = self.summed_log_normaliser()
            return value, torch.zeros_like(value)
        return self.annealed_log_normaliser(chains, TEMPERATURES)

    @torch.no_grad()
    def summed_log_normaliser(self) -> Tensor:
        """log Z by all states of the smaller layer, in float64."""
        weight, first, second = (p.double() for p in (self.weight, self.visible_bias, self.hidden_bias))
        if weight.shape[0] < weight.shape[1]:
            weight, first, second = weight.T, second, first
        size = weight.shape[1]
        bits = torch.arange(size, device=weight.device)
        total = []
        for start in range(0, 2**size, BLOCK):
            numbers = torch.arange(start, min(start + BLOCK, 2**size), device=weight.device)
            states = (numbers[:, None] >> bits & 1).double()
            total.append(torch.logsumexp(states @ second + softplus(first + states @ weight.T).sum(-1), 0))
        return torch.logsumexp(torch.stack(total), 0)

    @torch.no_grad()
    def annealed_log_normaliser(self, chains: int, temperatures: int) -> tuple[Tensor, Tensor]:
        """log Z and its standard error by annealed importance sampling from independent columns.

            p_β ∝ exp((1 − β)·−F₀(x) + β·−F(x)),   β = 0 … 1,      log w = Σ_k log p̃_{k+1}(x_k) − log p̃_k(x_k)

        All chains go at once; E w = Z / Z₀ exactly, and the error is that of the mean of w (Salakhutdinov & Murray).
        """
        weight, bias, hidden = (p.double() for p in (self.weight, self.visible_bias, self.hidden_bias))
        x = bernoulli(bias.expand(chains, -1))
        log_weight = bias.new_zeros(chains)
        betas = torch.linspace(0, 1, temperatures + 1, dtype=torch.float64).tolist()
        inputs = torch.addmm(hidden, x, weight)
        for before, beta in pairwise(betas):  # visible biases are the same in both and cancel
            log_weight += (softplus(beta * inputs) - softplus(before * inputs)).sum(-1)
            if beta < 1:
                h = bernoulli(beta * inputs)
                x = bernoulli(torch.addmm(bias, h, beta * weight.T))
                inputs = torch.addmm(hidden, x, weight)
        start = softplus(bias).sum() + len(hidden) * math.log(2)
        mean, error = log_mean(log_weight)
        return start + mean, error


@torch.no_grad()
def bernoulli(logits: Tensor) -> Tensor:
    """0 or 1 with probability σ(logits), from the current generator."""
    chance = torch.empty_like(logits, memory_format=torch.contiguous_format)
    chance.uniform_(generator=current_generator(logits.device))
    return torch.lt(chance, logits.sigmoid(), out=chance)
