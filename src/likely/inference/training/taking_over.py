"""What one network can take over from another: the parameters and buffers whose names and shapes agree.

Tables of vectors, of tokens or of positions, need not be of one length: the rows that both have are taken over. What
makes η (the last layer, offset and unit of the targets) is taken over only if all agrees, so that η means the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ...networks.layers.positions import LearnedPositions
from ...networks.layers.steps import Embedding

__all__ = ["Taken", "head_of", "take_over"]

TABLES = (Embedding, LearnedPositions, nn.Embedding)
OF_TARGETS = ("offset", "unit")
"""Buffers of the units of targets; those of inputs go together."""
INPUTS = "inputs."


@dataclass(frozen=True)
class Taken:
    """The names of parameters that were taken over whole, those that are new, and those whose shapes did not agree."""

    whole: tuple[str, ...]
    new: tuple[str, ...]
    other: Mapping[str, tuple[int, ...]]
    """Of names that both have, the shape that the start has."""


@torch.no_grad()
def take_over(module: nn.Module, parameters: Mapping[str, Tensor], buffers: Mapping[str, Tensor]) -> Taken:
    """Copy into a module what agrees with these.

    >>> first, second = (nn.Sequential(nn.Linear(3, 4), nn.Linear(4, out)) for out in (2, 5))
    >>> taken = take_over(second, dict(first.named_parameters()), {})
    >>> taken.whole, taken.new
    (('0.weight', '0.bias'), ('1.weight', '1.bias'))
    """
    whole, new, other = [], [], {}
    tables = _tables(module)
    own = dict(module.named_parameters())
    alike = {n: v.shape for n, v in own.items()} == {n: v.shape for n, v in parameters.items()}
    head = set() if alike else head_of(module)
    for name, value in own.items():
        given = parameters.get(name)
        if name in head:
            new.append(name)
        elif given is not None and given.shape == value.shape:
            value.copy_(given)
            whole.append(name)
        elif given is not None and name in tables and given.shape[1:] == value.shape[1:]:
            rows = min(len(given), len(value))
            value[:rows] = given[:rows].to(value)
            (whole if rows == len(value) else new).append(name)
        else:
            new.append(name)
            if given is not None:
                other[name] = tuple(given.shape)
    here = dict(module.named_buffers())
    agreeing = {n for n, value in here.items() if n in buffers and buffers[n].shape == value.shape}
    parts = {n for n in {*here, *buffers} if n.startswith(INPUTS)}
    left = set() if parts <= agreeing else parts
    left |= set() if alike else set(OF_TARGETS)
    for name in agreeing - left:
        here[name].copy_(buffers[name])
    return Taken(tuple(whole), tuple(new), other)


def head_of(module: nn.Module) -> set[str]:
    """The names of the parameters of the last layer, and of constants of η beside the network.

    >>> sorted(head_of(nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))))
    ['2.bias', '2.weight']
    """
    own = dict(module.named_parameters())
    last = next(reversed(own), "").rpartition(".")[0]
    layer = {name for name in own if name.rpartition(".")[0] == last}
    if all(own[name].ndim < 2 for name in layer):  # a norm: such a network reads η by something that it has elsewhere
        layer = set()
    return layer | {name for name in own if "." not in name}


def adaptable(module: nn.Module) -> list[str]:
    """The names of parameters that are maps, with two axes or more: no biases, gains and tables."""
    tables = _tables(module)
    return [name for name, value in module.named_parameters() if value.ndim > 1 and name not in tables]


def _tables(module: nn.Module) -> set[str]:
    return {f"{name}.weight".lstrip(".") for name, layer in module.named_modules() if isinstance(layer, TABLES)}
