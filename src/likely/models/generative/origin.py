"""The row that a noisy one came from, in the mean over all rows of a batch that it may have come from.

    E[x | y] = Σₖ wₖ xₖ,      y = αx + σz,  z ~ N(0, I),      wₖ ∝ exp(−‖y − αxₖ‖² / 2σ²)

As a target of regression this mean has the expectation of the one row that it was, and less variance (Rao and
Blackwell): diffusion models and flow matching see fine structure that the noise of single rows hides.
"""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["origin"]


def origin(y: Tensor, x: Tensor, alpha: Tensor, sigma: Tensor, condition: Tensor | None = None) -> Tensor:
    """E[x | y] over rows of the batch with the same condition, of the shape of x; α and σ (n, 1, …) multiply rows.

    >>> x = torch.tensor([[-1.0], [1.0]])
    >>> half = torch.full((2, 1), 0.5)
    >>> origin(torch.zeros(2, 1), x, half, half)
    tensor([[0.],
            [0.]])
    """
    rows, scale, noise = x.flatten(1), alpha.reshape(-1, 1), sigma.reshape(-1, 1)
    logits = (scale * y.flatten(1) @ rows.mT - 0.5 * scale.square() * rows.square().sum(1)) / noise.square()
    if condition is not None:
        told = condition.flatten(1)
        logits = logits.masked_fill(torch.cdist(told, told, p=torch.inf) > 0, -torch.inf)
    return (logits.softmax(1) @ rows).view_as(x)
