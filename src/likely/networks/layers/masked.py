"""Masked networks (MADE): what comes out for a column depends on the columns before it in an order, and on no other.

    z = (W ⊙ M) h + b,      M[o, i] = 1  if  degree(o) ≥ degree(i)      (> in the last layer)

The degree of an input or an output is the position of its column in the order; a hidden unit of degree m sees the
columns at positions 0 … m, and a condition has degree −1: all see it. A column may have several inputs (one-hot labels,
an indicator of gaps) and several outputs (η). Several orders share the weights and differ in the masks.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from ...core.errors import SpecError
from .activation import activation as activation_of
from .dropout import Dropout
from .init import initialise, lecun

__all__ = ["MaskedLinear", "MaskedMLP", "hidden_degrees", "random_orders"]

Degrees = np.ndarray
"""Degrees of units, (orders, units)."""
RESIDUALS = (None, "add", "dense")


class MaskedLinear(nn.Linear):
    """An affine map whose output o sees the inputs of no higher (of a lower, if `strict`) degree.

    >>> layer = MaskedLinear(np.array([[0, 1]]), np.array([[0, 1]]), strict=True)
    >>> layer.mask(0).tolist()
    [[0.0, 0.0], [1.0, 0.0]]
    """

    def __init__(self, inputs: Degrees, outputs: Degrees, *, strict: bool = False, bias: bool = True) -> None:
        super().__init__(inputs.shape[1], outputs.shape[1], bias=bias)
        self.degrees = inputs, outputs
        self.strict = strict
        self._masks: dict[tuple[int, torch.device, torch.dtype], Tensor] = {}

    def mask(self, order: int) -> Tensor:
        """M of an order, (outputs, inputs). It follows from the degrees: no file and no optimiser ever holds it."""
        key = (order, self.weight.device, self.weight.dtype)
        if key not in self._masks:
            before, after = (part[min(order, len(part) - 1)] for part in self.degrees)
            sees = after[:, None] > before if self.strict else after[:, None] >= before
            self._masks[key] = torch.from_numpy(sees).to(self.weight.device, self.weight.dtype)
        return self._masks[key]

    @torch.no_grad()
    def fill_out(self) -> None:
        """Scale the weights so that an output that sees few inputs has the variance of one that sees them all."""
        before, after = self.degrees
        seen = (after[:, :, None] > before[:, None] if self.strict else after[:, :, None] >= before[:, None]).sum(2)
        factor = np.sqrt(self.in_features / np.maximum(seen.mean(0), 1.0))
        self.weight.mul_(torch.from_numpy(factor).to(self.weight).unsqueeze(1))

    def forward(self, input: Tensor, order: int = 0) -> Tensor:
        return linear(input, self.weight * self.mask(order), self.bias)


class MaskedMLP(nn.Module):
    """An MLP whose outputs for a column depend on the columns before it, and on the condition.

    `inputs` and `outputs` name the column of each input and output; `orders` are permutations of the columns, the
    natural one by default. `residual="dense"` hands inputs and hidden units on to all later layers (so inputs reach
    outputs directly), `"add"` adds them.

    >>> network = MaskedMLP([0, 1, 2], [0, 1, 2], hidden=(16,), orders=[(2, 0, 1)])
    >>> jacobian = torch.autograd.functional.jacobian(network, torch.ones(3))
    >>> (jacobian != 0).int().tolist()  # 2 comes first, then 0, then 1
    [[0, 0, 1], [1, 0, 1], [0, 0, 0]]
    """

    def __init__(
        self,
        inputs: Sequence[int],
        outputs: Sequence[int],
        hidden: Sequence[int] = (64, 64),
        orders: Sequence[Sequence[int]] | None = None,
        condition: int = 0,
        *,
        activation: str = "relu",
        init: str = "he",
        dropout: float = 0.0,
        residual: str | None = None,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.columns = 1 + max(*inputs, *outputs, 0)
        self.inputs, self.outputs, self.condition = tuple(inputs), tuple(outputs), condition
        self.orders = checked_orders(orders, self.columns)
        self.residual = residual
        if residual not in RESIDUALS:
            raise SpecError(f"residual={residual!r}: a masked network has None, 'add' or 'dense'.")
        place = np.argsort(np.array(self.orders), axis=1)  # where in each order a column stands
        first = np.concatenate([place[:, list(inputs)], np.full((len(place), condition), -1)], 1)
        last = place[:, list(outputs)]
        self.affine, self.skips = nn.ModuleList(), nn.ModuleList()
        width = first
        for units in hidden:
            degrees = hidden_degrees(units, self.columns, condition > 0)[None]
            layer = MaskedLinear(width, degrees, bias=bias)
            initialise(layer.weight.data, init, activation)
            layer.fill_out()
            self.affine.append(layer)
            skip: nn.Module = nn.Identity()
            if residual == "add":
                layer.weight.data.mul_(len(hidden) ** -0.5)  # the variances of L branches add up to that of one
                if not np.array_equal(width, degrees):
                    skip = MaskedLinear(width, degrees, bias=False)
                    lecun(skip.weight.data)
                    skip.fill_out()
            self.skips.append(skip)
            width = np.concatenate([width, degrees.repeat(len(width), 0)], 1) if residual == "dense" else degrees
        self.last = MaskedLinear(width, last, strict=True, bias=bias)
        lecun(self.last.weight.data)
        self.last.fill_out()
        if bias:
            nn.init.zeros_(self.last.bias)
        drop: list[nn.Module] = [Dropout(dropout)] if dropout else []
        self.activation: nn.Module = (
            nn.Sequential(activation_of(activation), *drop) if drop else activation_of(activation)
        )

    def forward(self, x: Tensor, condition: Tensor | None = None, order: int = 0) -> Tensor:
        """Outputs (…, outputs) for inputs (…, inputs), in the order with this index."""
        h = x if condition is None else torch.cat([x, condition.expand(*x.shape[:-1], -1)], -1)
        for affine, skip in zip(self.affine, self.skips, strict=True):
            new = self.activation(affine(h, order))
            if self.residual == "dense":
                new = torch.cat([h, new], -1)
            elif self.residual == "add":
                new = new + (h if isinstance(skip, nn.Identity) else skip(h, order))
            h = new
        return self.last(h, order)


def hidden_degrees(units: int, columns: int, condition: bool = False) -> np.ndarray:
    """Degrees of hidden units, ascending and evenly spread over 0 … columns − 2, or from −1 if there is a condition.

    >>> hidden_degrees(6, 4).tolist(), hidden_degrees(4, 4, condition=True).tolist()
    ([0, 0, 1, 1, 2, 2], [-1, 0, 1, 2])
    """
    lowest = -1 if condition or columns == 1 else 0
    count = max(1, columns - 1 - lowest)
    return lowest + (np.arange(units) * count) // units


def random_orders(count: int, columns: int) -> tuple[tuple[int, ...], ...]:
    """The natural order and then random ones, the same at every call.

    >>> random_orders(2, 4)[0]
    (0, 1, 2, 3)
    """
    generator = np.random.default_rng(columns)
    others = [tuple(generator.permutation(columns).tolist()) for _ in range(count - 1)]
    return (tuple(range(columns)), *others)


def checked_orders(orders: Sequence[Sequence[int]] | None, columns: int) -> tuple[tuple[int, ...], ...]:
    """The orders as tuples; a `SpecError` for one that is not a permutation of the columns."""
    if orders is None:
        return (tuple(range(columns)),)
    for order in orders:
        if sorted(order) != list(range(columns)):
            raise SpecError(f"order {tuple(order)} is not a permutation of the columns 0 to {columns - 1}.")
    return tuple(tuple(order) for order in orders)
