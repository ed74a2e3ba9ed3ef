"""Networks that give so many numbers for a whole row, whatever the shape of rows they read.

x (n, *shape), condition (n, *condition)  →  (n, out)
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn

from ...core.errors import SpecError
from ...networks.base import as_network

__all__ = ["WholeRows"]


class WholeRows(nn.Module):
    """A network on rows of a shape; one that reads vectors (an MLP) gets images and sequences as one long vector.

    >>> from likely.networks import MLP, ConvNet
    >>> WholeRows(MLP((8,)), (1, 8, 8), 3)(torch.zeros(5, 1, 8, 8)).shape
    torch.Size([5, 3])
    >>> WholeRows(ConvNet((4,)), (1, 8, 8), 3, condition=(2,))(torch.zeros(5, 1, 8, 8), torch.ones(5, 2)).shape
    torch.Size([5, 3])
    """

    def __init__(
        self, network: Any, shape: tuple[int, ...], out: int, condition: tuple[int, ...] | None = None
    ) -> None:
        super().__init__()
        spec = as_network(network)
        told = () if condition is None else (condition,)
        shapes = [shape] if len(shape) == 1 else [shape, (math.prod(shape),)]
        given: list[tuple[int, ...]] = []
        for own in shapes:
            self.flat, self.network = own != shape, spec.build(own, out, *told)  # type: ignore[call-arg]
            given.append(self._given(own, told))
            if given[-1] == (out,):
                return
        raise SpecError(
            f"{network!r} gives outputs of shape {' or '.join(map(str, given))} for a row of shape {shape}, where "
            f"{(out,)} is needed."
        )

    def _given(self, shape: tuple[int, ...], told: tuple[Any, ...]) -> tuple[int, ...]:
        """The shape of what the network gives for one row."""
        inputs = [torch.zeros(2, *own) for own in (shape, *told)]
        with torch.no_grad():
            try:
                return tuple(self.network.eval()(*inputs).shape[1:])
            except RuntimeError:  # a module of the user's that reads vectors
                if self.flat or len(shape) == 1:
                    raise
                return shape
            finally:
                self.network.train()

    def forward(self, x: Tensor, condition: Tensor | None = None) -> Tensor:
        x = x.flatten(1) if self.flat else x
        return self.network(x) if condition is None else self.network(x, condition)
