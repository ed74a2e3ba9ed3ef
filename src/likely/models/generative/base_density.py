"""Where a flow ends: simple densities of z, whose numbers are independent."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import softplus

from ...core.random import current_generator
from .transforms.bijection import per_row

__all__ = ["BASES", "BaseDensity"]

BASES = ("normal", "logistic", "student_t")
LOG_2PI = math.log(2 * math.pi)
START = 8.0
"""Degrees of freedom of a Student t at the start; they are learned."""


class BaseDensity(nn.Module):
    """p(z) of standard normal, logistic or Student t numbers; the last one learns how heavy its tails are.

    >>> BaseDensity("normal", (2,)).log_prob(torch.zeros(1, 2))
    tensor([-1.8379])
    """

    def __init__(self, name: str, shape: tuple[int, ...]) -> None:
        super().__init__()
        self.name, self.shape = name, shape
        if name == "student_t":
            self.freedom = nn.Parameter(torch.full((1, 1), math.log(math.expm1(START - 1))))

    def log_prob(self, z: Tensor) -> Tensor:
        """log p of each row."""
        if self.name == "normal":
            return -0.5 * per_row(z.square()) - 0.5 * LOG_2PI * math.prod(self.shape)
        if self.name == "logistic":
            return per_row(-z - 2 * softplus(-z))
        nu = self._nu()
        constant = torch.lgamma((nu + 1) / 2) - torch.lgamma(nu / 2) - 0.5 * (nu * math.pi).log()
        return per_row(constant - 0.5 * (nu + 1) * torch.log1p(z.square() / nu))

    def sample(self, count: int, like: Tensor) -> Tensor:
        """Rows of noise, on the device and in the dtype of `like`."""
        random: Any = {"generator": current_generator(like.device), "dtype": like.dtype, "device": like.device}
        if self.name == "logistic":
            return torch.rand(count, *self.shape, **random).logit(eps=torch.finfo(like.dtype).tiny)
        normal = torch.randn(count, *self.shape, **random)
        if self.name == "normal":
            return normal
        half = 0.5 * self._nu().detach().expand(normal.shape)
        chi = 2 * torch._standard_gamma(half.contiguous(), generator=current_generator(like.device))
        return normal * (2 * half / chi).sqrt()

    def _nu(self) -> Tensor:
        return 1 + softplus(self.freedom)
