"""Modules for several threads: each call gets one that no other call uses, with the same tensors.

`torch.func.functional_call` swaps parameters into the module for as long as the call lasts, and hooks are put on it:
two threads with one module would see each other's. A twin has layers of its own, and shares every tensor.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager

from torch import nn

__all__ = ["Twins", "twin"]


def twin(module: nn.Module) -> nn.Module:
    """A copy of the module that shares its parameters and buffers.

    >>> module = nn.Linear(2, 1)
    >>> twin(module) is module, twin(module).weight is module.weight
    (False, True)
    """
    shared = [*module.parameters(), *module.buffers()]
    return copy.deepcopy(module, {id(tensor): tensor for tensor in shared})


class Twins:
    """Lends twins of a module, one to a caller at a time; as many are made as callers ask at once.

    >>> twins = Twins(nn.Linear(2, 1))
    >>> with twins.lent() as first, twins.lent() as second:
    ...     first is second, first.weight is second.weight
    (False, True)
    """

    def __init__(self, module: nn.Module) -> None:
        self.module = module
        self._idle: list[nn.Module] = []

    @contextmanager
    def lent(self) -> Iterator[nn.Module]:
        """A module for this call alone."""
        try:
            own = self._idle.pop()  # a list's pop and append are atomic
        except IndexError:
            own = twin(self.module)
        try:
            yield own
        finally:
            self._idle.append(own)

    def __getstate__(self) -> dict[str, object]:
        return {"module": self.module, "_idle": []}
