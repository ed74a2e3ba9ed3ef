"""Ordinal: one of K labels in order; a logistic variable around η₁, seen only by the cut points that it falls between.

    P(y ≤ j | x) = 1 / (1 + exp(η₁ − cⱼ)),   c₁ < c₂ < … < c_{K−1}

The cut points are learned constants: η₂ = c₁, then the logarithms of the gaps between them. With b = cⱼ − η₁ and
a = cⱼ₋₁ − η₁ the probability of a label is σ(b) − σ(a) = σ(b) σ(−a) (1 − exp(a − b)), which never cancels.
"""

from __future__ import annotations

import torch
from torch import Tensor, distributions
from torch.nn.functional import pad

from . import weighted
from .base import Target
from .labels import _Labels
from .special import bounded_exp, log_one_minus_exp, log_sigmoid

__all__ = ["Ordinal"]


class Ordinal(_Labels):
    """Ordinal(classes=None | K): the proportional-odds model, K taken from the data unless given.

    >>> import torch
    >>> Ordinal().distribution(torch.tensor([0.0, 0.0])).probs
    tensor([0.5000, 0.5000])
    """

    @property
    def needs(self) -> str:  # type: ignore[override]
        """The support in words."""
        return super().needs + " in their order"

    def shared(self, target: Target) -> int:
        return self.size(target) - 1

    def distribution(self, eta: Tensor) -> distributions.Categorical:
        return distributions.Categorical(logits=label_log_probs(eta), validate_args=False)

    def log_prob(self, eta: Tensor, y: Tensor) -> Tensor:
        shape = torch.broadcast_shapes(eta.shape[:-1], y.shape)
        table = label_log_probs(eta).expand(*shape, eta.shape[-1])
        return table.gather(-1, y.long().expand(shape).unsqueeze(-1)).squeeze(-1)

    def label_log_probs(self, eta: Tensor) -> Tensor:
        return label_log_probs(eta)

    def from_frequencies(self, frequency: Tensor) -> Tensor:
        """η₁ = 0 and the cut points at the log odds of the cumulative frequencies."""
        below = frequency.cumsum(-1)[..., :-1]
        above = frequency.flip(-1).cumsum(-1).flip(-1)[..., 1:]
        cuts = below.log() - above.log()
        gaps = cuts.diff(dim=-1).clamp_min(weighted.FLOOR)
        return torch.cat([torch.zeros_like(cuts[..., :1]), cuts[..., :1], gaps.log()], -1)


def label_log_probs(eta: Tensor) -> Tensor:
    """log P(y = j) for all K labels, of shape (…, K)."""
    location, first, log_gaps = eta[..., :1], eta[..., 1:2], eta[..., 2:]
    cuts = torch.cat([first, first + bounded_exp(log_gaps).cumsum(-1)], -1) - location
    under = pad(log_sigmoid(cuts), (0, 1))  # below the upper cut, of which the last label has none
    over = pad(log_sigmoid(-cuts), (1, 0))  # above the lower cut, of which the first label has none
    return under + over + pad(log_one_minus_exp(log_gaps), (1, 1))
