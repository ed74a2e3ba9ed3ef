"""A vector field of rows: f(x, t, c) of the shape of x, from any network that takes a condition.

    f(x, t, c) = network(x, [γ(t), c]),      γ(t) = sines and cosines of t at many frequencies

What diffusion models, score models and continuous flows learn.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ...core.errors import SpecError
from ...core.random import isolated
from ...networks import as_network

__all__ = ["Field", "loudness", "time_features"]

FREQUENCIES = 16
"""Sines and as many cosines that say what time it is."""
FASTEST = 160.0
"""Turns of the fastest of them while t goes from 0 to 1."""
HEARD = 8.0
"""The norm that rows have beside the many features of time, at least, and that a condition has."""


def time_features(t: Tensor, count: int = FREQUENCIES, fastest: float = FASTEST) -> Tensor:
    """sin and cos of t ∈ [0, 1] at frequencies from 1/20 to `fastest` turns, (n, 2·count): fine and coarse.

    >>> time_features(torch.zeros(1), 2).tolist()
    [[0.0, 0.0, 1.0, 1.0]]
    """
    angles = t[:, None] * torch.tensor(_frequencies(count, fastest), dtype=t.dtype, device=t.device)
    return torch.cat([angles.sin(), angles.cos()], -1)


@cache
def _frequencies(count: int, fastest: float) -> list[float]:
    """In radians, evenly spaced on a logarithmic scale."""
    return (2 * math.pi * np.geomspace(0.05, fastest, count)).tolist()


def loudness(shape: tuple[int, ...]) -> float:
    """What a row of few numbers, each of variance 1, is multiplied by to be heard beside the features of time.

    >>> loudness((4,)), loudness((1, 28, 28))
    (4.0, 1.0)
    """
    return max(1.0, HEARD / math.prod(shape) ** 0.5)


class Field(nn.Module):
    """f(x, t, condition) for rows of one shape; t and a condition of numbers join every position of x.

    `adapt` makes a condition louder than the time: a label is one number among many that say how late it is.

    A condition that is an image of the size of x joins it as further channels. A network that answers for each pixel
    (`UNet`) is used as it is; one of flat rows (`MLP`) sees the row flat. A field that a solver follows in t must not
    change faster than the solver can step: `fastest` limits that.

    >>> from likely.networks import MLP
    >>> field = Field(MLP((8,)), (2,), None)
    >>> field(torch.zeros(5, 2), torch.rand(5)).shape
    torch.Size([5, 2])
    """

    loud: Tensor

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
        attempts = [_attempt(spec, wide, shape[0], told, (*shape[1:], shape[0]))] if self.positions else []
        if not attempts or isinstance(attempts[0], str):
            self.positions = False
            size = math.prod(shape)
            attempts.append(_attempt(spec, (math.prod(wide),), size, told, (size,)))
        module = attempts[-1]
        if isinstance(module, str):
            raise SpecError(f"network={spec!r} does not suit rows of shape {shape} with a condition: {attempts[0]}")
        self.network = module
        self.register_buffer("loud", torch.ones(()))

    @torch.no_grad()
    def adapt(self, condition: Tensor | None) -> None:
        """Multiply conditions from now on so that their norm is `HEARD` in the mean."""
        if condition is not None and not self.beside:
            norm = condition.double().flatten(1).square().sum(1).mean().sqrt()
            self.loud.fill_(HEARD / max(float(norm), 1e-3))

    def forward(self, x: Tensor, t: Tensor, condition: Tensor | None = None) -> Tensor:
        told = time_features(t, fastest=self.fastest).expand(len(x), -1)  # one time for all, or one for each row
        if condition is not None and self.beside:
            x = torch.cat([x, condition], 1)
        elif condition is not None:
            told = torch.cat([told, self.loud * condition.flatten(1)], -1)
        if self.positions:
            return self.network(x, told).movedim(-1, 1)
        return self.network(x.flatten(1), told).reshape(-1, *self.shape)


def _attempt(
    spec: Any, in_shape: tuple[int, ...], out: int, told: tuple[int, ...], wanted: tuple[int, ...]
) -> nn.Module | str:
    """The module, if it takes rows of this shape and answers as wanted; otherwise why not."""
    try:
        module = spec.build(in_shape, out, condition=told)
        like = next(module.parameters())
        with torch.no_grad(), isolated(0):
            training = module.training
            given = module.eval()(like.new_zeros(2, *in_shape), like.new_zeros(2, *told))
            module.train(training)
    except (SpecError, RuntimeError, ValueError, IndexError) as error:
        return str(error)
    answered = tuple(given.shape[1:])
    return module if answered == wanted else f"it answers with shape {answered} per row; {wanted} is needed."
