"""What the words of a text say of its class: multinomial naive Bayes over the columns of a bag.

    log p(x | y) = Σ_j x_j log θ_yj,      θ_yj = (N_yj + a) / Σ_k (N_yk + a)

N_yj is in how many rows of the class y there is j; the sum is over all columns of its kind: words, or pairs of words,
which are independent given the class. The same of a training row, as if it had not been counted (leave one out), is
honest evidence: a model that learns how far to trust it does not see its own label in it.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ..core import distributed
from ..core.errors import ModelFileError
from ..data.sparse_rows import SparseRows

__all__ = ["Evidence"]


@dataclass(frozen=True)
class Evidence:
    """Counts N, (classes, columns), how many columns there are of each kind, and the smoothing a."""

    counts: Tensor
    kinds: tuple[int, ...]
    smoothing: float = 1.0

    @staticmethod
    def of(
        x: SparseRows, index: Tensor, weight: Tensor, classes: int, kinds: tuple[int, ...], smoothing: float = 1.0
    ) -> Evidence:
        """Count rows by the index of their class, each as often as its weight says.

        >>> x = SparseRows(torch.ones(3), torch.tensor([0, 1, 1]), torch.tensor([0, 2, 3]), 2)
        >>> Evidence.of(x, torch.tensor([0, 1]), torch.ones(2), 2, (2,)).counts
        tensor([[1., 1.],
                [0., 1.]], dtype=torch.float64)
        """
        part = distributed.shard(len(x))
        own, labels, times = x[part], index[part], weight[part]
        counts = torch.zeros(classes * x.width, dtype=torch.float64)
        places = labels[own.owner] * x.width + own.columns
        counts.index_add_(0, places, times.double()[own.owner])
        distributed.sum_(counts)
        return Evidence(counts.view(classes, x.width), kinds, smoothing)

    @property
    def columns(self) -> int:
        """How many numbers `scores` gives: for each kind one of two classes, or one of each."""
        return len(self.kinds) * (1 if len(self.counts) == 2 else len(self.counts))

    @property
    def log_theta(self) -> Tensor:
        """log θ, (classes, columns)."""
        parts = (self.counts + self.smoothing).split(list(self.kinds), 1)
        return torch.cat([part.log() - part.sum(1, keepdim=True).log() for part in parts], 1)

    def log_prob(self, x: SparseRows) -> Tensor:
        """log p(x | y) of each row, (n, classes)."""
        return x.to(torch.float64).matrix @ self.log_theta.T

    def scores(self, x: SparseRows) -> Tensor:
        """How much more probable than on average a row is in each class, for each kind of column: (n, columns)."""
        by_kind = torch.block_diag(*(torch.ones(1, count) for count in self.kinds)).bool()
        tables = [torch.where(own, self.log_theta, 0.0) for own in by_kind]
        return _contrasts(torch.stack([x.to(torch.float64).matrix @ table.T for table in tables], 1))

    def held_out(self, x: SparseRows, index: Tensor, weight: Tensor) -> Tensor:
        """The scores of the rows that were counted, each without itself."""
        values, owner, times = x.values.double(), x.owner, weight.double()
        kind = torch.repeat_interleave(torch.arange(len(self.kinds)), torch.tensor(self.kinds))[x.columns]
        place = owner * len(self.kinds) + kind
        sums = torch.stack([part.sum(1) + self.smoothing * part.shape[1] for part in self.counts.split(self.kinds, 1)])
        lengths = torch.bincount(place, minlength=len(x) * len(self.kinds)).view(len(x), -1)
        scores = torch.zeros(len(self.counts), len(x) * len(self.kinds), dtype=torch.float64)
        for label, counts in enumerate(self.counts):
            own = (index == label).double() * times
            here = (counts[x.columns] - own[owner]).clamp_min(0) + self.smoothing
            total = (sums[:, label] - own.unsqueeze(1) * lengths).flatten()
            scores[label].index_add_(0, place, values * (here.log() - total.log()[place]))
        return _contrasts(scores.T.reshape(len(x), len(self.kinds), -1))

    @staticmethod
    def restored(counts: Tensor, classes: int, kinds: tuple[int, ...]) -> Evidence:
        """From the counts in a file; a `ModelFileError` for what are none."""
        sound = counts.dtype == torch.float64 and counts.shape == (classes, sum(kinds))
        if not sound or not bool(torch.isfinite(counts).all()) or bool((counts < 0).any()):
            raise ModelFileError(
                f"The file has counts of words that are none of {classes} classes × {sum(kinds)} words."
            )
        return Evidence(counts, kinds)


def _contrasts(log_prob: Tensor) -> Tensor:
    """Differences between the classes, (n, kinds, classes) → (n, columns): two classes have one."""
    if log_prob.shape[-1] == 2:
        return (log_prob[..., 1:] - log_prob[..., :1]).flatten(1)
    return (log_prob - log_prob.mean(-1, keepdim=True)).flatten(1)
