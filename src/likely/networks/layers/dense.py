"""Dense networks by hand: both passes as matrix products into memory made once, without automatic differentiation.

    zₗ = hₗ₋₁ Wₗᵀ + bₗ,    hₗ = φ(zₗ)                              forward
    ∂/∂Wₗ = Gₗᵀ hₗ₋₁,    ∂/∂bₗ = Σ_rows Gₗ,    Gₗ₋₁ = (Gₗ Wₗ) ⊙ φ′(zₗ₋₁)      backward, from G_L = ∂/∂z_L

Several members of an ensemble are a leading axis of everything, and each product is a batched one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from .activation import Erf, Sine
from .dropout import Dropout, mask_like
from .products import onednn_affine, rows_for_onednn

__all__ = ["DensePasses", "Passes", "dense_layers"]

KEPT = 4
"""Sizes of batches whose memory is kept: an epoch has two, its last batch being smaller."""

NARROW = 16
"""Outputs below which a product is stored column by column: MKL is up to three times as fast at that."""

PARTS = (nn.Linear, Dropout)
"""Layers besides activations."""

aten = torch.ops.aten


class Passes(Protocol):
    """What a module may offer to training: its output, and the gradient of its parameters given that of the output.

    Numbers of the output that are the same for all rows come apart, with axes of length 1 for what they do not depend
    on.
    """

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor | None]:
        """The output of a batch in training mode, and its numbers that all rows share."""

    def backward(self, gradient: Tensor, of_shared: Tensor | None) -> Tensor:
        """Write the gradients of all parameters, from ∂/∂output of the batch that went forward last.

        What it gives back is what the last layer on the way would pass on.
        """


@dataclass(frozen=True)
class Elementwise:
    """φ and the product with φ′; `of_output` says that φ may overwrite z, since φ′ is known from φ(z)."""

    forward: Callable[[Any, Tensor], Tensor]
    backward: Callable[[Any, Tensor, Tensor], Tensor]
    of_output: bool = False


ELEMENTWISE: dict[type[nn.Module], Elementwise] = {
    nn.Identity: Elementwise(lambda _, z: z, lambda _, g, z: g, True),
    nn.ReLU: Elementwise(lambda _, z: z.relu_(), lambda _, g, h: g.mul_(h.sign_()), True),
    nn.Tanh: Elementwise(
        lambda _, z: z.tanh_(), lambda _, g, h: aten.tanh_backward.grad_input(g, h, grad_input=g), True
    ),
    nn.Sigmoid: Elementwise(
        lambda _, z: z.sigmoid_(), lambda _, g, h: aten.sigmoid_backward.grad_input(g, h, grad_input=g), True
    ),
    nn.LeakyReLU: Elementwise(
        lambda layer, z: nn.functional.leaky_relu(z, layer.negative_slope),
        lambda layer, g, z: aten.leaky_relu_backward(g, z, layer.negative_slope, False),
    ),
    nn.ELU: Elementwise(
        lambda layer, z: nn.functional.elu(z, layer.alpha),
        lambda layer, g, z: aten.elu_backward(g, layer.alpha, 1, 1, False, z),
    ),
    nn.SELU: Elementwise(
        lambda _, z: torch.selu(z),
        lambda _, g, z: aten.elu_backward(g, 1.6732632423543772848, 1.0507009873554804935, 1, False, z),
    ),
    nn.GELU: Elementwise(
        lambda layer, z: nn.functional.gelu(z, approximate=layer.approximate),
        lambda layer, g, z: aten.gelu_backward(g, z, approximate=layer.approximate),
    ),
    nn.SiLU: Elementwise(lambda _, z: nn.functional.silu(z), lambda _, g, z: aten.silu_backward(g, z)),
    nn.Mish: Elementwise(lambda _, z: nn.functional.mish(z), lambda _, g, z: aten.mish_backward(g, z)),
    nn.Softplus: Elementwise(
        lambda layer, z: nn.functional.softplus(z, layer.beta, layer.threshold),
        lambda layer, g, z: aten.softplus_backward(g, z, layer.beta, layer.threshold),
    ),
    nn.Softsign: Elementwise(lambda _, z: nn.functional.softsign(z), lambda _, g, z: g / z.abs().add_(1).square_()),
    Sine: Elementwise(lambda _, z: z.sin(), lambda _, g, z: g * z.cos()),
    Erf: Elementwise(lambda _, z: z.erf(), lambda _, g, z: g * z.square().neg_().exp_().mul_(2 / math.sqrt(math.pi))),
}
"""Activations whose derivative is written out (by torch's own kernels, where it has one)."""


def dense_layers(network: nn.Module) -> list[tuple[str, nn.Module]] | None:
    """The layers of a plain dense network with the prefixes of their parameters' names; None for another network.

    A subclass of a layer, or one with hooks, may compute anything; layers that share weights have one gradient.

    >>> [name for name, _ in dense_layers(nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2)))]
    ['0.', '1.', '2.']
    >>> dense_layers(nn.Sequential(nn.Conv1d(3, 4, 1)))
    """
    if type(network) is nn.Linear:
        layers: list[tuple[str, nn.Module]] = [("", network)]
    elif type(network) is nn.Sequential and not _hooked(network):
        layers = [(f"{name}.", layer) for name, layer in network._modules.items() if layer is not None]
    else:
        return None
    plain = all((type(layer) in PARTS or type(layer) in ELEMENTWISE) and not _hooked(layer) for _, layer in layers)
    own = {name for name, _ in network.named_parameters()}  # each once, under its first name
    parts = {
        f"{name}{part}" for name, layer in layers for part, value in layer._parameters.items() if value is not None
    }
    return layers if plain and parts and parts <= own else None


def _hooked(layer: nn.Module) -> bool:
    return bool(layer._forward_hooks or layer._forward_pre_hooks or layer._backward_hooks or layer._backward_pre_hooks)


class DensePasses:
    """Both passes of a plain dense network over parameters and gradients that stay where they are in memory.

    `parameters` and `gradients` are tensors by name, with a leading axis of members if `stacked`; a parameter without
    a gradient is not trained. With `to_inputs`, the way back goes on to the inputs, whose gradient it returns.

    >>> network = nn.Sequential(nn.Linear(1, 2), nn.Tanh(), nn.Linear(2, 1))
    >>> parameters = {name: value.detach() for name, value in network.named_parameters()}
    >>> gradients = {name: torch.zeros_like(value) for name, value in parameters.items()}
    >>> passes = DensePasses(dense_layers(network), parameters, gradients)
    >>> eta = passes.forward(torch.ones(3, 1))
    >>> passes.backward(torch.ones(3, 1)).shape
    torch.Size([3, 2])
    >>> gradients["2.bias"]
    tensor([3.])
    """

    def __init__(
        self,
        layers: list[tuple[str, nn.Module]],
        parameters: Mapping[str, Tensor],
        gradients: Mapping[str, Tensor],
        stacked: bool = False,
        to_inputs: bool = False,
    ) -> None:
        self._steps: list[_Affine | _Activation | _Dropout] = []
        self._trained: list[_Affine | _Activation | _Dropout] = []  # from the first trained layer on: on the way back
        for name, layer in layers:
            step: _Affine | _Activation | _Dropout
            if isinstance(layer, nn.Linear):
                step = _Affine(name, parameters, gradients, stacked, first=not to_inputs and not self._trained)
            elif isinstance(layer, Dropout):
                step = _Dropout(layer)
            else:
                step = _Activation(layer, fresh=bool(self._steps) and isinstance(self._steps[-1], _Affine))
            self._steps.append(step)
            if to_inputs or self._trained or (isinstance(step, _Affine) and step.trained):
                self._trained.append(step)
        self._trained.reverse()
        self._rows = 2 if stacked else 1
        self.fresh = isinstance(self._steps[-1], _Affine)
        """Whether the way back does not need the output, so that it may be overwritten."""

    def forward(self, x: Tensor) -> Tensor:
        """The output (…, size) of inputs (…, features), with (members, …, features) where members are stacked."""
        shape = x.shape
        h = x if x.ndim == self._rows + 1 else x.flatten(self._rows - 1, -2)
        for step in self._steps:
            h = step.forward(h)
        return h if x.ndim == self._rows + 1 else h.view(*shape[:-1], h.shape[-1])

    def backward(self, gradient: Tensor) -> Tensor:
        """Write the gradients of the parameters; `gradient` is that of the output, and may be overwritten.

        What is returned belongs to the last layer on the way, in memory that the next call uses again.
        """
        g = gradient if gradient.ndim == self._rows + 1 else gradient.flatten(self._rows - 1, -2)
        for step in self._trained:
            g = step.backward(g)
        return g


class _Affine:
    """z = h Wᵀ + b. The first trained one passes nothing on, on the way back."""

    def __init__(
        self,
        name: str,
        parameters: Mapping[str, Tensor],
        gradients: Mapping[str, Tensor],
        stacked: bool,
        first: bool,
    ) -> None:
        self.weight, bias = parameters[f"{name}weight"], parameters.get(f"{name}bias")
        self.transposed = self.weight.mT
        self.bias = bias if bias is None or not stacked else bias.unsqueeze(1)
        self.to_weight, self.to_bias = gradients.get(f"{name}weight"), gradients.get(f"{name}bias")
        self.trained = self.to_weight is not None or self.to_bias is not None
        self.first = first and self.trained
        self.affine: Callable[..., Tensor] = torch.baddbmm if stacked else torch.addmm
        self.product: Callable[..., Tensor] = torch.bmm if stacked else torch.mm
        self.memory: dict[torch.Size, tuple[Tensor, Tensor | None]] = {}
        self.enough = rows_for_onednn(self.weight)

    def forward(self, h: Tensor) -> Tensor:
        self.h = h
        self.by_onednn = h.shape[-2] >= self.enough
        if self.by_onednn:
            return onednn_affine(h, self.weight, self.bias)
        z, self.back = self.memory.get(h.shape) or self.memory_of(h)
        if self.bias is None:
            return self.product(h, self.transposed, out=z)
        return self.affine(self.bias, h, self.transposed, out=z)

    def backward(self, g: Tensor) -> Tensor:
        if self.to_weight is not None:
            if self.by_onednn:
                self.to_weight.copy_(onednn_affine(g.mT, self.h.mT))
            else:
                self.product(g.mT, self.h, out=self.to_weight)
        if self.to_bias is not None:
            torch.sum(g, -2, out=self.to_bias)
        if self.first:
            return g
        return onednn_affine(g, self.transposed) if self.by_onednn else self.product(g, self.weight, out=self.back)

    def memory_of(self, h: Tensor) -> tuple[Tensor, Tensor | None]:
        """New memory for z, and for the gradient that is passed on."""
        if len(self.memory) >= KEPT:
            self.memory.clear()
        rows, units = h.shape[-2], self.weight.shape[-2]
        lead = h.shape[:-2]
        z = h.new_empty(*lead, units, rows).mT if units < NARROW else h.new_empty(*lead, rows, units)
        self.memory[h.shape] = z, None if self.first else torch.empty_like(h)
        return self.memory[h.shape]


class _Activation:
    """h = φ(z), in place of a `fresh` z where that is not needed any more."""

    def __init__(self, layer: nn.Module, fresh: bool) -> None:
        self.layer, self.rule = layer, ELEMENTWISE[type(layer)]
        self.copies = self.rule.of_output and not fresh

    def forward(self, z: Tensor) -> Tensor:
        h = self.rule.forward(self.layer, z.clone() if self.copies else z)
        self.kept = h if self.rule.of_output else z
        return h

    def backward(self, g: Tensor) -> Tensor:
        return self.rule.backward(self.layer, g, self.kept)


class _Dropout:
    """h ⊙ mask / (1 − p)."""

    def __init__(self, layer: Dropout) -> None:
        self.p = layer.p

    def forward(self, h: Tensor) -> Tensor:
        self.mask = mask_like(h, self.p)
        return h * self.mask

    def backward(self, g: Tensor) -> Tensor:
        return g.mul_(self.mask)
