"""Score matching: losses whose minimiser is the score ∇ log p of the rows, without the normaliser of p.

Fisher divergence   F = ½ E ‖s(x) − ∇ log p(x)‖²

explicit     E [ tr ∂s/∂x + ½‖s‖² ]                      = F − ½ E‖∇ log p‖²
sliced       E [ vᵀ(∂s/∂x)v + ½‖s‖² ],   E vvᵀ = I        = the same, one product with a vector per row
denoising    ½ E ‖s(x + σε) + ε/σ‖²                       = F of the rows with noise + a constant

The first two are for rows as they are (or with noise added before), the last needs no derivative of s.
"""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

from .divergence import divergence

__all__ = ["Score", "denoising_loss", "explicit_loss", "sliced_loss"]

Score = Callable[[Tensor], Tensor]
"""s(x): rows (n, *shape) to vectors of the same shape."""


def explicit_loss(score: Score, x: Tensor) -> Tensor:
    """tr ∂s/∂x + ½‖s‖² of each row, (n,): one pass back per number of a row.

    >>> import torch
    >>> explicit_loss(lambda x: -x, torch.tensor([[1.0, 2.0]]))
    tensor([0.5000])
    """
    value, trace = divergence(score, x)
    return trace + _half_square(value)


def sliced_loss(score: Score, x: Tensor, direction: Tensor) -> Tensor:
    """vᵀ(∂s/∂x)v + ½‖s‖² of each row, (n,), for directions v of the shape of x.

    The square is ½‖s‖², the mean of ½(vᵀs)² over v, which costs nothing more and varies less.

    >>> import torch
    >>> sliced_loss(lambda x: -x, torch.tensor([[1.0, 2.0]]), torch.tensor([[1.0, -1.0]]))
    tensor([0.5000])
    """
    value, trace = divergence(score, x, direction)
    return trace + _half_square(value)


def denoising_loss(score: Score, x: Tensor, noise: Tensor, sigma: Tensor | float) -> Tensor:
    """½‖s(x + σε) + ε/σ‖² of each row, (n,).

    >>> import torch
    >>> denoising_loss(lambda x: -x, torch.zeros(1, 1), torch.ones(1, 1), 1.0)
    tensor([0.])
    """
    return _half_square(score(x + sigma * noise) + noise / sigma)


def _half_square(value: Tensor) -> Tensor:
    return 0.5 * value.square().flatten(1).sum(1)
