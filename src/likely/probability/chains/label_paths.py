"""The distribution of the labels of whole rows: an average of random fields along a chain.

p(y) = Σₘ wₘ exp(scoreₘ(y)) / Zₘ,      score(y) = s[y₁] + Σₜ eₜ[yₜ] + Σₜ A[yₜ, yₜ₊₁] + l[y_T]
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import numpy as np
import torch
from torch import Tensor
from torch.distributions import Distribution

from ...data.rows import index_of_parts
from .chain import as_array, filter_scores, sample_paths, smooth_scores
from .labels import label_log_prob, row_starts, with_last
from .viterbi import best_paths, best_paths_backwards

__all__ = ["LabelPaths"]


class LabelPaths(Distribution):
    """p(y) of the labels of n rows, averaged over M fields with weights: batch shape (n,).

    Scores are `first` and `last` (M, K), `transition` (M, K, K) and `emission` (M, T, K). A value holds the labels of
    all rows, one row after the other, (…, T); where rows have one `length`, it is (…, n, length). `probs` are the
    probabilities of each label by itself, `mode` the most probable labels of whole rows. Of several fields that is the
    best path of the one Markov chain that is nearest to their average: the chain with its marginals of neighbours.

    >>> alike, scores = torch.tensor([[[2.0, 0.0], [0.0, 2.0]]]), torch.tensor([[[1.0, 0.0], [0.0, 0.5]]])
    >>> rows = LabelPaths(torch.zeros(1, 2), torch.zeros(1, 2), alike, scores, offsets=torch.tensor([0, 2]))
    >>> rows.mode, rows.probs[:, 0], rows.log_prob(torch.tensor([0, 0]))
    (tensor([0, 0]), tensor([0.6508, 0.5586]), tensor([-0.6310]))
    """

    arg_constraints = {}  # noqa: RUF012 (as torch declares it)

    def __init__(
        self,
        first: Tensor,
        last: Tensor,
        transition: Tensor,
        emission: Tensor,
        offsets: Tensor,
        weights: Tensor | None = None,
        length: int | None = None,
    ) -> None:
        self.dtype, self.device = emission.dtype, emission.device
        self.starts = row_starts(offsets)
        self._given = [as_array(part) for part in (first, last, transition, emission)]
        weight = np.ones(len(emission)) if weights is None else as_array(weights)
        self.weights = weight / weight.sum()
        self._form = (int(self.starts[-1]),) if length is None else (len(self.starts) - 1, length)
        event = torch.Size(self._form[1:])
        super().__init__(torch.Size([len(self.starts) - 1]), event, validate_args=False)

    def log_prob(self, value: Tensor) -> Tensor:
        """log p(y) of each row, (…, n); a label that is NaN is summed out."""
        lead = value.shape[: value.ndim - len(self._form)]
        labels = value.detach().double().cpu().reshape(-1, int(self.starts[-1]))
        offsets = torch.from_numpy(self.starts)
        of_fields = []
        for field in zip(*self._given, strict=True):
            first, last, transition, emission = map(torch.from_numpy, field)
            rows = [label_log_prob(first, last, transition, emission, own, offsets) for own in labels]
            of_fields.append(torch.stack(rows))
        mixed = torch.logsumexp(torch.stack(of_fields) + torch.from_numpy(self.weights).log().view(-1, 1, 1), 0)
        return mixed.reshape(*lead, -1).to(self.device, self.dtype)

    @cached_property
    def probs(self) -> Tensor:
        """The probability of each label at each position by itself, (T, K) or (n, length, K)."""
        table = sum(w * own for w, own in zip(self.weights, self._marginals, strict=True))
        assert isinstance(table, np.ndarray)
        return torch.from_numpy(table).reshape(*self._form, -1).to(self.device, self.dtype)

    @property
    def logits(self) -> Tensor:
        """Their logarithms, finite also where one is too small for a number."""
        return self.probs.clamp_min(torch.finfo(self.dtype).tiny).log()

    @cached_property
    def mode(self) -> Tensor:
        """The most probable labels of each row together: (T,) or (n, length)."""
        if len(self.weights) == 1:
            path, _ = best_paths(*next(self._members()), self.starts)
        else:
            path = self._best_of_nearest_chain()
        return torch.from_numpy(path).reshape(self._form).to(self.device)

    def sample(self, sample_shape: torch.Size | list[int] | tuple[int, ...] = ()) -> Tensor:
        """Labels of all rows, (*sample_shape, T) or (*sample_shape, n, length), drawn backwards along each."""
        rows = len(self.starts) - 1
        count = torch.Size(sample_shape).numel()
        chosen = torch.multinomial(torch.from_numpy(self.weights), count * rows, replacement=True)
        draws = torch.empty(count * int(self.starts[-1]), dtype=torch.long)
        offsets = torch.from_numpy(self.starts)
        whole = _repeated(offsets, count)
        for member, (initial, transition, emission) in enumerate(self._members()):
            own = (chosen == member).nonzero().ravel()  # which rows of which draws
            if not len(own):
                continue
            _, filtered = filter_scores(initial, transition, emission, self.starts)
            steps, starts = index_of_parts(offsets, own % rows)
            moves = np.exp(transition - transition.max(0))  # of those that come before a label, only ratios matter
            uniform = torch.rand(len(steps), dtype=torch.float64).numpy()
            labels = sample_paths(filtered[steps.numpy()], moves, starts.numpy(), uniform)
            draws[index_of_parts(whole, own)[0]] = torch.from_numpy(labels)
        return draws.reshape(*sample_shape, *self._form).to(self.device)

    # --- helpers ------------------------------------------------------------------------------------------------
    def _members(self) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Scores of the first label, of neighbours, and of each position, the last one's score among them."""
        for first, last, transition, emission in zip(*self._given, strict=True):
            yield first, transition, with_last(emission, last, self.starts)

    @cached_property
    def _marginals(self) -> list[np.ndarray]:
        """γ (T, K) of each field."""
        return [smooth_scores(*field, self.starts)[3] for field in self._members()]

    def _best_of_nearest_chain(self) -> np.ndarray:
        """p(yₜ = i, yₜ₊₁ = j) ∝ αₜ(i) exp(Aᵢⱼ) with its sum over i that of γₜ₊₁(j); the mean over fields of these."""
        pairs = 0.0
        for weight, field, marginal in zip(self.weights, self._members(), self._marginals, strict=True):
            initial, transition, emission = field
            _, filtered = filter_scores(initial, transition, emission, self.starts)
            before = filtered[:, :, None] * np.exp(transition - transition.max(0))
            after = np.append(marginal[1:], marginal[:1], 0)[:, None]
            total = before.sum(1, keepdims=True)
            pairs = pairs + weight * after * np.divide(before, total, out=np.zeros_like(before), where=total > 0)
        assert isinstance(pairs, np.ndarray)
        with np.errstate(divide="ignore", invalid="ignore"):
            log_before = np.log(pairs) - np.log(pairs.sum(1, keepdims=True))
            log_last = np.log(sum(w * own for w, own in zip(self.weights, self._marginals, strict=True)))
        return best_paths_backwards(log_last, np.where(np.isnan(log_before), -np.inf, log_before), self.starts)


def _repeated(offsets: Tensor, count: int) -> Tensor:
    """Where rows start if all of them come again and again.

    >>> _repeated(torch.tensor([0, 2, 5]), 2)
    tensor([ 0,  2,  5,  7, 10])
    """
    again = offsets[-1] * torch.arange(count).unsqueeze(1) + offsets[:-1]
    return torch.cat([again.reshape(-1), offsets[-1:] * count])
