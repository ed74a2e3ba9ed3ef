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

__all__ = ["RBMModule", "bernoulli"]

EXACT = 20
"""Units of the smaller layer up to which log Z is a sum over all of its states."""
BLOCK = 1 << 12
"""States that are summed at a time."""
SPREAD = 0.01
"""The standard deviation of the first weights."""


class RBMModule(nn.Module):
    """W (visible, hidden), b (visible,) and c (hidden,), and what follows from them.

    >>> rbm = RBMModule(3, 2)
    >>> with torch.no_grad():
    ...     _ = rbm.weight.zero_()
    >>> bool((rbm.log_normaliser() - 5 * math.log(2)).abs() < 1e-6)
    True
    """

    def __init__(self, visible: int, hidden: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(visible, hidden) * SPREAD)
        self.visible_bias = nn.Parameter(torch.zeros(visible))
        self.hidden_bias = nn.Parameter(torch.zeros(hidden))

    @torch.no_grad()
    def adapt(self, mean: Tensor) -> None:
        """Let the visible biases be those of rows of independent columns with this mean."""
        self.visible_bias.copy_(torch.logit(mean))

    def hidden_input(self, x: Tensor) -> Tensor:
        """c + Wᵀx, (n, hidden)."""
        return torch.addmm(self.hidden_bias, x, self.weight)

    def visible_input(self, h: Tensor) -> Tensor:
        """b + Wh, (n, visible)."""
        return torch.addmm(self.visible_bias, h, self.weight.T)

    def free_energy(self, x: Tensor) -> Tensor:
        """F(x) of each row, (n,)."""
        return -(x @ self.visible_bias) - softplus(self.hidden_input(x)).sum(-1)

    @torch.no_grad()
    def gibbs(self, x: Tensor, steps: int) -> Tensor:
        """x after so many draws of all hidden units and all visible ones."""
        for _ in range(steps):
            x = bernoulli(self.visible_input(bernoulli(self.hidden_input(x))))
        return x

    @property
    def enumerable(self) -> bool:
        """Whether log Z is a sum that can be done."""
        return min(self.weight.shape) <= EXACT

    @torch.no_grad()
    def log_normaliser(self) -> Tensor:
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
        mean = torch.logsumexp(log_weight, 0) - math.log(chains)
        error = (log_weight - mean).exp().std() / math.sqrt(chains)
        return start + mean, error


def bernoulli(logits: Tensor) -> Tensor:
    """0 or 1 with probability σ(logits), from the current generator."""
    chance = torch.empty_like(logits).uniform_(generator=current_generator(logits.device))
    return (chance < logits.sigmoid()).to(logits)
