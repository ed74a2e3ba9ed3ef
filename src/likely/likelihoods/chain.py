"""Chain: the labels along a sequence, each of which depends on its neighbours; a linear-chain conditional random field.

    log p(y | x) = s[y₁] + Σₜ ηₜ[yₜ] + Σₜ A[yₜ, yₜ₊₁] + e[y_T] − log Z(x)

The network gives the scores ηₜ of each position. Those of neighbours A (K, K), of the first label s and of the last one
e are learned constants. Without them the labels are independent, each a `Categorical`.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from .base import Target
from .categorical import Categorical

if TYPE_CHECKING:
    from ..probability.chains import LabelPaths

__all__ = ["Chain"]


class Chain(Categorical):
    """Chain(classes=None | K): labels of whole sequences, K taken from the data unless given.

    `predict` answers with the most probable labels of a sequence together (Viterbi), `predict_proba` with the
    probabilities of each by itself, `log_prob` with one number for all labels of a row; labels that are missing are
    summed out. Any network that answers at each position will do. Where a row has one label, Chain is `Categorical`.

    Here the second label is what the first one was, and x tells of the first alone:

    >>> from likely import Classifier
    >>> X, y = [[[0.0], [5.0]], [[1.0], [5.0]]] * 8, [["a", "a"], ["b", "b"]] * 8
    >>> Classifier(Chain(), prior="normal(3.0)").fit(X, y).predict([[[0.0], [5.0]], [[1.0], [5.0]]])
    array([['a', 'a'],
           ['b', 'b']], dtype='<U1')
    """

    def coupling(self, target: Target) -> int:
        classes = self.size(target)
        return classes * (classes + 2)

    def joint_log_prob(self, eta: Tensor, y: Tensor, offsets: Tensor) -> Tensor:
        from ..probability.chains import label_log_prob  # compiled, so slow to import where nothing is coupled

        *lead, steps, size = eta.shape
        members = _scores(eta.reshape(-1, steps, size))
        labels = y.expand(*lead, steps).reshape(-1, steps)
        values = [
            label_log_prob(first, last, neighbours, scores, own, offsets)
            for first, last, neighbours, scores, own in zip(*members, labels, strict=True)
        ]
        return torch.stack(values).reshape(*lead, -1)

    def joint(self, eta: Tensor, weights: Tensor, offsets: Tensor, length: int | None = None) -> LabelPaths:
        from ..probability.chains import LabelPaths

        return LabelPaths(*_scores(eta), offsets, weights, length)


def _scores(eta: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Of the first and the last label (members, K), of neighbours (members, K, K), of positions (members, T, K)."""
    classes = (math.isqrt(9 + 4 * eta.shape[-1]) - 3) // 2  # size = K + K (K + 2)
    constants = eta[:, 0, classes:]  # the same at every position
    first, last, neighbours = constants.split([classes, classes, classes**2], -1)
    return first, last, neighbours.unflatten(-1, (classes, classes)), eta[..., :classes]
