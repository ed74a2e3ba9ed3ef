"""Gradient descent on the whole data, with a line search: θ ← θ − t·η∇f(θ), t found along the way."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, ClassVar

import torch
from torch import Tensor

from ..core.errors import SpecError
from ..core.spec import require
from .base import Optimizer
from .eager import Eager
from .line_search import Armijo, LineSearch

__all__ = ["GradientDescent"]


class GradientDescent(Optimizer):
    """Full-batch descent. With a line search, `lr` scales the direction −η∇f that is searched along.

    Then `step(closure)` leaves the gradients of the new parameters in `.grad`, and the step t in `.step_size`: 0 means
    that no step made the loss fall by enough, and the parameters are as before.

    >>> theta = torch.ones(1, requires_grad=True)
    >>> optimizer = GradientDescent().build([theta])
    >>> def closure():
    ...     optimizer.zero_grad()
    ...     loss = theta.square().sum()
    ...     loss.backward()
    ...     return loss
    >>> optimizer.step(closure).item(), theta.item(), optimizer.step_size
    (1.0, 0.0, 0.5)
    """

    elementwise: ClassVar[bool] = False
    needs_closure: ClassVar[bool] = True

    lr: float = 1.0
    line_search: LineSearch | None = Armijo()

    def validate(self) -> None:
        super().validate()
        known = self.line_search is None or isinstance(self.line_search, LineSearch)
        require(known, self, "line_search", "None or a line search such as Armijo()")

    def build(self, parameters: Iterable[Tensor]) -> _Descent:
        return _Descent(parameters, self.lr, self.line_search)


class _Descent(Eager):
    """The torch optimiser of `GradientDescent`."""

    def __init__(self, parameters: Iterable[Tensor], lr: float, line_search: LineSearch | None) -> None:
        super().__init__(parameters, {"lr": lr})
        self.line_search = line_search
        self.step_size = 0.0

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Tensor:  # type: ignore[override]
        """One step; gives the loss before it. The closure clears gradients, computes the loss and calls backward."""
        if closure is None:
            raise SpecError("GradientDescent needs step(closure), where closure evaluates the loss and its gradients.")
        evaluate = torch.enable_grad()(closure)
        loss = evaluate()
        moved = [(p, group["lr"]) for group in self.param_groups for p in group["params"] if p.grad is not None]
        parameters = [p for p, _ in moved]
        start = [p.clone() for p in parameters]
        gradients = [p.grad.clone() for p in parameters]
        directions = [gradient * -lr for gradient, (_, lr) in zip(gradients, moved, strict=True)]

        if self.line_search is None:
            for parameter, direction in zip(parameters, directions, strict=True):
                parameter.add_(direction)
            self.step_size = 1.0
            return loss

        def along(step: float) -> float:
            for parameter, origin, direction in zip(parameters, start, directions, strict=True):
                parameter.copy_(torch.add(origin, direction, alpha=step))
            return float(evaluate())

        derivative = sum((g * d).sum().item() for g, d in zip(gradients, directions, strict=True))
        self.step_size = self.line_search.search(along, float(loss), derivative)
        if self.step_size == 0:
            for parameter, origin, gradient in zip(parameters, start, gradients, strict=True):
                parameter.copy_(origin)
                parameter.grad = gradient
        return loss
