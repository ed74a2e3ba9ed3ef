"""Beam search: the `width` best beginnings are kept at each step."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ..core.spec import is_integer, require
from .base import Decoded, Decoding, Paths, Plan, Step, merit, taken, told_alone

__all__ = ["Beam"]


class Beam(Decoding):
    """The best of what is left when only the `width` best beginnings are followed, and the greedy one beside them.

    So it is never worse than `Greedy`, and for width ≥ V^length it is `Exhaustive`. Best is Σ log p / length^a with
    a the `length_penalty`: 0 compares log-probabilities, 1 their means, which favours longer sequences.

    >>> step = lambda state, tokens: (torch.tensor([[0.6, 0.4], [0.5, 0.5], [0.1, 0.9]]).log()[tokens + state], 1)
    >>> [way.decode(step, 0, torch.tensor([0]), length=2).tokens.tolist() for way in (Beam(1), Beam(2))]
    [[[0, 0]], [[1, 1]]]
    """

    width: int = 4
    length_penalty: float = 0.0

    def validate(self) -> None:
        require(is_integer(self.width), self, "width", "a positive integer")
        require(0 <= self.length_penalty < float("inf"), self, "length_penalty", "0 or more, and finite")

    def run(self, step: Step, state: Any, first: Tensor, plan: Plan, at: int) -> Decoded:
        rows, size = len(first), self.width + 1  # the first of each row's hypotheses is the greedy one
        whole, number = plan.repeated(size), torch.arange(rows, device=first.device).repeat_interleave(size)
        state, last = taken(state, number), first[number]
        paths = Paths.begun(plan, at).taken(number)
        paths.score.view(rows, size)[:, 2:] = -torch.inf  # what is there twice is one hypothesis
        for t in range(at, plan.steps):
            log_probs, state = step(state, last)
            told, done = whole.told(t, paths.ended)
            gains = told_alone(log_probs.double(), told)
            parent, token = self._chosen(paths, gains, told, rows)
            score = paths.score[parent] + gains[parent, token]
            told, done = told[parent], done[parent]
            paths = paths.taken(parent).extended(t, token, score, told, done, plan.end)
            state, last = taken(state, parent), token
            if plan.end is not None and bool((paths.ended | (whole.limit <= t + 1)).all()):
                break
        return paths.best(rows, self.length_penalty)

    def _chosen(self, paths: Paths, gains: Tensor, told: Tensor, rows: int) -> tuple[Tensor, Tensor]:
        """Which hypotheses go on, and with which tokens: the greedy one, then the best of all others, row by row."""
        size, tokens = self.width + 1, gains.shape[1]
        longer = (paths.chosen + (told < 0)).unsqueeze(1)
        merits = merit(paths.score.unsqueeze(1) + gains, longer, self.length_penalty).view(rows, size, tokens)
        best = merits[:, 1:].flatten(1).topk(self.width, 1).indices
        start = torch.arange(rows, device=gains.device).unsqueeze(1) * size
        parent = torch.cat([start, start + 1 + best // tokens], 1)
        greedy = gains.view(rows, size, tokens)[:, 0].argmax(1, keepdim=True)
        return parent.flatten(), torch.cat([greedy, best % tokens], 1).flatten()
