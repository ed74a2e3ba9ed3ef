"""Heavy-ball and Nesterov steps, right also while the rate changes from step to step.

u ← βu − ηₜg,      θ ← θ + u   (heavy ball)      θ ← θ − ηₜg + βu   (Nesterov)

u is the move θₜ₊₁ − θₜ itself. `torch.optim.SGD` keeps Σ βᵏg and multiplies all of it by the newest rate, so that a
rate that falls also takes back speed that the ball already has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor

from .eager import Eager

__all__ = ["Momentum"]


class Momentum(Eager):
    """The move is kept, not the sum of gradients.

    >>> theta = torch.ones(1, requires_grad=True)
    >>> optimizer = Momentum([theta], lr=0.25, momentum=0.5)
    >>> theta.square().sum().backward()
    >>> optimizer.step()
    >>> theta.tolist()
    [0.5]
    """

    def __init__(self, parameters: Iterable[Tensor], lr: float, momentum: float, nesterov: bool = False) -> None:
        super().__init__(list(parameters), {"lr": lr, "momentum": momentum, "nesterov": nesterov})

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:  # type: ignore[override]
        """One step on the gradients at hand, or on those that the closure leaves; returns the closure's value."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            parameters = [p for p in group["params"] if p.grad is not None]
            if parameters:
                self._update(group, parameters)
        return loss

    def _update(self, group: dict[str, Any], parameters: list[Tensor]) -> None:
        gradients = [p.grad for p in parameters if p.grad is not None]
        moves = [self._move_of(p) for p in parameters]
        torch._foreach_mul_(moves, group["momentum"])
        torch._foreach_add_(moves, gradients, alpha=-group["lr"])
        if group["nesterov"]:
            torch._foreach_add_(parameters, gradients, alpha=-group["lr"])
            torch._foreach_add_(parameters, moves, alpha=group["momentum"])
        else:
            torch._foreach_add_(parameters, moves)

    def _move_of(self, parameter: Tensor) -> Tensor:
        state = self.state[parameter]
        if not state:
            state["move"] = torch.zeros_like(parameter)
        move: Tensor = state["move"]
        return move
