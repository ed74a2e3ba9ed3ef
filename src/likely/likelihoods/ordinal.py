"""Ordinal: one of K labels in order; a logistic variable around η₁, seen only by the cut points that it falls between.

    P(y ≤ j | x) = 1 / (1 + exp(η₁ − cⱼ)),   c₁ < c₂ < … < c_{K−1}

The cut points are learned constants: η₂ = c₁, then the logarithms of the gaps between them. With b = cⱼ − η₁ and
a = cⱼ₋₁ − η₁ the probability of a label is σ(b) − σ(a) = σ(b) σ(−a) (1 − exp(a − b)), which never cancels.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, distributions
from torch.nn.functional import pad

from ..core.spec import require
from . import weighted
from .base import Target
from .labels import _Labels
from .special import bounded_exp, bounded_exp_grad, log_one_minus_exp, log_one_minus_exp_grad, log_sigmoid

__all__ = ["Ordinal", "cut_points"]


class Ordinal(_Labels):
    """Ordinal(classes=None | K | the labels in their order): the proportional-odds model.

    Without labels their order is that of numbers, of an ordered `pd.Categorical`, or of a polars `Enum`; text without
    an order is refused. y is (n,) or (n, *positions).

    Learned: `cut_points_` of the estimator, (K − 1,), increasing; with a linear network `coef_` too, and no intercept,
    whose place they take. See also `Categorical`, for labels without an order.

    >>> import torch
    >>> Ordinal().distribution(torch.tensor([0.0, 0.0])).probs
    tensor([0.5000, 0.5000])
    >>> Ordinal(["low", "mid", "high"]).known_target().classes
    3
    >>> from likely import Classifier
    >>> X, y = [[0.0], [1.0], [2.0], [1.5], [3.0], [4.0]], ["low", "low", "mid", "high", "mid", "high"]
    >>> Classifier(Ordinal(["low", "mid", "high"])).fit(X, y).cut_points_.round(1)
    array([1.9, 4.2])
    """

    classes: Any = None

    ordered = True

    def validate(self) -> None:
        if isinstance(self.classes, list | tuple):
            object.__setattr__(self, "classes", tuple(self.classes))
            plain = all(isinstance(label, str | int) and not isinstance(label, bool) for label in self.classes)
            several = plain and len(set(self.classes)) == len(self.classes) >= 2
            one_kind = several and len({isinstance(label, str) for label in self.classes}) == 1
            require(one_kind, self, "classes", 'different labels in order, such as ["low", "mid", "high"]')
        else:
            super().validate()

    @property
    def _count(self) -> int | None:
        return len(self.classes) if isinstance(self.classes, tuple) else self.classes

    @property
    def order(self) -> tuple[Any, ...] | None:
        """The labels in their order, if they were given."""
        return self.classes if isinstance(self.classes, tuple) else None

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

    def value_and_grad(self, eta: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """The label lies below its upper cut point and above its lower one: each pulls η₁, and the gaps up to it."""
        shape, last = torch.broadcast_shapes(eta.shape[:-1], y.shape), eta.shape[-1] - 1
        eta, label = eta.expand(*shape, last + 1), y.long().expand(shape).unsqueeze(-1)
        cuts = cut_points(eta[..., 1:]) - eta[..., :1]
        upper, lower = label.clamp_max(last - 1), (label - 1).clamp_min(0)
        under = torch.where(label < last, (-cuts.gather(-1, upper)).sigmoid(), 0.0)
        over = torch.where(label > 0, cuts.gather(-1, lower).sigmoid(), 0.0)
        place = torch.arange(1, last, device=eta.device)  # gap i lies below the cut points i, i + 1, …
        pull = torch.where(label >= place, under, 0.0) - torch.where(label > place, over, 0.0)
        own = torch.where(label == place, log_one_minus_exp_grad(eta[..., 2:]), 0.0)
        gaps = bounded_exp_grad(eta[..., 2:]) * pull + own
        return self.log_prob(eta, y), torch.cat([over - under, under - over, gaps], -1)

    def label_log_probs(self, eta: Tensor) -> Tensor:
        return label_log_probs(eta)

    def from_frequencies(self, frequency: Tensor) -> Tensor:
        """η₁ = 0 and the cut points at the log odds of the cumulative frequencies."""
        below = frequency.cumsum(-1)[..., :-1]
        above = frequency.flip(-1).cumsum(-1).flip(-1)[..., 1:]
        cuts = below.log() - above.log()
        gaps = cuts.diff(dim=-1).clamp_min(weighted.FLOOR)
        return torch.cat([torch.zeros_like(cuts[..., :1]), cuts[..., :1], gaps.log()], -1)


def cut_points(shared: Tensor) -> Tensor:
    """c₁ < c₂ < …, from the learned constants c₁ and the logarithms of the gaps, (…, K − 1).

    >>> cut_points(torch.tensor([-1.0, 0.0, 0.0]))
    tensor([-1.,  0.,  1.])
    """
    first = shared[..., :1]
    return torch.cat([first, first + bounded_exp(shared[..., 1:]).cumsum(-1)], -1)


def label_log_probs(eta: Tensor) -> Tensor:
    """log P(y = j) for all K labels, of shape (…, K)."""
    location, log_gaps = eta[..., :1], eta[..., 2:]
    cuts = cut_points(eta[..., 1:]) - location
    under = pad(log_sigmoid(cuts), (0, 1))  # below the upper cut, of which the last label has none
    over = pad(log_sigmoid(-cuts), (1, 0))  # above the lower cut, of which the first label has none
    return under + over + pad(log_one_minus_exp(log_gaps), (1, 1))
