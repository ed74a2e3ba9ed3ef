"""DeepSets: functions of sets, of any number of elements in any order.

set    f(x₁ … x_M) = ρ(poolₘ φ(xₘ))                             does not change if the elements are permuted
each   hₘ⁺ = α(hₘ W + poolₖ(hₖ) V + b), layer by layer          is permuted with them
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, Literal, Self

import numpy as np
import torch
from torch import Tensor, nn

from ..core.errors import SpecError
from ..core.spec import is_fraction, is_integer, require
from ..data.rows import Inputs
from .base import Shape, _StepNetwork, refuse_absurd
from .graph_network import drafted
from .layers.activation import ACTIVATIONS, activation
from .layers.dropout import Dropout
from .layers.sets import POOLS, EquivariantLinear
from .layers.steps import at_each, pooled, step_features, steps_of
from .mlp import MLP

__all__ = ["DeepSets"]


class SetFunction(nn.Module):
    """ρ(pool φ(xₘ)): one answer for each set."""

    def __init__(self, element: nn.Module, whole: nn.Module, pool: Literal["sum", "mean", "max"]) -> None:
        super().__init__()
        self.element, self.whole, self.pool = element, whole, pool

    def forward(self, x: Inputs) -> Tensor:
        elements, present = steps_of(x)
        return self.whole(pooled(self.element(elements), present, self.pool))


class ElementFunction(nn.Module):
    """Equivariant layers with `after` (activation, dropout) between them: one answer for each element."""

    def __init__(self, layers: list[EquivariantLinear], after: nn.Module) -> None:
        super().__init__()
        self.layers, self.after = nn.ModuleList(layers), after

    def forward(self, x: Inputs) -> Tensor:
        h, present = steps_of(x)
        for index, layer in enumerate(self.layers):
            h = layer(self.after(h) if index else h, present)
        return at_each(x, h)


class DeepSets(_StepNetwork):
    """Sets of any sizes: X is a list of arrays (elements, features), or one array (n, elements, features).

    `output="set"` answers for each set: φ is a perceptron of `hidden` units on each element, its last layer followed by
    the activation too, `pool` is "sum", "mean" or "max" over the elements, and ρ a perceptron of `after` units.
    `output="each"` answers for each element: layers of `hidden` units in which each element sees itself and the pool of
    all. With "sum" the size of a set counts; with "mean" and "max" it does not. What pads shorter sets is never seen.

    >>> import torch
    >>> net = DeepSets((16, 16)).build((4, 2), 1)
    >>> x = torch.randn(3, 4, 2)
    >>> net(x).shape, torch.allclose(net(x), net(x.flip(1)), atol=1e-6)
    (torch.Size([3, 1]), True)
    """

    hidden: tuple[int, ...] = (64, 64)
    pool: Literal["sum", "mean", "max"] = "sum"
    output: Literal["set", "each"] = "set"
    after: tuple[int, ...] = (64,)
    activation: str = "relu"
    dropout: float = 0.0

    @classmethod
    def example(cls) -> Self:
        return cls(hidden=(2,), after=(), activation="tanh")

    @classmethod
    def example_inputs(cls, rows: int, generator: torch.Generator) -> Any:
        """Sets of one to three pairs of numbers."""
        return [torch.randn(1 + row % 3, 2, generator=generator).numpy().astype(np.float64) for row in range(rows)]

    def validate(self) -> None:
        for name in ("hidden", "after"):
            sizes = getattr(self, name)
            whole = isinstance(sizes, tuple) and all(is_integer(units) for units in sizes)
            require(whole, self, name, "a tuple of positive integers, such as (64, 64)")
        require(self.pool in POOLS, self, "pool", f"one of {', '.join(POOLS)}")
        require(self.output in ("set", "each"), self, "output", "set or each")
        require(self.activation in ACTIVATIONS, self, "activation", f"one of {', '.join(ACTIVATIONS)}")
        require(is_fraction(self.dropout), self, "dropout", "a probability, 0 or more and below 1")

    def build(self, in_shape: Shape, out_features: int, condition: Shape | None = None) -> nn.Module:
        if condition is not None:
            return self.conditioned(in_shape, out_features, condition)
        if len(in_shape) not in (1, 2) or min(in_shape) < 1 or out_features < 1:
            raise SpecError(
                f"DeepSets takes sets: rows of shape (elements, features), or (elements,) for one number each; found "
                f"{in_shape}, and {out_features} outputs."
            )
        make = self._of_elements if self.output == "each" else self._of_sets
        refuse_absurd(self, drafted(lambda: make(in_shape, out_features)))
        return make(in_shape, out_features)

    def _of_sets(self, in_shape: tuple[int, ...], out_features: int) -> nn.Module:
        width = step_features(in_shape)
        element: nn.Module = nn.Identity()
        if self.hidden:
            inner = MLP(self.hidden[:-1], self.activation, dropout=self.dropout)
            element = nn.Sequential(inner.build((width,), self.hidden[-1]), activation(self.activation))
        pooled_width = (width, *self.hidden)[-1]
        whole = MLP(self.after, self.activation, dropout=self.dropout).build((pooled_width,), out_features)
        if self.pool == "sum":  # so that large sets start with answers of order 1 too
            first = next(layer for layer in whole.modules() if isinstance(layer, nn.Linear))
            first.weight.data.div_(in_shape[0])
        return SetFunction(element, whole, self.pool)

    def _of_elements(self, in_shape: tuple[int, ...], out_features: int) -> nn.Module:
        widths = (step_features(in_shape), *self.hidden, out_features)
        layers = []
        for index, (width, units) in enumerate(pairwise(widths)):
            last = index == len(self.hidden)
            layer = EquivariantLinear(width, units, self.pool, "identity" if last else self.activation)
            if self.pool == "sum":
                layer.others.weight.data.div_(in_shape[0])
            layers.append(layer)
        return ElementFunction(layers, nn.Sequential(activation(self.activation), Dropout(self.dropout)))
