"""MLP: the multilayer perceptron, alternating affine maps and activations on the last axis of x.

h₀ = x,   hₗ = φ(Wₗ hₗ₋₁ + bₗ),   η = W h_L + b
"""

from __future__ import annotations

from typing import Literal, Self

from torch import nn

from ..core.errors import SpecError
from ..core.spec import is_among, is_fraction, is_integer, require
from .base import Network, Shape, refuse_absurd
from .layers.activation import ACTIVATIONS, activation
from .layers.dropout import Dropout
from .layers.init import INITS, initialise, lecun
from .layers.norm import NORMS, ReferenceBatch, WeightNorm, norm
from .layers.residual import Concatenate, Residual, ZeroResidual

__all__ = ["MLP"]

RESIDUALS = ("add", "zero", "dense", "preactivation")
REFERENCE_ROWS = 64


class MLP(Network):
    """Layers of `hidden` units; `hidden=()` is linear.

    A hidden layer is affine → norm → activation → dropout. `norm` is "batch", "layer", "weight" or "virtual" (see
    `networks.layers.norm`). `dropout` is the probability that a unit is dropped in training; kept ones are scaled by
    1/(1 − p). `residual` is "add" (x + f(x)), "zero" (x + φ(Wx + b) − φ(0)), "dense" ([x, f(x)]) or "preactivation"
    (x + Wφ(x) + b after a first affine map); where widths differ, x is projected. `init` draws the hidden weights
    ("he" with the gain of the activation), residual branches smaller the more there are; the last layer's are
    LeCun's, so that η starts at order 1. Hidden biases are uniform on ±1/√inputs, which spreads the units over x.

    >>> MLP((8,), activation="tanh").build((3,), 1)
    Sequential(
      (0): Linear(in_features=3, out_features=8, bias=True)
      (1): Tanh()
      (2): Linear(in_features=8, out_features=1, bias=True)
    )
    """

    hidden: tuple[int, ...] = (64, 64)
    activation: str = "relu"
    init: str = "he"
    dropout: float = 0.0
    norm: Literal["batch", "layer", "weight", "virtual"] | None = None
    residual: Literal["add", "zero", "dense", "preactivation"] | None = None
    bias: bool = True

    @classmethod
    def example(cls) -> Self:
        return cls(hidden=(4,), activation="tanh")

    def validate(self) -> None:
        whole = isinstance(self.hidden, tuple) and all(is_integer(units) for units in self.hidden)
        require(whole, self, "hidden", "a tuple of positive integers, such as (64, 64)")
        require(is_among(self.activation, ACTIVATIONS), self, "activation", f"one of {', '.join(ACTIVATIONS)}")
        require(is_among(self.init, INITS), self, "init", f"one of {', '.join(INITS)}")
        require(is_fraction(self.dropout), self, "dropout", "a probability, 0 or more and below 1")
        require(self.norm is None or is_among(self.norm, NORMS), self, "norm", f"None or one of {', '.join(NORMS)}")
        skips = self.residual is None or is_among(self.residual, RESIDUALS)
        require(skips, self, "residual", f"None or one of {', '.join(RESIDUALS)}")
        require(isinstance(self.bias, bool), self, "bias", "True or False")

    def build(self, in_shape: Shape, out_features: int, condition: Shape | None = None) -> nn.Module:
        if condition is not None:
            return self.conditioned(in_shape, out_features, condition)
        if not in_shape or in_shape[-1] < 1 or out_features < 1:
            raise SpecError(f"MLP needs one input and one output or more; found {in_shape} and {out_features}.")
        refuse_absurd(self, self._weights(in_shape[-1], out_features))
        layers: list[nn.Module] = []
        width = in_shape[-1]
        for units in self.hidden:
            layers += self._layer(width, units, first=not layers)
            width = width + units if self.residual == "dense" else units
        if self.residual == "preactivation" and self.hidden:
            layers += self._after(width)
        last = nn.Linear(width, out_features, bias=self.bias)
        lecun(last.weight)
        if self.bias:
            nn.init.zeros_(last.bias)
        network = nn.Sequential(*layers, last) if layers else last
        virtual = self.norm == "virtual" and self.hidden
        return ReferenceBatch(network, in_shape[-1], REFERENCE_ROWS) if virtual else network

    def _layer(self, width: int, units: int, first: bool) -> list[nn.Module]:
        """One hidden layer: a plain one is a list of modules, one with a skip is a single module."""
        affine = self._affine(width, units, branch=not (first and self.residual == "preactivation"))
        match self.residual:
            case "add":
                return [Residual(nn.Sequential(affine, *self._after(units)), width, units)]
            case "zero":
                inner = nn.Sequential(affine, *self._norm(units))
                return [ZeroResidual(inner, activation(self.activation), width, units, self.dropout)]
            case "dense":
                return [Concatenate(nn.Sequential(affine, *self._after(units)))]
            case "preactivation" if not first:
                return [Residual(nn.Sequential(*self._after(width), affine), width, units)]
            case "preactivation":
                return [affine]
            case _:
                return [affine, *self._after(units)]

    def _affine(self, width: int, units: int, branch: bool) -> nn.Module:
        linear = nn.Linear(width, units, bias=self.bias)
        weight = initialise(linear.weight.data, self.init, self.activation)
        if branch and self.residual in ("add", "zero", "preactivation"):
            weight.mul_(len(self.hidden) ** -0.5)  # the variances of L branches add up to that of one
        if self.norm != "weight":
            return linear
        normed = WeightNorm(width, units, bias=self.bias)
        normed.start_at(weight)
        return normed

    def _after(self, units: int) -> list[nn.Module]:
        """What follows an affine map: norm, activation, dropout."""
        dropout = [Dropout(self.dropout)] if self.dropout else []
        return [*self._norm(units), activation(self.activation), *dropout]

    def _norm(self, units: int) -> list[nn.Module]:
        return [] if self.norm in (None, "weight") else [norm(self.norm, units, REFERENCE_ROWS)]

    def _weights(self, inputs: int, outputs: int) -> int:
        total, width = 0, inputs
        for units in self.hidden:
            total += width * units
            width = width + units if self.residual == "dense" else units
        return total + width * outputs
