"""Skips around a layer f: what comes in is kept, and the layer learns a change of it.

    Residual      Px + f(x)                    P = I when widths agree, a learned projection otherwise
    ZeroResidual  Px + φ(Wx + b) − φ(0)        the identity when W = 0 and b = 0
    Concatenate   [x, f(x)]                    dense connections

A pre-activation block is `Residual` around W·φ(x) + b, whose change can have either sign.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from .dropout import Dropout
from .init import lecun

__all__ = ["Concatenate", "Residual", "ZeroResidual"]


class Residual(nn.Module):
    """Px + f(x).

    >>> block = Residual(nn.Linear(3, 3), 3, 3)
    >>> x = torch.ones(2, 3)
    >>> torch.equal(block(x), x + block.branch(x))
    True
    """

    def __init__(self, branch: nn.Module, in_features: int, out_features: int) -> None:
        super().__init__()
        self.branch = branch
        self.skip = _skip(in_features, out_features)

    def forward(self, x: Tensor) -> Tensor:
        return self.skip(x) + self.branch(x)


class ZeroResidual(nn.Module):
    """Px + φ(f(x)) − φ(0), where f is affine: with all weights and biases of f at 0 it passes Px on.

    >>> layer = nn.Linear(3, 3)
    >>> _ = nn.init.zeros_(layer.weight), nn.init.zeros_(layer.bias)
    >>> ZeroResidual(layer, nn.Sigmoid(), 3, 3)(torch.ones(1, 3))
    tensor([[1., 1., 1.]], grad_fn=<AddBackward0>)
    """

    def __init__(
        self, affine: nn.Module, activation: nn.Module, in_features: int, out_features: int, dropout: float = 0.0
    ) -> None:
        super().__init__()
        self.affine, self.activation = affine, activation
        self.dropout = Dropout(dropout) if dropout else nn.Identity()
        self.skip = _skip(in_features, out_features)

    def forward(self, x: Tensor) -> Tensor:
        change = self.activation(self.affine(x)) - self.activation(x.new_zeros(()))
        return self.skip(x) + self.dropout(change)


class Concatenate(nn.Module):
    """[x, f(x)] along the last axis.

    >>> Concatenate(nn.Linear(3, 2))(torch.ones(1, 3)).shape
    torch.Size([1, 5])
    """

    def __init__(self, branch: nn.Module) -> None:
        super().__init__()
        self.branch = branch

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([x, self.branch(x)], -1)


def _skip(in_features: int, out_features: int) -> nn.Module:
    if in_features == out_features:
        return nn.Identity()
    projection = nn.Linear(in_features, out_features, bias=False)
    lecun(projection.weight)
    return projection
