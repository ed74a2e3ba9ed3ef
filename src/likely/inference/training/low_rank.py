"""LowRank: frozen weights that learn by the product of two thin matrices.

    W' = W + scale · B A,      A (r, in) random, B (out, r) from 0

So training begins at W exactly, and has r·(in + out) numbers in place of in·out. A weight of more axes is a matrix over
its first one.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

from ...core.spec import Spec, is_integer, require

__all__ = ["LowRank", "adapt", "merged"]


class LowRank(Spec, axis="low_rank"):
    """Train a change of rank `rank` of each weight in place of the weight, times `scale`; see `FineTune`.

    >>> LowRank(4)
    LowRank(rank=4)
    """

    rank: int = 8
    scale: float = 1.0

    def validate(self) -> None:
        """A rank is 1 or more; a scale of 0 would learn nothing."""
        require(is_integer(self.rank), self, "rank", "a positive integer")
        require(self.scale > 0, self, "scale", "a positive number")


class Change(nn.Module):
    """W → W + scale · B A; names are those of what the two do: `down` is A, `up` is B."""

    def __init__(self, weight: Tensor, spec: LowRank) -> None:
        super().__init__()
        rows, columns = len(weight), weight[0].numel()
        self.scale = spec.scale
        self.down = nn.Parameter(torch.randn(spec.rank, columns, dtype=weight.dtype) * columns**-0.5)
        self.up = nn.Parameter(weight.new_zeros(rows, spec.rank))

    def forward(self, weight: Tensor) -> Tensor:
        return changed(weight, self.up, self.down, self.scale)


def changed(weight: Tensor, up: Tensor, down: Tensor, scale: float) -> Tensor:
    """W + scale · B A, of one weight or of those of several members.

    >>> changed(torch.ones(2, 3), torch.ones(2, 1), torch.ones(1, 3), 0.5)
    tensor([[1.5000, 1.5000, 1.5000],
            [1.5000, 1.5000, 1.5000]])
    """
    return weight + scale * (up @ down).reshape(weight.shape)


def adapt(module: nn.Module, names: list[str], spec: LowRank) -> None:
    """Let the parameters of these names learn by changes of low rank alone, inside the module."""
    for name in names:
        owner, _, leaf = name.rpartition(".")
        layer = module.get_submodule(owner)
        weight = getattr(layer, leaf)
        weight.requires_grad_(False)
        parametrize.register_parametrization(layer, leaf, Change(weight, spec))


def merged(plain: nn.Module, parameters: Mapping[str, Tensor], scale: float) -> dict[str, Tensor]:
    """Parameters (members, …) of an adapted module as those of a plain one: W' in the place of W, A and B."""
    merged_parameters = {}
    for name, _ in plain.named_parameters():
        owner, _, leaf = name.rpartition(".")
        inside = f"{owner}.parametrizations.{leaf}".lstrip(".")
        if name in parameters:
            merged_parameters[name] = parameters[name]
        else:
            weight, up, down = (parameters[f"{inside}.{part}"] for part in ("original", "0.up", "0.down"))
            merged_parameters[name] = changed(weight, up, down, scale)
    return merged_parameters
