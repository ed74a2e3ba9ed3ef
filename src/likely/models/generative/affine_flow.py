"""A small invertible map of vectors: affine couplings (Dinh, Sohl-Dickstein and Bengio, 2017) after a shift and scale.

    y₁ = x₁,   y₂ = x₂ · e^{s(x₁)} + t(x₁),      log |det| = Σ s(x₁)

Halves change places from one coupling to the next. Each starts as the identity.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

__all__ = ["AffineFlow"]

REACH = 2.0
"""The largest |s| of one coupling: keeps a badly trained flow finite."""


class AffineFlow(nn.Module):
    """z = f(u), by `layers` couplings; `inverse` gives u and log |det ∂u/∂z|.

    >>> flow = AffineFlow(3, 2, 8)
    >>> u, log_det = flow.inverse(flow(torch.ones(4, 3)))
    >>> torch.allclose(u, torch.ones(4, 3), atol=1e-5), log_det.shape
    (True, torch.Size([4]))
    """

    def __init__(self, width: int, layers: int, hidden: int) -> None:
        super().__init__()
        self.shift = nn.Parameter(torch.zeros(width))
        self.log_scale = nn.Parameter(torch.zeros(width))
        self.halves = [_halves(width, layer % 2 == 1) for layer in range(layers if width > 1 else 0)]
        self.networks = nn.ModuleList(_network(len(first), len(second), hidden) for first, second in self.halves)

    def forward(self, u: Tensor) -> Tensor:
        z = u
        for (first, second), network in zip(self.halves, self.networks, strict=True):
            scale, shift = _both(network(z[..., first]))
            z = _joined(z[..., first], torch.addcmul(shift, z[..., second], scale.exp()), first, second)
        return self.shift + self.log_scale.exp() * z

    def inverse(self, z: Tensor) -> tuple[Tensor, Tensor]:
        """u = f⁻¹(z), and the logarithm of how much f⁻¹ stretches volumes there."""
        u = (z - self.shift) * (-self.log_scale).exp()
        log_det = -self.log_scale.sum()
        for (first, second), network in zip(reversed(self.halves), reversed(self.networks), strict=True):
            scale, shift = _both(network(u[..., first]))
            u = _joined(u[..., first], (u[..., second] - shift) * (-scale).exp(), first, second)
            log_det = log_det - scale.sum(-1)
        return u, log_det.expand(z.shape[:-1])


def _halves(width: int, swap: bool) -> tuple[list[int], list[int]]:
    """Every second number, and the rest."""
    even, odd = list(range(0, width, 2)), list(range(1, width, 2))
    return (odd, even) if swap else (even, odd)


def _joined(own: Tensor, changed: Tensor, first: list[int], second: list[int]) -> Tensor:
    both = [*first, *second]
    back = sorted(range(len(both)), key=both.__getitem__)
    return torch.cat([own, changed], -1)[..., back]


def _network(inputs: int, outputs: int, hidden: int) -> nn.Module:
    last = nn.Linear(hidden, 2 * outputs)
    nn.init.zeros_(last.weight)
    nn.init.zeros_(last.bias)
    return nn.Sequential(nn.Linear(inputs, hidden), nn.Tanh(), nn.Linear(hidden, hidden), nn.Tanh(), last)


def _both(out: Tensor) -> tuple[Tensor, Tensor]:
    scale, shift = out.chunk(2, -1)
    return REACH * torch.tanh(scale / REACH), shift
