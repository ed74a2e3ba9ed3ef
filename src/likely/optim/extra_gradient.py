"""Extra-gradient: look ahead, and step by the gradient found there. For games, where plain descent runs in circles.

    θₜ₊½ = θₜ − γF(θₜ),      θₜ₊₁ = θₜ − γF(θₜ₊½)

F is the field of all players' gradients, ∇f where there is only one. On the bilinear game min_x max_y xy, F(x, y) =
(y, −x) only turns: a plain step multiplies the distance to the solution by √(1 + γ²) > 1, an extra-gradient step by
√(1 − γ² + γ⁴) < 1. With `betas` both steps are scaled as Adam does (ExtraAdam: Gidel et al., 2019).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, ClassVar

import torch
from torch import Tensor

from ..core.errors import SpecError
from ..core.spec import require
from .adaptive import Adam
from .base import Optimizer, is_fraction, is_number
from .eager import Eager
from .sgd import SGD

__all__ = ["ExtraGradient"]


class ExtraGradient(Optimizer):
    """θ ← θ − γF(θ − γF(θ)), with γ the `lr`: two gradients for each step. `betas` scales both as Adam does.

    >>> theta = torch.ones(1, requires_grad=True)
    >>> optimizer = ExtraGradient(lr=0.25).build([theta])
    >>> def closure():
    ...     optimizer.zero_grad()
    ...     loss = theta.square().sum()
    ...     loss.backward()
    ...     return loss
    >>> optimizer.step(closure).item(), theta.item()  # 1 − 0.25·2·(1 − 0.25·2)
    (1.0, 0.75)
    """

    needs_closure: ClassVar[bool] = True
    looks_ahead: ClassVar[bool] = True

    lr: float = 0.01
    betas: tuple[float, float] | None = None
    eps: float = 1e-8

    def validate(self) -> None:
        super().validate()
        pair = isinstance(self.betas, tuple) and len(self.betas) == 2 and all(is_fraction(beta) for beta in self.betas)
        require(self.betas is None or pair, self, "betas", "None, or two numbers, each 0 or more and below 1")
        require(is_number(self.eps) and self.eps > 0, self, "eps", "a positive number")

    def _rule(self) -> Adam | SGD:
        """What turns a gradient into a step."""
        return SGD(self.lr) if self.betas is None else Adam(self.lr, self.betas, self.eps)

    def build(self, parameters: Iterable[Tensor]) -> _Extra:
        return _Extra(self._rule().build(list(parameters)))

    def reach(self, optimizer: torch.optim.Optimizer, parameter: Tensor) -> Tensor | float:
        return self._rule().reach(optimizer, parameter)


class _Extra(Eager):
    """Steps of another optimiser, twice: to look ahead, and from where it stood.

    A game lets all its players look ahead before any of them steps; so the halves can be had one by one.
    """

    def __init__(self, rule: torch.optim.Optimizer) -> None:
        self.rule = rule
        super().__init__(rule.param_groups, {})
        self._share()
        self.before: list[Tensor] | None = None

    def _share(self) -> None:
        self.param_groups, self.state = self.rule.param_groups, self.rule.state

    @torch.no_grad()
    def look_ahead(self) -> None:
        """θₜ → θₜ₊½ by the gradients at hand."""
        self.before = [parameter.clone() for parameter in self._parameters()]
        self.rule.step()

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:  # type: ignore[override]
        """θₜ → θₜ₊₁; gives the loss at θₜ. Without a closure, the gradients at hand are those of θₜ₊½."""
        loss = None
        if closure is not None:
            evaluate = torch.enable_grad()(closure)
            loss = evaluate()
            self.look_ahead()
            evaluate()
        if self.before is None:
            raise SpecError("ExtraGradient needs step(closure), or look_ahead() before step().")
        for parameter, origin in zip(self._parameters(), self.before, strict=True):
            parameter.copy_(origin)
        self.before = None
        self.rule.step()
        return loss

    def _parameters(self) -> list[Tensor]:
        return [parameter for group in self.param_groups for parameter in group["params"]]

    def state_dict(self) -> dict[str, Any]:
        """That of the steps: between two of them there is nothing else."""
        return self.rule.state_dict()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """The inverse of `state_dict`."""
        self.rule.load_state_dict(state_dict)
        self._share()
