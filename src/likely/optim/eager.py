"""Torch's optimisers without the compiler: the first use of a plain one imports it, which takes longer than many fits.

`torch.optim` tells the compiler to stay out of some methods, and to tell it, imports it. The methods themselves are
there without that wrapper, and are what a subclass made here calls. Torch's own classes stay as they are.
"""

from __future__ import annotations

import inspect
from typing import Any

import torch

__all__ = ["Eager", "eager"]


class Eager(torch.optim.Optimizer):
    """A base for optimisers, in place of `torch.optim.Optimizer`."""

    add_param_group: Any = inspect.unwrap(torch.optim.Optimizer.add_param_group)
    zero_grad: Any = inspect.unwrap(torch.optim.Optimizer.zero_grad)
    state_dict: Any = inspect.unwrap(torch.optim.Optimizer.state_dict)
    load_state_dict: Any = inspect.unwrap(torch.optim.Optimizer.load_state_dict)


def eager(kind: type[torch.optim.Optimizer]) -> type[Any]:
    """An optimiser of torch's with the same steps.

    >>> theta = torch.ones(1, requires_grad=True)
    >>> optimizer = eager(torch.optim.SGD)([theta], lr=0.25)
    >>> theta.square().sum().backward()
    >>> optimizer.step()
    >>> theta.tolist(), isinstance(optimizer, torch.optim.SGD)
    ([0.5], True)
    """
    if kind not in _KINDS:
        step = torch.no_grad()(inspect.unwrap(kind.step))
        body = {"step": step, "__doc__": kind.__doc__, "__module__": kind.__module__}
        _KINDS[kind] = type(kind.__name__, (Eager, kind), body)
    return _KINDS[kind]


_KINDS: dict[type[torch.optim.Optimizer], type[Any]] = {}  # one class for each of torch's, so that their types agree
