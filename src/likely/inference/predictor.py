"""The module that inferences see: x → η, made of a network and the numbers of η that do not depend on x.

    η(x) = [ offset + unit · f(z(x); θ),  shared ],      f a network, or A z + b

`shared` are learned constants such as Normal's σ. A nonlinear network is in units on both sides: z are the standardised
inputs, offset and unit those of the targets without x, all fixed; a linear one speaks in the units of the data, so that
its weights are the coefficients and a prior on them is the penalty of the textbooks. Of the members of a posterior some
may have the affine map in place of the network.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
from torch import Tensor, nn

from ..core.random import isolated
from ..data.rows import Inputs
from ..networks.layers.dense import DensePasses, Passes, dense_layers
from ..networks.layers.dropout import Dropout
from ..networks.layers.standardise import Standardise

__all__ = ["InputPasses", "Predictor", "is_linear"]


class Predictor(nn.Module):
    """η of a batch: (n, *positions, size). `positions` are set only where the network gives a row's numbers flat.

    With `integer` the network takes integers (tokens, categories) as they are; otherwise x comes in the dtype of the
    parameters.
    """

    offset: Tensor | None
    unit: Tensor | None
    is_affine: Tensor

    def __init__(
        self,
        network: nn.Module,
        shared: Tensor | None = None,
        offset: Tensor | None = None,
        unit: Tensor | None = None,
        positions: tuple[int, ...] = (),
        flatten: bool = False,
        inputs: Standardise | None = None,
        integer: bool = False,
    ) -> None:
        super().__init__()
        self.network = network
        self.shared = None if shared is None else nn.Parameter(shared)
        self.positions = positions
        self.flatten = flatten
        self.inputs = inputs
        self.integer = integer
        self.affine: nn.Linear | None = None
        self.register_buffer("offset", offset)
        self.register_buffer("unit", unit)

    @property
    def linear(self) -> nn.Linear | None:
        """The one linear layer, if η is linear in the parameters."""
        return self.network if is_linear(self.network) else None  # type: ignore[return-value]

    @property
    def function(self) -> nn.Module:
        """f: the network, or what stands in its place."""
        return self.affine if self.affine is not None and bool(self.is_affine) else self.network

    def straight(self, columns: int) -> Predictor:
        """The same over rows of so many columns with an affine map, which is 0, for a network.

        >>> bent = Predictor(nn.Tanh(), offset=torch.tensor([5.0]))
        >>> bent.straight(3)(torch.ones(2, 3)).tolist()
        [[5.0], [5.0]]
        """
        shared = None if self.shared is None else self.shared.detach().clone()
        affine = self._level(columns)
        return Predictor(affine, shared, self.offset, self.unit, self.positions, self.flatten, self.inputs)

    def with_affine(self, columns: int) -> Predictor:
        """This one, with such a map beside the network: `is_affine` says which of the two it is."""
        self.affine = self._level(columns)
        self.register_buffer("is_affine", torch.tensor(False))
        return self

    def without_affine(self) -> Predictor:
        """This one, with nothing beside the network."""
        self.affine = None
        del self.is_affine
        return self

    def settled(self) -> Predictor:
        """This one, of which one member alone is left: the network or the affine map, and not both."""
        self.network = self.function
        return self if self.affine is None else self.without_affine()

    def _level(self, columns: int) -> nn.Linear:
        assert self.offset is not None
        with isolated(0):
            affine = nn.Linear(columns, self.offset.numel())
        for parameter in affine.parameters():
            nn.init.zeros_(parameter)
        return affine

    def forward(self, x: Inputs) -> Tensor:
        if self.flatten:
            x = x.flatten(1)  # type: ignore[union-attr]
        if self.inputs is not None:
            x = self.inputs(x)
        eta = self.network(x)
        if self.affine is not None:
            eta = torch.where(self.is_affine, self.affine(x), eta)
        if self.positions:
            eta = eta.unflatten(-1, (*self.positions, eta.shape[-1] // math.prod(self.positions)))
        if self.unit is not None:
            eta = eta * self.unit
        if self.offset is not None:
            eta = eta + self.offset
        if self.shared is not None:
            eta = torch.cat([eta, self.shared.expand(*eta.shape[:-1], self.shared.shape[-1])], -1)
        return eta

    def plain_layers(self) -> list[tuple[str, nn.Module]] | None:
        """Those of the network, if it is a plain dense one and all there is."""
        return dense_layers(self.network) if self.affine is None else None

    def passes(
        self, parameters: Mapping[str, Tensor], gradients: Mapping[str, Tensor], *, stacked: bool
    ) -> Passes | None:
        """Both passes by hand over these parameters and gradients, if the network is a plain dense one.

        Where members are `stacked`, all have a leading axis for them.
        """
        layers = self.plain_layers()
        return None if layers is None else _PredictorPasses(self, layers, parameters, gradients, stacked)

    def input_passes(self) -> InputPasses | None:
        """η and its gradient with respect to the inputs by hand, if the network is a plain dense one.

        The parameters are the module's own, and the pass that of predictions: without dropout.
        """
        layers = self.plain_layers()
        return None if layers is None or self.training else InputPasses(self, layers)


class _PredictorPasses:
    """Those of the network, with what the predictor does before and after it."""

    def __init__(
        self,
        predictor: Predictor,
        layers: list[tuple[str, nn.Module]],
        parameters: Mapping[str, Tensor],
        gradients: Mapping[str, Tensor],
        stacked: bool,
        to_inputs: bool = False,
    ) -> None:
        own, to_own = ({k.removeprefix("network."): v for k, v in part.items()} for part in (parameters, gradients))
        self.flatten, self.positions, self.lead = predictor.flatten, predictor.positions, 1 + stacked
        self.inputs, self.offset = predictor.inputs, predictor.offset
        self.unit = None if predictor.unit is None or bool((predictor.unit == 1).all()) else predictor.unit
        self.network = DensePasses(layers, own, to_own, stacked, to_inputs)
        self.shared, self.to_shared = own.get("shared"), to_own.get("shared")
        self.prepared = False

    def prepare(self, x: Tensor, lead: int = 1) -> Tensor:
        """The rows as the network sees them: nothing in it is learned, so it may be done once for all of them."""
        x = x.flatten(lead) if self.flatten else x
        return x if self.inputs is None else self.inputs.once(x)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor | None]:
        eta = self.network.forward(x if self.prepared else self.prepare(x, self.lead))
        if self.positions:
            eta = eta.unflatten(-1, (*self.positions, eta.shape[-1] // math.prod(self.positions)))
        if self.unit is not None:
            eta = eta * self.unit if self.offset is None else torch.addcmul(self.offset, eta, self.unit)
        elif self.offset is not None:
            eta = eta.add_(self.offset) if self.network.fresh else eta + self.offset
        if self.shared is None:
            return eta, None
        members, own = self.shared.shape[: self.lead - 1], self.shared.shape[self.lead - 1 :]
        return eta, self.shared.view(*members, *(1,) * (eta.ndim - len(members) - len(own)), *own)

    def backward(self, gradient: Tensor, of_shared: Tensor | None) -> Tensor:
        if self.to_shared is not None and of_shared is not None:
            self.to_shared.copy_(of_shared.view_as(self.to_shared))
        if self.unit is not None:
            gradient = gradient * self.unit
        if self.positions:
            gradient = gradient.flatten(gradient.ndim - 1 - len(self.positions))
        return self.network.backward(gradient)


class InputPasses:
    """η of rows (n, *in_shape), then ∂/∂x of these rows from ∂/∂η; both in memory that the next call uses again."""

    def __init__(self, predictor: Predictor, layers: list[tuple[str, nn.Module]]) -> None:
        own = {name: value.detach() for name, value in predictor.named_parameters()}
        kept = [(name, layer) for name, layer in layers if not isinstance(layer, Dropout)]
        self.inputs, self.flatten = predictor.inputs, predictor.flatten
        self.passes = _PredictorPasses(predictor, kept, own, {}, stacked=False, to_inputs=True)
        self.passes.prepared = True

    @torch.no_grad()
    def forward(self, x: Tensor) -> Tensor:
        """η, with its numbers that all rows share."""
        self.shape = x.shape
        x = x.flatten(1) if self.flatten else x
        self.seen = x.shape
        if self.inputs is not None:
            x, self.derivative = self.inputs.with_derivative(x)
        eta, shared = self.passes.forward(x)
        return eta if shared is None else torch.cat([eta, shared.expand(*eta.shape[:-1], shared.shape[-1])], -1)

    @torch.no_grad()
    def backward(self, gradient: Tensor) -> Tensor:
        """∂/∂x from ∂/∂η, which may be overwritten."""
        shared = self.passes.shared
        own = gradient if shared is None else gradient[..., : -shared.shape[-1]]
        to_inputs = self.passes.backward(own, None)
        to_inputs = to_inputs.view(self.seen)
        return (to_inputs if self.inputs is None else to_inputs.mul_(self.derivative)).view(self.shape)


def is_linear(module: nn.Module) -> bool:
    """Whether the module is W x + b and nothing more; a subclass of `nn.Linear` may compute anything.

    >>> is_linear(nn.Linear(2, 1)), is_linear(nn.Sequential(nn.Linear(2, 1)))
    (True, False)
    """
    return type(module) is nn.Linear
