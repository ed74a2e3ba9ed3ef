"""Steps that adapt to each number: large gradients in the past make small steps. η is `lr`, g the gradient.

AdaGrad  ν ← ν + g²               θ ← θ − ηg/(√ν + ε)
RMSprop  ν ← αν + (1 − α)g²       θ ← θ − ηg/(√ν + ε)
Adam     m ← β₁m + (1 − β₁)g,  ν ← β₂ν + (1 − β₂)g²,  θ ← θ − η·m̂/(√ν̂ + ε),  m̂ = m/(1 − β₁ᵗ), ν̂ = ν/(1 − β₂ᵗ)
AdamW    θ ← θ − ηλθ, then Adam
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor

from ..core.spec import require
from .base import (
    Optimizer,
    build_fused,
    fusable,
    is_fraction,
    is_number,
)
from .eager import eager
from .fused import FusedAdam

__all__ = ["AdaGrad", "Adam", "AdamW", "RMSprop"]


class AdaGrad(Optimizer):
    """ν ← ν + g², θ ← θ − ηg/(√ν + ε): the steps of each number shrink with all its gradients so far.

    >>> AdaGrad(lr=0.1)
    AdaGrad(lr=0.1)
    """

    lr: float = 0.01
    eps: float = 1e-10

    def validate(self) -> None:
        super().validate()
        _require_eps(self)

    def build(self, parameters: Iterable[Tensor]) -> torch.optim.Optimizer:
        return build_fused(torch.optim.Adagrad, parameters, lr=self.lr, eps=self.eps)

    def reach(self, optimizer: torch.optim.Optimizer, parameter: Tensor) -> Tensor | float:
        return super().reach(optimizer, parameter) / (optimizer.state[parameter]["sum"].sqrt() + self.eps)


class RMSprop(Optimizer):
    """ν ← αν + (1 − α)g², θ ← θ − ηg/(√ν + ε), with α the `decay`: AdaGrad that forgets.

    >>> RMSprop(decay=0.9)
    RMSprop(decay=0.9)
    """

    lr: float = 0.01
    decay: float = 0.99
    eps: float = 1e-8

    def validate(self) -> None:
        super().validate()
        require(is_fraction(self.decay), self, "decay", "0 or more and below 1")
        _require_eps(self)

    def build(self, parameters: Iterable[Tensor]) -> torch.optim.Optimizer:
        return eager(torch.optim.RMSprop)(list(parameters), lr=self.lr, alpha=self.decay, eps=self.eps, foreach=True)

    def reach(self, optimizer: torch.optim.Optimizer, parameter: Tensor) -> Tensor | float:
        return super().reach(optimizer, parameter) / (optimizer.state[parameter]["square_avg"].sqrt() + self.eps)


class Adam(Optimizer):
    """Momentum and RMSprop, both corrected for their start at 0.

    >>> theta = torch.ones(1, requires_grad=True)
    >>> optimizer = Adam(lr=0.25).build([theta])
    >>> theta.square().sum().backward()
    >>> optimizer.step()
    >>> theta.tolist()
    [0.75]
    """

    lr: float = 1e-3
    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-8

    def validate(self) -> None:
        super().validate()
        _require_betas(self)
        _require_eps(self)

    def build(self, parameters: Iterable[Tensor]) -> torch.optim.Optimizer:
        tensors = list(parameters)
        kind = FusedAdam if fusable(tensors) else eager(torch.optim.Adam)
        return kind(tensors, lr=self.lr, betas=self.betas, eps=self.eps)

    def reach(self, optimizer: torch.optim.Optimizer, parameter: Tensor) -> Tensor | float:
        return super().reach(optimizer, parameter) / (_corrected_root(self, optimizer, parameter) + self.eps)


class AdamW(Optimizer):
    """Adam with weight decay apart from the gradient: θ ← θ − ηλθ first, with λ the `weight_decay`.

    With `only_weights` biases and the gains of norms do not decay: all parameters with fewer than two axes.

    >>> AdamW(lr=3e-4, weight_decay=0.1)
    AdamW(lr=0.0003, weight_decay=0.1)
    """

    lr: float = 1e-3
    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-8
    weight_decay: float = 0.01
    only_weights: bool = False

    def validate(self) -> None:
        super().validate()
        _require_betas(self)
        _require_eps(self)
        require(is_number(self.weight_decay) and self.weight_decay >= 0, self, "weight_decay", "0 or more")
        require(isinstance(self.only_weights, bool), self, "only_weights", "True or False")

    def build(self, parameters: Iterable[Tensor]) -> torch.optim.Optimizer:
        tensors = list(parameters)
        options: dict[str, Any] = {"betas": self.betas, "eps": self.eps, "weight_decay": self.weight_decay}
        groups: Any = self._groups(tensors) if self.only_weights else tensors
        if fusable(tensors):
            return FusedAdam(groups, lr=self.lr, decoupled=True, **options)
        return eager(torch.optim.AdamW)(groups, lr=self.lr, **options)

    def _groups(self, tensors: list[Tensor]) -> list[dict[str, Any]]:
        """What decays, and what does not."""
        weights = [value for value in tensors if value.ndim > 1]
        others = [value for value in tensors if value.ndim < 2]
        both: list[dict[str, Any]] = [{"params": weights}, {"params": others, "weight_decay": 0.0}]
        return [group for group in both if group["params"]]

    def reach(self, optimizer: torch.optim.Optimizer, parameter: Tensor) -> Tensor | float:
        return super().reach(optimizer, parameter) / (_corrected_root(self, optimizer, parameter) + self.eps)


def _corrected_root(spec: Adam | AdamW, optimizer: torch.optim.Optimizer, parameter: Tensor) -> Tensor:
    """√ν̂."""
    state = optimizer.state[parameter]
    return (state["exp_avg_sq"] / (1 - spec.betas[1] ** float(state["step"]))).sqrt()


def _require_betas(spec: Adam | AdamW) -> None:
    pair = isinstance(spec.betas, tuple) and len(spec.betas) == 2 and all(is_fraction(beta) for beta in spec.betas)
    require(pair, spec, "betas", "two numbers, each 0 or more and below 1")


def _require_eps(spec: AdaGrad | RMSprop | Adam | AdamW) -> None:
    require(is_number(spec.eps) and spec.eps > 0, spec, "eps", "a positive number")
