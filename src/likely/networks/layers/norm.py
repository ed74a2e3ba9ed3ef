"""Normalisation: signals of mean 0 and variance 1, then a learned scale γ and shift β.

    batch    γ·(x − E[x])/√(V[x] + ε) + β    E, V of each feature over the rows of the batch; averages of them later
    layer    the same, with E, V over the features of each row by itself
    weight   w = g·v/‖v‖: the length and the direction of each weight vector are learned apart
    virtual  as batch, with E, V over a reference batch, chosen once, and the row itself

Layers act on the last axis: x is (n, features) or (n, *positions, features), and every position is a row.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from ...core.errors import SpecError
from .batch_norm import batch_norm

__all__ = ["NORMS", "BatchNorm", "LayerNorm", "ReferenceBatch", "VirtualBatchNorm", "WeightNorm", "norm"]

NORMS = ("batch", "layer", "weight", "virtual")

LayerNorm = nn.LayerNorm


class BatchNorm(nn.BatchNorm1d):
    """γ·(x − E[x])/√(V[x] + ε) + β over all rows of the batch; in evaluation with the running averages of E and V.

    A batch of a single row has no variance: it is normalised by the running averages and leaves them alone.

    >>> layer = BatchNorm(2)
    >>> layer(torch.tensor([[1.0, 5.0], [3.0, 9.0]])).round().tolist()
    [[-1.0, -1.0], [1.0, 1.0]]
    """

    def forward(self, x: Tensor) -> Tensor:
        return self._normal(x, False)

    def rectified(self, x: Tensor) -> Tensor:
        """What of the output is positive, max(0, ·), as one operation where there is one."""
        return self._normal(x, True)

    def _normal(self, x: Tensor, rectified: bool) -> Tensor:
        rows = x.reshape(-1, x.shape[-1])
        averages, affine = (self.running_mean, self.running_var), (self.weight, self.bias)
        if self.training and len(rows) > 1:
            momentum = 0.1 if self.momentum is None else self.momentum
            normal = batch_norm(rows, averages, affine, momentum, self.eps, rectified=rectified)
        else:
            normal = functional.batch_norm(rows, *averages, *affine, eps=self.eps)
            normal = normal.relu() if rectified else normal
        return normal.reshape(x.shape)


class WeightNorm(nn.Module):
    """A linear layer y = Wx + b whose rows are w = g·v/‖v‖, with g (`gain`) and v (`direction`) learned apart.

        ∂E/∂g = ∇_w E·v/‖v‖,   ∇_v E = g/‖v‖ (I − ww^T/‖w‖²) ∇_w E

    >>> layer = WeightNorm(3, 2)
    >>> torch.allclose(layer.weight.norm(dim=1), layer.gain)
    True
    """

    def __init__(self, in_features: int, out_features: int, bias: bool = True) -> None:
        super().__init__()
        self.gain = nn.Parameter(torch.empty(out_features))
        self.direction = nn.Parameter(torch.empty(out_features, in_features))
        self.bias = nn.Parameter(torch.empty(out_features)) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Start anew, as `nn.Linear` does."""
        out_features, in_features = self.direction.shape
        fresh = nn.Linear(in_features, out_features, bias=self.bias is not None)
        self.start_at(fresh.weight)
        if self.bias is not None:
            with torch.no_grad():
                self.bias.copy_(fresh.bias)

    @torch.no_grad()
    def start_at(self, weight: Tensor) -> None:
        """Let the rows w be those of `weight`, (out_features, in_features)."""
        self.direction.copy_(weight)
        self.gain.copy_(weight.norm(dim=1))

    @property
    def weight(self) -> Tensor:
        """W, with rows g·v/‖v‖."""
        return (self.gain / self.direction.norm(dim=1)).unsqueeze(1) * self.direction

    def forward(self, x: Tensor) -> Tensor:
        return functional.linear(x, self.weight, self.bias)

    def extra_repr(self) -> str:
        """As `nn.Linear` shows itself."""
        out_features, in_features = self.direction.shape
        return f"in_features={in_features}, out_features={out_features}, bias={self.bias is not None}"


