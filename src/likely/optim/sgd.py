"""Gradient steps on mini-batches, with and without momentum; η is `lr`, β is `momentum`, g the gradient at θ.

SGD        v ← βv + g,   θ ← θ − ηv                        (with Nesterov's: θ ← θ − η(g + βv))
HeavyBall  θₜ₊₁ = θₜ − ηₜg(θₜ) + β(θₜ − θₜ₋₁)
Nesterov   θ̃ₜ₊₁ = θₜ + β(θₜ − θₜ₋₁),   θₜ₊₁ = θ̃ₜ₊₁ − ηₜg(θ̃ₜ₊₁)

At a constant rate `HeavyBall` is `SGD` with momentum. Under a schedule they differ: `SGD` multiplies all of v by the
newest rate, the ball keeps the speed it has.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor

from ..core.spec import require
from .base import Optimizer, build_fused, is_fraction, is_number
from .momentum import Momentum

__all__ = ["SGD", "HeavyBall", "Nesterov"]


class SGD(Optimizer):
    """v ← βv + (g + μθ), θ ← θ − ηv, with v₀ = 0 and μ the `weight_decay`.

    >>> theta = torch.ones(1, requires_grad=True)
    >>> optimizer = SGD(lr=0.5).build([theta])
    >>> theta.square().sum().backward()
    >>> optimizer.step()
    >>> theta.tolist()
    [0.0]
    """

    lr: float = 0.01
    momentum: float = 0.0
    nesterov: bool = False
    weight_decay: float = 0.0

    def validate(self) -> None:
        super().validate()
        require(is_fraction(self.momentum), self, "momentum", "0 or more and below 1")
        require(isinstance(self.nesterov, bool), self, "nesterov", "True or False")
        require(not self.nesterov or self.momentum > 0, self, "nesterov", "False when momentum is 0")
        require(is_number(self.weight_decay) and self.weight_decay >= 0, self, "weight_decay", "0 or more")

    def build(self, parameters: Iterable[Tensor]) -> torch.optim.Optimizer:
        options = {"momentum": self.momentum, "nesterov": self.nesterov, "weight_decay": self.weight_decay}
        return build_fused(torch.optim.SGD, parameters, lr=self.lr, **options)

    def reach(self, optimizer: torch.optim.Optimizer, parameter: Tensor) -> Tensor | float:
        return _with_momentum(super().reach(optimizer, parameter), self.momentum)


class HeavyBall(Optimizer):
    """Polyak's momentum, θₜ₊₁ = θₜ − ηₜg(θₜ) + β(θₜ − θₜ₋₁): the step goes on as a rolling ball does.

    >>> HeavyBall(lr=0.1, momentum=0.5)
    HeavyBall(lr=0.1, momentum=0.5)
    """

    lr: float = 0.01
    momentum: float = 0.9

    def validate(self) -> None:
        super().validate()
        require(is_fraction(self.momentum), self, "momentum", "0 or more and below 1")

    def build(self, parameters: Iterable[Tensor]) -> torch.optim.Optimizer:
        return Momentum(parameters, lr=self.lr, momentum=self.momentum)

    def reach(self, optimizer: torch.optim.Optimizer, parameter: Tensor) -> Tensor | float:
        return _with_momentum(super().reach(optimizer, parameter), self.momentum)


class Nesterov(Optimizer):
    """Accelerated gradient: the gradient is taken at θ̃ₜ₊₁ = θₜ + β(θₜ − θₜ₋₁), where the ball is about to be.

    The parameters hold the points θ̃, at which losses and gradients are evaluated.

    >>> Nesterov(lr=0.1)
    Nesterov(lr=0.1)
    """

    lr: float = 0.01
    momentum: float = 0.9

    def validate(self) -> None:
        super().validate()
        require(is_fraction(self.momentum) and self.momentum > 0, self, "momentum", "above 0 and below 1")

    def build(self, parameters: Iterable[Tensor]) -> torch.optim.Optimizer:
        return Momentum(parameters, lr=self.lr, momentum=self.momentum, nesterov=True)

    def reach(self, optimizer: torch.optim.Optimizer, parameter: Tensor) -> Tensor | float:
        return _with_momentum(super().reach(optimizer, parameter), self.momentum)


def _with_momentum(rate: Tensor | float, momentum: float) -> Tensor | float:
    """A constant gradient is added up to g / (1 − β)."""
    return rate / (1 - momentum)
