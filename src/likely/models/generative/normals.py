"""Independent normals with means and log-scales of any shape: draws, densities, and divergences in closed form.

    log N(z; m, s)          = −½ Σ [ (z − m)² e^{−2s} + 2s + log 2π ]
    KL( N(m, s) ‖ N(n, t) ) =  ½ Σ [ e^{2(s−t)} + (m − n)² e^{−2t} − 1 ] + Σ (t − s)

Sums are over the last axis; s and t are logarithms of standard deviations.
"""

from __future__ import annotations

import torch
from torch import Tensor

from ...core.random import current_generator
from ...likelihoods.special import LOG_2PI

__all__ = ["divergence", "drawn", "log_normal", "noise", "product", "to_standard"]


def noise(*shape: int, like: Tensor) -> Tensor:
    """Standard normal numbers from the current generator.

    >>> noise(3, 2, like=torch.zeros(1)).shape
    torch.Size([3, 2])
    """
    return torch.randn(*shape, generator=current_generator(like.device), dtype=like.dtype, device=like.device)


def drawn(mean: Tensor, log_scale: Tensor, *draws: int) -> Tensor:
    """z = m + e^s ε, (*draws, *shape of m): derivatives with respect to m and s go through it.

    >>> drawn(torch.zeros(3, 2), torch.zeros(3, 2), 5).shape
    torch.Size([5, 3, 2])
    """
    return torch.addcmul(mean, log_scale.exp(), noise(*draws, *mean.shape, like=mean))


def log_normal(z: Tensor, mean: Tensor, log_scale: Tensor) -> Tensor:
    """log N(z; m, s).

    >>> log_normal(torch.zeros(2), torch.zeros(2), torch.zeros(2))
    tensor(-1.8379)
    """
    standard = (z - mean) * (-log_scale).exp()
    return (-0.5 * standard.square() - log_scale).sum(-1) - 0.5 * LOG_2PI * z.shape[-1]


def to_standard(mean: Tensor, log_scale: Tensor) -> Tensor:
    """KL( N(m, s) ‖ N(0, 0) ) = ½ Σ (e^{2s} + m² − 1) − Σ s.

    >>> to_standard(torch.ones(3), torch.zeros(3))
    tensor(1.5000)
    """
    return (0.5 * (mean.square() + (2 * log_scale).exp() - 1) - log_scale).sum(-1)


def divergence(mean: Tensor, log_scale: Tensor, to_mean: Tensor, to_log_scale: Tensor) -> Tensor:
    """KL of one normal from another.

    >>> divergence(torch.ones(3), torch.zeros(3), torch.zeros(3), torch.zeros(3))
    tensor(1.5000)
    """
    return to_standard((mean - to_mean) * (-to_log_scale).exp(), log_scale - to_log_scale)


def product(mean: Tensor, log_scale: Tensor, other: Tensor, other_log_scale: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and log-scale of the normal that the product of two densities is in proportion to: precisions add.

    >>> mean, log_scale = product(torch.tensor(0.0), torch.tensor(0.0), torch.tensor(2.0), torch.tensor(0.0))
    >>> mean, (2 * log_scale).exp()
    (tensor(1.), tensor(0.5000))
    """
    gap = 2 * (other_log_scale - log_scale)  # log of the ratio of precisions, own over the other's
    fraction = torch.sigmoid(gap)
    return other + fraction * (mean - other), log_scale + 0.5 * torch.nn.functional.logsigmoid(gap)
