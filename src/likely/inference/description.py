"""What is known of a module without building it again: names and shapes of parameters, whether it is linear."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn

__all__ = ["Description"]


@dataclass(frozen=True)
class Description:
    """The parts of a module that inferences ask about before they train it.

    >>> description = Description.of(nn.Linear(3, 2))
    >>> description.size, description.trainable
    (8, ('weight', 'bias'))
    """

    shapes: Mapping[str, tuple[int, ...]]
    """Of all parameters, by name."""
    trainable: tuple[str, ...]
    """The names of those that are not frozen."""
    linear: bool
    """Whether η is W x + b and nothing more."""
    text: str
    """The module in words, for fingerprints."""
    settles: bool = False
    """Whether some layers keep statistics of the rows, which a change of θ makes stale."""

    @classmethod
    def of(cls, module: nn.Module) -> Description:
        """That of a module."""
        named = dict(module.named_parameters())
        return cls(
            {name: tuple(value.shape) for name, value in named.items()},
            tuple(name for name, value in named.items() if value.requires_grad),
            getattr(module, "linear", None) is not None,
            " ".join(repr(module).split()),
            any(getattr(layer, "track_running_stats", False) for layer in module.modules()),
        )

    @property
    def size(self) -> int:
        """The number of entries of θ, frozen ones included."""
        return sum(math.prod(shape) for shape in self.shapes.values())

    def like(self, name: str) -> Tensor:
        """A tensor of the shape of a parameter that takes no memory: what a prior looks at to say its rates."""
        return torch.zeros(()).expand(self.shapes[name])
