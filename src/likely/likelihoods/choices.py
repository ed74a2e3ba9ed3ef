"""A positive parameter is known (a number), learned (one for all inputs) or an output of the network ("input").

Its logarithm stands in η after the numbers of the location: first the network's outputs, then the learned constants.
"""

from __future__ import annotations

import math
from typing import Literal

import torch
from torch import Tensor

from ..core.spec import Spec, require

__all__ = ["Choice", "arrange", "columns", "free", "learned", "logarithms", "require_choice", "scores", "within"]

Choice = float | Literal["learned", "input"]


def require_choice(spec: Spec, name: str) -> None:
    """Raise a `SpecError` unless this argument is "learned", "input" or a positive number."""
    value = getattr(spec, name)
    number = isinstance(value, int | float) and not isinstance(value, bool)
    known = value in ("learned", "input") if isinstance(value, str) else number and 0 < value < math.inf
    require(known, spec, name, '"learned", "input" or a positive number')


def free(*choices: Choice) -> int:
    """How many of the parameters are not known.

    >>> free("learned", 2.0)
    1
    """
    return sum(isinstance(choice, str) for choice in choices)


def learned(*choices: Choice) -> int:
    """How many of them are learned constants.

    >>> learned("learned", "input")
    1
    """
    return choices.count("learned")


def columns(first: int, *choices: Choice) -> list[int | None]:
    """Where each parameter stands in η, whose numbers before `first` are taken; None where it is known.

    >>> columns(1, "learned", "input", 2.0)
    [2, 1, None]
    """
    order = [i for word in ("input", "learned") for i, choice in enumerate(choices) if choice == word]
    return [first + order.index(i) if i in order else None for i in range(len(choices))]


def logarithms(eta: Tensor, first: int, *choices: Choice) -> list[Tensor]:
    """The logarithm of each parameter: a column of η, or a constant.

    >>> logarithms(torch.tensor([0.0, 0.5]), 1, "learned", 1.0)
    [tensor(0.5000), tensor(0.)]
    """
    where = zip(columns(first, *choices), choices, strict=True)
    return [_constant(eta, choice) if column is None else eta[..., column] for column, choice in where]


def arrange(location: list[Tensor], values: list[Tensor], *choices: Choice) -> Tensor:
    """η from the numbers of the location and the logarithms of all parameters, of which the known are left out.

    >>> arrange([torch.tensor(1.0)], [torch.tensor(2.0), torch.tensor(3.0)], "learned", "input")
    tensor([1., 3., 2.])
    """
    slots = list(location) + [location[0]] * free(*choices)
    for column, value in zip(columns(len(location), *choices), values, strict=True):
        if column is not None:
            slots[column] = value
    return torch.stack(slots, -1)


def scores(location: list[Tensor], values: list[Tensor], *choices: Choice) -> Tensor:
    """`arrange` of derivatives, whose axes of length 1 are stretched; those of known parameters are left out.

    >>> scores([torch.zeros(3)], [torch.ones(1)], "learned").shape
    torch.Size([3, 2])
    """
    shape = torch.broadcast_shapes(*(part.shape for part in (*location, *values)))
    return arrange([part.expand(shape) for part in location], [part.expand(shape) for part in values], *choices)


def within(value: Tensor, limited: Tensor, derivative: Tensor) -> Tensor:
    """The derivative, or 0 where the value is beyond its limit and the density constant in it."""
    return torch.where(limited == value, derivative, 0.0)


def _constant(eta: Tensor, choice: Choice) -> Tensor:
    return torch.full((), math.log(float(choice)), dtype=eta.dtype, device=eta.device)