class VirtualBatchNorm(nn.Module):
    """Batch norm by the r reference rows that come first in x, (r + n, features), and, for each of the rest, itself.

        E = m + (x − m)/(r + 1),   V = r/(r + 1)·v + r/(r + 1)²·(x − m)²    with m, v of the reference rows

    A row's result does not depend on the rows beside it. `ReferenceBatch` puts the reference in front.

    >>> layer = VirtualBatchNorm(1, reference_rows=2)
    >>> layer(torch.tensor([[-1.0], [1.0], [0.0]])).round().flatten().tolist()
    [-1.0, 1.0, 0.0]
    """

    def __init__(self, features: int, reference_rows: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(features))
        self.bias = nn.Parameter(torch.zeros(features))
        self.reference_rows, self.eps = reference_rows, eps

    def reset_parameters(self) -> None:
        """γ = 1 and β = 0."""
        nn.init.ones_(self.weight)
        nn.init.zeros_(self.bias)

    def forward(self, x: Tensor) -> Tensor:
        r = self.reference_rows
        variance, mean = torch.var_mean(x[:r], 0, correction=0)
        apart = x - mean
        fraction = r / (r + 1)
        reference = apart[:r] * torch.rsqrt(variance + self.eps)
        spread = fraction * variance + fraction / (r + 1) * apart[r:].square()
        current = fraction * apart[r:] * torch.rsqrt(spread + self.eps)
        return torch.cat([reference, current]) * self.weight + self.bias


class ReferenceBatch(nn.Module):
    """Runs a network with `VirtualBatchNorm`s on [reference; x] and gives its output for x.

    The reference is the first `rows` rows seen in training (repeated in turn if there are fewer), fixed from then
    on; before that it is a standard normal sample.

    >>> network = nn.Sequential(nn.Linear(3, 2), VirtualBatchNorm(2, reference_rows=8))
    >>> ReferenceBatch(network, 3, rows=8)(torch.randn(5, 3)).shape
    torch.Size([5, 2])
    """

    reference: Tensor
    chosen: Tensor

    def __init__(self, network: nn.Module, in_features: int, rows: int = 64) -> None:
        super().__init__()
        self.network = network
        self.register_buffer("reference", torch.randn(rows, in_features))
        self.register_buffer("chosen", torch.zeros((), dtype=torch.bool))

    def reset_parameters(self) -> None:
        """Forget the reference."""
        self.reference.normal_()
        self.chosen.fill_(False)

    def forward(self, x: Tensor) -> Tensor:
        rows = x.reshape(math.prod(x.shape[:-1]), x.shape[-1])
        r = len(self.reference)
        if self.training and len(rows):
            # branchless and in place, so that it also holds for the stacked members of an ensemble
            candidate = rows.detach()[torch.arange(r, device=x.device) % len(rows)]
            self.reference.copy_(torch.where(self.chosen, self.reference, candidate))
            self.chosen.fill_(True)
        out = self.network(torch.cat([self.reference, rows]))[r:]
        return out.reshape(*x.shape[:-1], out.shape[-1])


def norm(name: str, features: int, reference_rows: int = 64) -> nn.Module:
    """The layer that normalises signals by the named rule. (`"weight"` normalises weights: it is `WeightNorm`.)

    >>> norm("layer", 4)
    LayerNorm((4,), eps=1e-05, elementwise_affine=True, bias=True)
    """
    if name == "batch":
        return BatchNorm(features)
    if name == "layer":
        return LayerNorm(features)
    if name == "virtual":
        return VirtualBatchNorm(features, reference_rows)
    raise SpecError(f"Unknown norm of signals {name!r}; known: batch, layer, virtual.")
