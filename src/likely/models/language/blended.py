"""A blend of counts and a network, fitted: what it answers with, and how its weights are found.

    p(z | past) = Σⱼ wⱼₖ pⱼ(z | past),   j counts or network,   k = k(past),      w = argmax Σ log p of held-out tokens

EM climbs it: wⱼₖ ← the mean over held-out tokens with this k of wⱼₖ pⱼ / p.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor

from .kneser_ney import KneserNey
from .texts import sums
from .trained import State, Trained

__all__ = ["Blended", "blend_weights", "kept_apart", "told_apart"]

ROUNDS = 100
"""Of EM; one weight for each k needs few."""


class Blended:
    """Counts and a network; `weight` (order,) is that of the counts where they know k = 0 … order − 1 tokens."""

    def __init__(self, counts: KneserNey, network: Trained, weight: np.ndarray) -> None:
        self.counts, self.network, self.weight = counts, network, weight

    @property
    def device(self) -> torch.device:
        """Where the tensors of its network are."""
        return self.network.device

    def log_prob(self, values: np.ndarray, offsets: np.ndarray) -> np.ndarray:
        """log p of all symbols after the boundary, of each sequence: (n,)."""
        counted, known = self.counts.probabilities(values, offsets)
        learned = np.exp(self.network.token_log_prob(values, offsets))
        weight = self.weight[known]
        return sums(np.log(weight * counted + (1 - weight) * learned), offsets)

    def following(self, values: np.ndarray, offsets: np.ndarray) -> Tensor:
        """log p of all that may come after each sequence, (n, outputs)."""
        recent = self.counts.recent(values, offsets)
        return self._mixed(recent, self.network.following(values, offsets))

    def start(self, rows: int) -> tuple[Tensor, State]:
        """The state of so many sequences before their first token."""
        return self.counts.start(rows), self.network.start(rows)

    def step(self, state: tuple[Tensor, State], tokens: Tensor) -> tuple[Tensor, tuple[Tensor, State]]:
        """log p of all that may follow these tokens (n,) and those before, (n, outputs), and the state after them."""
        recent = self.counts.remembered(state[0], tokens.cpu())
        learned, network = self.network.step(state[1], tokens)
        return self._mixed(recent, learned), (recent, network)

    def _mixed(self, recent: Tensor, learned: Tensor) -> Tensor:
        counted, known = self.counts.distribution(recent.numpy())
        weight = self.weight[known][:, None]
        mixed = weight * counted + (1 - weight) * learned.double().exp().cpu().numpy()
        return torch.from_numpy(mixed).log().to(learned.device)


def kept_apart(offsets: np.ndarray, fraction: float) -> np.ndarray:
    """Which symbols after the boundaries are held out: whole texts here and there, or of few texts their ends.

    >>> kept_apart(np.array([0, 11]), 0.2).astype(int)
    array([0, 0, 0, 0, 0, 0, 0, 0, 1, 1])
    """
    lengths = np.diff(offsets) - 1
    texts = np.diff(np.floor(np.arange(len(lengths) + 1) * fraction)) > 0
    if texts.any():
        return np.repeat(texts, lengths)
    place = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    return place >= np.repeat(np.ceil(lengths * (1 - fraction)), lengths)


def told_apart(
    values: np.ndarray, offsets: np.ndarray, apart: np.ndarray, context: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """What it takes to score held-out symbols: their texts, from `context` symbols before the first of them.

    Symbols and offsets, which of those after the boundaries are held out, and the number of the text of each sequence.

    >>> told_apart(np.array([9, 0, 1, 2, 3]), np.array([0, 5]), np.array([False, False, False, True]), 1)
    (array([9, 2, 3]), array([0, 3]), array([False,  True]), array([0]))
    """
    pieces, marks, owner = [], [], []
    for text, (first, last) in enumerate(pairwise(offsets.tolist())):
        own = apart[first - text : last - text - 1]  # as many boundaries came before
        if own.any():
            start = max(0, int(own.argmax()) - context)
            pieces.append(np.concatenate([values[first : first + 1], values[first + 1 + start : last]]))
            marks.append(own[start:])
            owner.append(text)
    if not pieces:
        return values[:0], np.zeros(1, np.int64), apart[:0], np.zeros(0, np.int64)
    return np.concatenate(pieces), np.cumsum([0, *map(len, pieces)]), np.concatenate(marks), np.array(owner)


def blend_weights(counted: Any, learned: Any, known: Any, order: int, times: Any) -> np.ndarray:
    """w of the counts for k = 0 … order − 1, from p of held-out tokens under both; each begins as one of each.

    >>> blend_weights(np.array([0.9, 0.8]), np.array([0.1, 0.1]), np.array([1, 1]), 3, np.ones(2)).round(2)
    array([0.5 , 0.73, 0.5 ])
    """
    weight = np.full(order, 0.5)
    total = np.bincount(known, times, order) + 2.0
    for _ in range(ROUNDS):
        own = weight[known] * counted
        share = own / (own + (1 - weight[known]) * learned)
        weight = (np.bincount(known, times * share, order) + 1.0) / total
    return weight
