"""What a trained masked language model says of texts: each token from those around it.

    p(zₜ | z₋ₜ) = Σₛ wₛ pₛ(zₜ | z_a … zₜ₋₁, mask, zₜ₊₁ … z_b)

The window a … b has `context` tokens with t in its middle, or as near to it as the ends of the text allow.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from ...core.threads import threads_for
from ...inference import Posterior
from ..generative.module import ask
from .windows import ABSENT

__all__ = ["Reader", "window_around"]

BLOCK = 1 << 14
"""Tokens that are read at once."""


class Reader:
    """The answers of a posterior's members, averaged; `work` is that of one token in its largest operation."""

    def __init__(self, posterior: Posterior, context: int, tokens: int, work: float = 0.0) -> None:
        self.posterior, self.context, self.tokens, self.work = posterior, context, tokens, work

    def at(
        self, values: np.ndarray, offsets: np.ndarray, owner: np.ndarray, place: np.ndarray
    ) -> Iterator[tuple[slice, Tensor]]:
        """log p of all tokens at these places of these texts, given the rest: blocks of (b, tokens), one by one."""
        lengths = np.diff(offsets)
        start = window_around(place, lengths[owner], self.context)
        first, inside = offsets[owner] + start, place - start
        width = np.minimum(lengths[owner] - start, self.context)
        step = max(1, BLOCK // max(1, int(width.max(initial=1))))
        for begin in range(0, len(owner), step):
            rows = slice(begin, begin + step)
            x = _cut(values, first[rows], width[rows])
            x[np.arange(len(x)), inside[rows]] = self.tokens  # the mask
            yield rows, self._mixed("at", x, inside[rows])

    def follows(self, x: Tensor, boundary: Tensor) -> np.ndarray:
        """The probability that what comes after the boundary belongs there, (n,)."""
        answers = []
        step = max(1, BLOCK // x.shape[1])
        for begin in range(0, len(x), step):
            rows = slice(begin, begin + step)
            answers.append(self._members("follows", x[rows].numpy(), boundary[rows].numpy()).sigmoid())
        probabilities = torch.cat(answers, 1)
        return (self._weights().unsqueeze(1) * probabilities).sum(0).numpy()

    def vectors(self, values: np.ndarray, offsets: np.ndarray, row: np.ndarray) -> np.ndarray:
        """The mean over the tokens of each row of what the network makes of them, (n, width), members side by side.

        `row` says which row each text belongs to; no text is read together with another.
        """
        lengths = np.diff(offsets)
        count = -(-lengths // self.context)
        owner = np.repeat(np.arange(len(lengths)), count)
        start = (np.arange(len(owner)) - (np.cumsum(count) - count)[owner]) * self.context
        width = np.minimum(lengths[owner] - start, self.context)
        tokens = torch.from_numpy(np.bincount(row, lengths))
        step, total = max(1, BLOCK // int(width.max())), None
        for begin in range(0, len(owner), step):
            part = slice(begin, begin + step)
            sums = self._members("total", _cut(values, (offsets[owner] + start)[part], width[part]))
            if total is None:
                total = torch.zeros(len(sums), len(tokens), sums.shape[-1], dtype=torch.float64)
            total.index_add_(1, torch.from_numpy(row[owner[part]]), sums)
        assert total is not None
        return (total / tokens.unsqueeze(1)).movedim(0, 1).flatten(1).numpy()

    def _weights(self) -> Tensor:
        return self.posterior.weights.double().cpu()

    def _members(self, question: str, x: np.ndarray, *more: np.ndarray) -> Tensor:
        """What each member answers, in double precision."""
        device = self.posterior.weights.device
        arguments = [torch.from_numpy(part).to(device) for part in (x, *more)]
        with threads_for(self.work * x.size):
            members = range(len(self.posterior.weights))
            return torch.stack([ask(self.posterior, member, question, *arguments).double().cpu() for member in members])

    def _mixed(self, question: str, x: np.ndarray, *more: np.ndarray) -> Tensor:
        answers = self._members(question, x, *more)
        if len(answers) == 1:
            return answers[0]
        return torch.logsumexp(answers + self._weights().log().view(-1, 1, 1), 0)


def window_around(place: np.ndarray, length: np.ndarray, context: int) -> np.ndarray:
    """Where windows of `context` tokens begin that have these places in their middle, within texts of these lengths.

    >>> window_around(np.array([0, 5, 9]), np.array([10, 10, 10]), 4)
    array([0, 3, 6])
    """
    return np.clip(place - context // 2, 0, np.maximum(length - context, 0))


def _cut(values: np.ndarray, first: np.ndarray, width: np.ndarray) -> np.ndarray:
    """Pieces of values that begin here and are so wide, (n, widest): ABSENT after the end of each."""
    at = np.arange(int(width.max()))
    x = values[np.minimum(first[:, None] + at, len(values) - 1)]
    return np.where(at < width[:, None], x, ABSENT)
