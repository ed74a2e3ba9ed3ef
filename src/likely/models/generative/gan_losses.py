"""What the players of an adversarial game minimise, as functions of the critic's scores d.

    minimax          critic  E softplus(−d(x)) + E softplus(d(G(z)))      generator  −E softplus(d(G(z)))
    non_saturating   critic  the same                                     generator   E softplus(−d(G(z)))
    least_squares    critic  ½ E (d(x) − 1)² + ½ E d(G(z))²               generator   ½ E (d(G(z)) − 1)²
    wasserstein      critic  E d(G(z)) − E d(x)                           generator  −E d(G(z))

Of densities p of the data and q of the generator, the best critic of the first two has σ(d) = p/(p + q), where its loss
is log 4 − 2·JSD(p, q); that of the third has d = p/(p + q). That of the last, among functions with gradients no longer
than 1, has the loss −W₁(p, q).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import softplus

__all__ = ["LOSSES", "AdversarialLoss", "weighted_mean"]


class AdversarialLoss(NamedTuple):
    """Terms of single scores: the critic's of real rows and of generated ones, and the generator's of its own.

    >>> loss = LOSSES["least_squares"]
    >>> score = torch.tensor([0.0, 1.0])
    >>> loss.real(score).tolist(), loss.generated(score).tolist(), loss.generator(score).tolist()
    ([0.5, 0.0], [0.0, 0.5], [0.5, 0.0])
    """

    real: Callable[[Tensor], Tensor]
    generated: Callable[[Tensor], Tensor]
    generator: Callable[[Tensor], Tensor]

    def critic(self, real: Tensor, generated: Tensor) -> Tensor:
        """The critic's loss of scores of as many real and generated rows: a term for each pair."""
        return self.real(real) + self.generated(generated)


LOSSES = {
    "minimax": AdversarialLoss(lambda d: softplus(-d), softplus, lambda d: -softplus(d)),
    "non_saturating": AdversarialLoss(lambda d: softplus(-d), softplus, lambda d: softplus(-d)),
    "least_squares": AdversarialLoss(
        lambda d: 0.5 * (d - 1).square(), lambda d: 0.5 * d.square(), lambda d: 0.5 * (d - 1).square()
    ),
    "wasserstein": AdversarialLoss(torch.neg, lambda d: d, torch.neg),
}
"""By the names that `GAN(loss=…)` takes."""


def weighted_mean(values: Tensor, weight: Tensor | None) -> Tensor:
    """Σ w v / Σ w.

    >>> weighted_mean(torch.tensor([1.0, 4.0]), torch.tensor([2.0, 1.0])).item()
    2.0
    """
    return values.mean() if weight is None else (values * weight).sum() / weight.sum()
