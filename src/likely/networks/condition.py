"""Networks of x and a condition: the condition joins the features of every position of x.

    W [x, c] = W_x x + W_c c

So an affine map of the condition is added to what the first layer makes of each row, step, node or pixel; a condition
that has the positions of x (an image of the same size, a sequence of the same length) joins position by position.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn

from ..core.errors import SpecError
from ..data.rows import Inputs, Rows
from .layers.steps import Embedding

__all__ = ["Conditioned", "join_condition"]


class Conditioned(nn.Module):
    """A network on [x, condition]; tokens are embedded first. `shape` and `axis` say where a row has its features.

    Where the network goes step by step, so does this: `start(rows)` and `step(x, state, condition)`.

    >>> module = Conditioned(nn.Linear(5, 1), (3,), -1)
    >>> module(torch.zeros(4, 3), torch.ones(4, 2)).shape
    torch.Size([4, 1])
    """

    def __init__(
        self, network: nn.Module, shape: tuple[int, ...], axis: int, embedding: Embedding | None = None
    ) -> None:
        super().__init__()
        self.network, self.embedding = network, embedding
        self.shape, self.axis = shape, axis

    def forward(self, x: Inputs, condition: Tensor) -> Tensor:
        return self.network(join_condition(self._embedded(x), condition, self.shape, self.axis))

    def start(self, rows: int) -> Any:
        """The initial state for `rows` sequences, before their first step."""
        return self._stepped().start(rows)

    def step(self, x: Tensor, state: Any, condition: Tensor) -> tuple[Tensor, Any]:
        """η of the sequences so far, whose next step is x, and the state after it."""
        if self.embedding is not None:
            x = self.embedding(x)
        x = x.unsqueeze(-1) if x.ndim == 1 else x
        return self._stepped().step(torch.cat([x, condition.flatten(1)], -1), state)

    def _stepped(self) -> Any:
        if not hasattr(self.network, "step"):
            raise SpecError(f"{type(self.network).__name__} does not go step by step.")
        return self.network

    def _embedded(self, x: Inputs) -> Inputs:
        if self.embedding is None:
            return x
        return x.with_features(self.embedding(x.features)) if isinstance(x, Rows) else self.embedding(x)


def join_condition(x: Inputs, condition: Tensor, shape: tuple[int, ...], axis: int) -> Inputs:
    """[x, condition] along the axis of features; at the positions of `Rows` after the features there.

    >>> join_condition(torch.zeros(4, 3, 8, 8), torch.ones(4, 2), (3, 8, 8), 0).shape
    torch.Size([4, 5, 8, 8])
    >>> join_condition(torch.zeros(4, 3, 8, 8), torch.ones(4, 1, 8, 8), (3, 8, 8), 0).shape
    torch.Size([4, 4, 8, 8])
    """
    if len(condition) != len(x):
        raise ValueError(f"condition has {len(condition)} rows, but x has {len(x)}")
    if isinstance(x, Rows):
        features = x.features.unsqueeze(-1) if x.features.ndim == 1 else x.features
        own = condition.flatten(1).to(features.dtype).index_select(0, x.owner)
        return x.with_features(torch.cat([features, own], -1))
    index = axis % len(shape)
    x = x if x.ndim == 1 + len(shape) else x.unsqueeze(1 + index)  # single numbers: an axis of one feature
    if condition.ndim != x.ndim or _others(condition, index) != _others(x, index):
        spread = [-1 if i == index else size for i, size in enumerate(x.shape[1:])]
        flat = condition.flatten(1)
        beside = flat.reshape(len(flat), *(flat.shape[1] if i == index else 1 for i in range(len(spread))))
        condition = beside.expand(-1, *spread)
    return torch.cat([x, condition.to(x.dtype)], 1 + index)


def condition_width(condition: tuple[int, ...], shape: tuple[int, ...], axis: int) -> int:
    """How many features a condition of this shape adds to rows of that.

    >>> condition_width((10,), (3, 8, 8), 0), condition_width((1, 8, 8), (3, 8, 8), 0)
    (10, 1)
    """
    if not isinstance(condition, tuple) or not all(isinstance(size, int) and size > 0 for size in condition):
        raise SpecError(f"condition={condition!r} must be the shape of one row's condition, such as (10,).")
    index = axis % len(shape)
    alike = len(condition) == len(shape) and all(
        own == other for i, (own, other) in enumerate(zip(condition, shape, strict=True)) if i != index
    )
    return condition[index] if alike else math.prod(condition)


def _others(x: Tensor, index: int) -> list[int]:
    """The sizes of a row's axes but one."""
    return [size for i, size in enumerate(x.shape[1:]) if i != index]
