"""A vector field of rows: f(x, t, c) of the shape of x, from any network that takes a condition.

    f(x, t, c) = network(x, [γ(t), c]),      γ(t) = sines and cosines of t at many frequencies

What diffusion models, score models and continuous flows learn.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn

from ...core.errors import SpecError
from ...core.random import isolated
from ...networks import as_network

__all__ = ["Field", "time_features"]

FREQUENCIES = 16
"""Sines and as many cosines that say what time it is."""
FASTEST = 160.0
"""Turns of the fastest of them while t goes from 0 to 1."""


def time_features(t: Tensor, count: int = FREQUENCIES, fastest: float = FASTEST) -> Tensor:
    """sin and cos of t ∈ [0, 1] at frequencies from 1/20 to `fastest` turns, (n, 2·count): fine and coarse.

    >>> time_features(torch.zeros(1), 2).tolist()
    [[0.0, 0.0, 1.0, 1.0]]
    """
    turns = torch.exp(torch.linspace(math.log(0.05), math.log(fastest), count, dtype=t.dtype, device=t.device))
    angles = 2 * math.pi * t[:, None] * turns
    return torch.cat([angles.sin(), angles.cos()], -1)


class Field(nn.Module):
    """f(x, t, condition) for rows of one shape; t and a condition of numbers join every position of x.

    A condition that is an image of the size of x joins it as further channels. A network that answers for each pixel
    (`UNet`) is used as it is; one of flat rows (`MLP`) sees the row flat. A field that a solver follows in t must not
    change faster than the solver can step: `fastest` limits that.

    >>> from likely.networks import MLP
    >>> field = Field(MLP((8,)), (2,), None)
    >>> field(torch.zeros(5, 2), torch.rand(5)).shape
    torch.Size([5, 2])
    """

    def __init__(
        self, network: Any, shape: tuple[int, ...], condition: tuple[int, ...] | None, fastest: float = FASTEST
    ) -> None:
        super().__init__()
        self.shape, self.condition, self.fastest = shape, condition, fastest
        self.beside = condition is not None and len(condition) == len(shape) == 3 and condition[1:] == shape[1:]
        extra = 0 if condition is None or self.beside else math.prod(condition)
        told = (2 * FREQUENCIES + extra,)
        spec = as_network(network)
        self.positions = len(shape) > 1
        wide = (shape[0] + condition[0], *shape[1:]) if self.beside and condition is not None else shape
        module = _attempt(spec, wide, shape[0], told, (*shape[1:], shape[0])) if self.positions else None
        if module is None:
            self.positions = False
            size = math.prod(shape)
            module = _attempt(spec, (math.prod(wide),), size, told, (size,))
        if module is None:
            raise SpecError(f"network={spec!r} takes no rows of shape {shape} with a condition, or answers otherwise.")
        self.network = module

    def forward(self, x: Tensor, t: Tensor, condition: Tensor | None = None) -> Tensor:
        told = time_features(t, fastest=self.fastest)
        if condition is not None and self.beside:
            x = torch.cat([x, condition], 1)
        elif condition is not None:
            told = torch.cat([told, condition.flatten(1)], -1)
        if self.positions:
            return self.network(x, told).movedim(-1, 1)
        return self.network(x.flatten(1), told).unflatten(1, self.shape)


def _attempt(
    spec: Any, in_shape: tuple[int, ...], out: int, told: tuple[int, ...], wanted: tuple[int, ...]
) -> nn.Module | None:
    """The module, if it takes rows of this shape and answers as wanted."""
    try:
        module = spec.build(in_shape, out, condition=told)
        like = next(module.parameters())
        with torch.no_grad(), isolated(0):
            training = module.training
            given = module.eval()(like.new_zeros(2, *in_shape), like.new_zeros(2, *told))
            module.train(training)
    except (SpecError, RuntimeError, ValueError, IndexError):
        return None
    return module if tuple(given.shape[1:]) == wanted else None
