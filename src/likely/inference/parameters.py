"""Parameters as one flat vector and by name: samplers and solvers move the first, modules take the second.

θ = (θ₁, …, θ_d)   ↔   {name: tensor of its shape},      in the order in which the module names them
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn

__all__ = ["FlatParameters", "OverMembers", "stacked"]


@dataclass(frozen=True)
class FlatParameters:
    """The names and shapes of some parameters, in order: what it takes to go from flat to named and back.

    >>> layer = nn.Linear(2, 3)
    >>> flat = FlatParameters.trainable(layer)
    >>> flat.size, flat.flat(dict(layer.named_parameters())).shape
    (9, torch.Size([9]))
    >>> {name: tuple(value.shape) for name, value in flat.named(torch.zeros(5, 9)).items()}  # five vectors
    {'weight': (5, 3, 2), 'bias': (5, 3)}
    """

    shapes: Mapping[str, tuple[int, ...]]

    @classmethod
    def of(cls, named: Mapping[str, Tensor]) -> FlatParameters:
        """Those of these tensors."""
        return cls({name: tuple(value.shape) for name, value in named.items()})

    @classmethod
    def trainable(cls, module: nn.Module) -> FlatParameters:
        """Those that the module learns: frozen ones are left out."""
        return cls.of({name: value for name, value in module.named_parameters() if value.requires_grad})

    @property
    def size(self) -> int:
        """The number of entries, d."""
        return sum(self.sizes)

    @property
    def sizes(self) -> list[int]:
        """The number of entries of each parameter."""
        return [math.prod(shape) for shape in self.shapes.values()]

    def named(self, theta: Tensor) -> dict[str, Tensor]:
        """Flat vectors (…, d) as named parameters (…, *shape): views where the memory allows it."""
        pieces = zip(self.shapes.items(), theta.split(self.sizes, -1), strict=True)
        return {name: piece.reshape(*theta.shape[:-1], *shape) for (name, shape), piece in pieces}

    def flat(self, named: Mapping[str, Tensor]) -> Tensor:
        """Named parameters (…, *shape) as flat vectors (…, d); other names are passed over."""
        parts = []
        for name, shape in self.shapes.items():
            value = named[name].detach()
            parts.append(value.reshape(*value.shape[: value.ndim - len(shape)], -1))
        return torch.cat(parts, -1) if parts else torch.zeros(0)

    def spread_out(self, number: Callable[[str], float], like: Tensor) -> Tensor:
        """One number per parameter, such as its rate of decay, given to each of its entries: (d,)."""
        values = [number(name) for name in self.shapes]
        return torch.cat([like.new_full((size,), value) for size, value in zip(self.sizes, values, strict=True)])

    def labels(self) -> list[str]:
        """A name for each of the d entries.

        >>> FlatParameters({"weight": (1, 2), "bias": (1,)}).labels()
        ['weight[0]', 'weight[1]', 'bias[0]']
        """
        pairs = zip(self.shapes, self.sizes, strict=True)
        return [f"{name}[{index}]" for name, size in pairs for index in range(size)]


class OverMembers:
    """`one` of every member: vectorised, or one by one from the first time that it cannot be.

    >>> OverMembers()(lambda own: own["bias"].sum(), {"bias": torch.ones(2, 3)})
    tensor([3., 3.])
    """

    def __init__(self) -> None:
        self.vectorised = True

    def __call__(self, one: Callable[[Mapping[str, Tensor]], Tensor], parameters: Mapping[str, Tensor]) -> Tensor:
        if self.vectorised:
            try:
                return torch.vmap(one)(parameters)
            except RuntimeError:
                self.vectorised = False
        members = len(next(iter(parameters.values())))
        return torch.stack([one({name: value[m] for name, value in parameters.items()}) for m in range(members)])


def stacked(module: nn.Module, drawn: Mapping[str, Tensor], count: int) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Parameters and buffers of `count` members (count, …): those drawn, and the module's own, the same in all.

    >>> layer = nn.Linear(2, 3)
    >>> parameters, _ = stacked(layer, {"bias": torch.zeros(4, 3)}, 4)
    >>> {name: tuple(value.shape) for name, value in parameters.items()}
    {'weight': (4, 3, 2), 'bias': (4, 3)}
    """

    def same(value: Tensor) -> Tensor:
        return value.detach().expand(count, *value.shape)

    parameters = {n: drawn[n] if n in drawn else same(value) for n, value in module.named_parameters()}
    return parameters, {name: same(value) for name, value in module.named_buffers()}
