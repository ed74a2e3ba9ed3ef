"""log p of the labels of whole rows, under a random field along a chain, with its gradient in one compiled pass.

    log p(y) = s[y₁] + Σₜ eₜ[yₜ] + Σₜ A[yₜ, yₜ₊₁] + l[y_T] − log Z,      Z = Σ over all paths of exp(score)

A label that is not known is summed over, above and below: p(known) = Z(paths that agree) / Z. The gradient is what was
seen less what is expected: ∂ log p / ∂ eₜ(j) = p(yₜ = j | known) − p(yₜ = j), and alike for pairs of neighbours.
"""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import torch
from numba import njit
from torch import Tensor

from ...core.doors import check_indices, check_sizes
from ...core.errors import DataError
from .chain import as_array, filter_scores, smooth_scores
from .forward_backward import Memory

__all__ = ["label_log_prob", "row_starts", "with_last"]

Scores = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
"""Of the first and of the last label, of pairs of neighbours, of the label at each position."""
_KEPT = threading.local()
"""Working memory of the steps of a fit, which need the same again and again; each thread has its own."""


def label_log_prob(
    first: Tensor, last: Tensor, transition: Tensor, emission: Tensor, y: Tensor, offsets: Tensor
) -> Tensor:
    """log p(y) of each row, (n,), differentiable once in the scores; a label that is NaN is summed out.

    Scores of the first and of the last label are (K,), `transition` is (K, K), `emission` (T, K) and y (T,): rows come
    one after the other and start at these offsets (n + 1,).

    >>> emission, nothing = torch.tensor([[1.0, 0.0], [0.0, 2.0]]), torch.zeros(2)
    >>> label_log_prob(nothing, nothing, torch.zeros(2, 2), emission, torch.tensor([0, 1]), torch.tensor([0, 2]))
    tensor([-0.4402])
    >>> emission.log_softmax(1).diagonal().sum()                                  # nothing couples them
    tensor(-0.4402)
    """
    return _LabelLogProb.apply(first, last, transition, emission, y, row_starts(offsets))  # type: ignore[no-any-return]


def row_starts(offsets: Tensor) -> np.ndarray:
    """Where rows start, as compiled loops take it; each has a position at least."""
    starts = offsets.cpu().numpy().astype(np.int64, copy=False)
    empty = starts[1:] <= starts[:-1]
    if empty.any():
        raise DataError(f"row {int(empty.argmax())} is empty, so it has no labels; leave it out.")
    return starts


def with_last(emission: np.ndarray, last: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """Emission scores (T, K) with those of the last label added where rows end."""
    whole = emission.copy()
    whole[starts[1:] - 1] += last
    return whole


class _LabelLogProb(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, first: Tensor, last: Tensor, transition: Tensor, emission: Tensor, y: Tensor, starts: np.ndarray
    ) -> Tensor:
        ctx.given = (first, last, transition, emission)
        ctx.starts = starts
        ctx.scores = (as_array(first), as_array(last), as_array(transition), as_array(emission))
        ctx.labels = _as_labels(y)
        check_sizes("label_log_prob", {"emission": (ctx.scores[3], "T K"), "y": (ctx.labels, "T")})
        check_indices("label_log_prob", "labels", ctx.labels, emission.shape[1], least=-1)
        if not any(ctx.needs_input_grad):
            return torch.from_numpy(_value(ctx.scores, ctx.labels, starts)).to(emission)
        value, parts = _value_and_grad(ctx.scores, ctx.labels, starts, np.ones(len(starts) - 1))
        ctx.gradients = _copied(parts, ctx.given)
        return torch.from_numpy(value).to(emission)

    @staticmethod
    @torch.autograd.function.once_differentiable  # type: ignore[untyped-decorator]
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        weight = as_array(gradient)
        if (weight == weight[0]).all():  # rows count alike, as they do in most fits: what was found for 1 is scaled
            return (*(part * weight[0] for part in ctx.gradients), None, None)
        _, parts = _value_and_grad(ctx.scores, ctx.labels, ctx.starts, weight)
        return (*_copied(parts, ctx.given), None, None)


def _as_labels(y: Tensor) -> np.ndarray:
    """Labels as integers, −1 where one is not known: among integers all are."""
    if not y.is_floating_point():
        return y.numpy(force=True).astype(np.int64, copy=False)
    labels = y.detach().double().cpu().numpy()
    return np.where(np.isnan(labels), -1.0, labels).astype(np.int64)


def _copied(parts: list[np.ndarray], like: tuple[Tensor, ...]) -> list[Tensor]:
    """Out of memory that is used again, in the dtype of what they are gradients of."""
    return [torch.from_numpy(part).to(own.device, own.dtype, copy=True) for part, own in zip(parts, like, strict=True)]


def _value(scores: Scores, labels: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """log p of the known labels of each row; −1 is one that is not known."""
    first, last, transition, emission = scores
    whole = with_last(emission, last, starts)
    below, _ = filter_scores(first, transition, whole, starts)
    above, _ = filter_scores(first, transition, _agreeing(whole, labels), starts)
    return above - below


def _value_and_grad(
    scores: Scores, labels: np.ndarray, starts: np.ndarray, weight: np.ndarray
) -> tuple[np.ndarray, list[np.ndarray]]:
    """The same, and the gradient of Σ w log p in each of the scores."""
    first, last, transition, emission = scores
    whole = with_last(emission, last, starts)
    if not hasattr(_KEPT, "memory"):
        _KEPT.memory = Memory()
    log_sum, *expected = smooth_scores(first, transition, whole, starts, weight, _KEPT.memory)
    if labels.min() >= 0:
        value = np.empty(len(starts) - 1)
        _seen_less_expected(first, transition, whole, labels, starts, weight, *expected, value)
        of_first, of_pairs, of_labels = expected
        value -= log_sum
    else:
        above, *seen = smooth_scores(first, transition, _agreeing(whole, labels), starts, weight)
        of_first, of_pairs, of_labels = (own - other for own, other in zip(seen, expected, strict=True))
        value = above - log_sum
    return value, [of_first, of_labels[starts[1:] - 1].sum(0), of_pairs, of_labels]


def _agreeing(emission: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """−∞ for every label but the known one."""
    other = (labels[:, None] >= 0) & (labels[:, None] != np.arange(emission.shape[1]))
    return np.where(other, -np.inf, emission)


@njit(cache=True, nogil=True, error_model="numpy")  # type: ignore[untyped-decorator]
def _seen_less_expected(
    first: np.ndarray,
    transition: np.ndarray,
    emission: np.ndarray,
    labels: np.ndarray,
    starts: np.ndarray,
    weight: np.ndarray,
    of_first: np.ndarray,
    of_pairs: np.ndarray,
    of_labels: np.ndarray,
    value: np.ndarray,
) -> None:
    """The score of each path of labels; the expected counts become those of the paths less these."""
    of_first *= -1.0
    of_pairs *= -1.0
    of_labels *= -1.0
    for n in range(starts.shape[0] - 1):
        before = labels[starts[n]]
        score = first[before]
        of_first[before] += weight[n]
        for t in range(starts[n], starts[n + 1]):
            own = labels[t]
            score += emission[t, own]
            of_labels[t, own] += weight[n]
            if t > starts[n]:
                score += transition[before, own]
                of_pairs[before, own] += weight[n]
            before = own
        value[n] = score
