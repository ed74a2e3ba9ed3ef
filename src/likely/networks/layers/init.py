"""Where weights start: zero mean, and the variance that keeps signals the same size from layer to layer.

    lecun       g²/n, g = 1           glorot  2g²/(n + m), g = 1         orthogonal  WᵀW = g²I
    he          g²/n, g² = 2          he_average  2g²/(n + m), g² = 2

A weight of shape (m, n) takes n inputs to m outputs, and g is the gain of the activation (`gain`). LeCun keeps the
variance of activations in linear layers, Glorot compromises between activations and gradients, He makes up for what
the activation takes away (half, for ReLU), and `he_average` is He's 4/(n + m), the compromise for ReLU.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from torch import Tensor, nn

from ...core.errors import SpecError
from .activation import gain as activation_gain

__all__ = ["INITS", "glorot", "he", "he_average", "initialise", "lecun", "orthogonal"]

SQRT2 = math.sqrt(2.0)


def lecun(weight: Tensor, gain: float = 1.0) -> Tensor:
    """Fill with N(0, g²/n).

    >>> import torch
    >>> _ = torch.manual_seed(0)
    >>> round(lecun(torch.empty(500, 400)).var().item() * 400, 1)
    1.0
    """
    inputs, _ = _fans(weight)
    return nn.init.normal_(weight, std=gain / math.sqrt(inputs))


def glorot(weight: Tensor, gain: float = 1.0) -> Tensor:
    """Fill with a uniform of variance 2g²/(n + m): ± g·√(6/(n + m)).

    >>> import torch
    >>> _ = torch.manual_seed(0)
    >>> round(glorot(torch.empty(500, 400)).var().item() * 450, 1)
    1.0
    """
    inputs, outputs = _fans(weight)
    bound = gain * math.sqrt(6 / (inputs + outputs))
    return nn.init.uniform_(weight, -bound, bound)


def he(weight: Tensor, gain: float = SQRT2) -> Tensor:
    """Fill with N(0, g²/n); 2/n for ReLU.

    >>> import torch
    >>> _ = torch.manual_seed(0)
    >>> round(he(torch.empty(500, 400)).var().item() * 400, 1)
    2.0
    """
    return lecun(weight, gain)


def he_average(weight: Tensor, gain: float = SQRT2) -> Tensor:
    """Fill with N(0, 2g²/(n + m)); 4/(n + m) for ReLU.

    >>> import torch
    >>> _ = torch.manual_seed(0)
    >>> round(he_average(torch.empty(500, 400)).var().item() * 900, 1)
    4.0
    """
    inputs, outputs = _fans(weight)
    return nn.init.normal_(weight, std=gain * math.sqrt(2 / (inputs + outputs)))


def orthogonal(weight: Tensor, gain: float = 1.0) -> Tensor:
    """Fill with g times a random orthogonal matrix: WᵀW = WWᵀ = g²I when n = m.

    With m > n outputs the columns are orthogonal and scaled by √(m/n) more, so that each output keeps its variance.

    >>> import torch
    >>> weight = orthogonal(torch.empty(3, 3))
    >>> torch.allclose(weight.T @ weight, torch.eye(3), atol=1e-6)
    True
    """
    inputs, outputs = _fans(weight)
    return nn.init.orthogonal_(weight, gain * math.sqrt(max(1.0, outputs / inputs)))


INITS: dict[str, Callable[..., Tensor]] = {
    "lecun": lecun,
    "glorot": glorot,
    "he": he,
    "he_average": he_average,
    "orthogonal": orthogonal,
}
"""Every initialisation a spec can name."""

_BLIND = {"lecun", "glorot"}  # these two speak of linear layers, whatever follows them


def initialise(weight: Tensor, init: str, activation: str = "identity") -> Tensor:
    """Fill a weight in place by the named rule, for a layer that is preceded or followed by this activation.

    `"he"`, `"he_average"` and `"orthogonal"` use the activation's gain; `"lecun"` and `"glorot"` do not look at it.

    >>> import torch
    >>> initialise(torch.empty(4, 3), "he", "relu").shape
    torch.Size([4, 3])
    """
    if init not in INITS:
        raise SpecError(f"Unknown init {init!r}; known: {', '.join(INITS)}.")
    return INITS[init](weight) if init in _BLIND else INITS[init](weight, activation_gain(activation))


def _fans(weight: Tensor) -> tuple[int, int]:
    """How many numbers enter one output, and how many leave one input; kernels of convolutions count in both."""
    if weight.ndim < 2:
        raise SpecError(f"weight must have two axes or more, (outputs, inputs, …); found shape {tuple(weight.shape)}.")
    kernel = math.prod(weight.shape[2:])
    return max(1, weight.shape[1] * kernel), max(1, weight.shape[0] * kernel)
