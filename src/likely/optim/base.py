"""What an optimiser is: a rule that turns gradients into steps. A spec that builds a `torch.optim.Optimizer`."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor

from ..core.spec import Spec, require
from .eager import eager

__all__ = ["Optimizer"]


class Optimizer(Spec, axis="optimizer"):
    """Builds the torch optimiser of some parameters. `lr` is η, the step size that a schedule multiplies."""

    elementwise: ClassVar[bool] = True
    """Whether the update acts on every number by itself, so that stacked members of an ensemble can share it."""
    needs_closure: ClassVar[bool] = False
    """Whether `step` needs a closure that evaluates the loss and its gradients anew."""
    looks_ahead: ClassVar[bool] = False
    """Whether a step is by the gradients at a point ahead: then `look_ahead()` goes there, and `step()` steps."""

    lr: float = 0.01

    def validate(self) -> None:
        require(is_number(self.lr) and self.lr > 0, self, "lr", "a positive number")

    def build(self, parameters: Iterable[Tensor]) -> torch.optim.Optimizer:
        """A new optimiser of these parameters, with no memory of earlier steps."""
        raise NotImplementedError(f"{type(self).__name__} must build its optimiser")

    def reach(self, optimizer: torch.optim.Optimizer, parameter: Tensor) -> Tensor | float:
        """How far a lasting unit gradient moves each number in one step: by what a proximal step shrinks it.

        θ is at rest under g + λ·sign(θ) = 0 only if the soft threshold λ·reach undoes the step −reach·g.
        """
        return _rate(optimizer, parameter)


def _rate(optimizer: torch.optim.Optimizer, parameter: Tensor) -> float:
    for group in optimizer.param_groups:
        if any(own is parameter for own in group["params"]):
            return float(group["lr"])
    raise KeyError("the optimiser does not hold this parameter")


def is_number(value: Any) -> bool:
    """A finite real number."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def is_fraction(value: Any) -> bool:
    """A number in [0, 1)."""
    return is_number(value) and 0 <= value < 1


def is_count(value: Any) -> bool:
    """An integer, 1 or more."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def build_fused(
    kind: type[torch.optim.Optimizer], parameters: Iterable[Tensor], **options: Any
) -> torch.optim.Optimizer:
    """The torch optimiser, as one fused kernel over all parameters where that gives the right numbers.

    Fused kernels read memory in order: with a transposed or expanded parameter or gradient they step wrongly without
    a word. So they are only used for contiguous parameters, and gradients are made contiguous before each step.
    """
    tensors = list(parameters)
    fused = fusable(tensors)
    optimizer: torch.optim.Optimizer = eager(kind)(tensors, fused=fused, **options)
    if fused:
        optimizer.register_step_pre_hook(_make_gradients_contiguous)
    return optimizer


def fusable(parameters: Sequence[Tensor]) -> bool:
    """Whether fused kernels give the right numbers for these parameters."""
    devices = {parameter.device.type for parameter in parameters}
    plain = all(parameter.is_floating_point() and parameter.is_contiguous() for parameter in parameters)
    return plain and devices in ({"cpu"}, {"cuda"})


def _make_gradients_contiguous(optimizer: torch.optim.Optimizer, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            gradient = parameter.grad
            if gradient is not None and not gradient.is_contiguous():
                parameter.grad = gradient.contiguous()
