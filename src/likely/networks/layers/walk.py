"""A masked network column by column: all of its outputs for the price of one forward pass.

    h_m = φ(W_m h_≤m + b_m)        the units of degree m, once column m is known; they never change again

So drawing a row of D columns costs D small products whose sizes add up to those of a single pass.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn

from .masked import MaskedLinear, MaskedMLP

__all__ = ["Walk"]


class Walk:
    """Rows under way: `next` gives the outputs of the column whose turn it is, `tell` takes its inputs.

    `columns` is the permutation that they come in. Gradients do not pass.

    >>> network = MaskedMLP([0, 1], [0, 1], hidden=(4,))
    >>> walk, x, outputs = Walk(network, 1), torch.tensor([[0.3, 0.7]]), []
    >>> for column in walk.columns:
    ...     outputs.append(walk.next())
    ...     walk.tell(x[:, [column]])
    >>> torch.allclose(torch.cat(outputs, 1), network(x), atol=1e-6)
    True
    """

    @torch.no_grad()
    def __init__(self, network: MaskedMLP, rows: int, condition: Tensor | None = None, order: int = 0) -> None:
        self.columns, self.activation = network.orders[order], network.activation
        place = np.argsort(self.columns)
        inputs = np.concatenate([place[list(network.inputs)], np.full(network.condition, -1, dtype=int)])
        by_place = np.argsort(inputs, kind="stable")
        degrees = [inputs[by_place]]
        self._layers: list[tuple[_Piece, _Piece | None]] = []
        dense = network.residual == "dense"
        for affine, skip in zip(network.affine, network.skips, strict=True):
            assert isinstance(affine, MaskedLinear)
            sources = range(len(degrees)) if dense else [len(degrees) - 1]
            beside = _Piece(skip, degrees, sources, by_place) if isinstance(skip, MaskedLinear) else None
            self._layers.append((_Piece(affine, degrees, sources, by_place), beside))
            degrees.append(affine.degrees[1][0])
        self._adds = network.residual == "add"
        sources = range(len(degrees)) if dense else [len(degrees) - 1]
        self._last = _Piece(network.last, degrees, sources, by_place)
        self._rows_of = [np.flatnonzero(np.array(network.outputs) == column) for column in self.columns]
        steps = np.arange(-2, len(self.columns))
        self._cuts = [np.searchsorted(own, steps, side="right") for own in degrees]
        """For each layer, how many of its units have a degree up to −2, −1, 0, …"""
        weight = network.last.weight
        self._units = [weight.new_empty(len(own), rows) for own in degrees]  # a column for each row: slices are whole
        self._step = 1
        if condition is not None:
            self._units[0][: network.condition] = condition.to(weight).expand(rows, -1).mT
        self._advance()

    @torch.no_grad()
    def next(self) -> Tensor:
        """The outputs of the column whose turn it is, (rows, outputs of that column)."""
        return self._last.of(self._rows_of[self._step - 1], self._units, [cut[self._step] for cut in self._cuts]).mT

    @torch.no_grad()
    def tell(self, features: Tensor) -> None:
        """The inputs (rows, inputs of that column) of the column whose turn it was."""
        self._step += 1
        cut = self._cuts[0]
        self._units[0][cut[self._step - 1] : cut[self._step]] = features.mT
        self._advance()

    def _advance(self) -> None:
        """The hidden units that what is known now decides."""
        cuts = [cut[self._step] for cut in self._cuts]
        for index, (piece, skip) in enumerate(self._layers, 1):
            first, stop = int(self._cuts[index][self._step - 1]), int(cuts[index])
            if first == stop:
                continue
            rows = slice(first, stop)
            new = self.activation(piece.of(rows, self._units, cuts))
            if self._adds:
                new = new + (self._units[index - 1][rows] if skip is None else skip.of(rows, self._units, cuts))
            self._units[index][rows] = new


class _Piece:
    """Some rows of an affine map at a time, its inputs split by the layer that they come from."""

    def __init__(
        self, layer: nn.Module, degrees: list[np.ndarray], sources: Sequence[int], by_place: np.ndarray
    ) -> None:
        assert isinstance(layer, MaskedLinear)
        self.sources = sources
        parts = layer.weight.split([len(degrees[source]) for source in self.sources], 1)
        self.weights = [part if source else part[:, by_place] for source, part in zip(self.sources, parts, strict=True)]
        self.bias = layer.bias

    def of(self, rows: slice | np.ndarray, units: list[Tensor], cuts: list[int]) -> Tensor:
        """W h + b for these rows, from the units that are known: (len(rows), n)."""
        total = None
        for source, weight in zip(self.sources, self.weights, strict=True):
            known = cuts[source]
            product = weight[rows, :known] @ units[source][:known]
            total = product if total is None else total + product
        assert total is not None
        return total if self.bias is None else total + self.bias[rows].unsqueeze(1)
