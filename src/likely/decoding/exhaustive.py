"""Exhaustive decoding: the most probable of all sequences, by looking at every one."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ..core.errors import DataError
from ..core.spec import require
from .base import Decoded, Decoding, Paths, Plan, Step, taken, told_alone

__all__ = ["Exhaustive"]

MOST = 1_000_000
"""Sequences that are looked at, over all rows."""


class Exhaustive(Decoding):
    """argmax Σ log p / length^a over all V^length sequences, with a the `length_penalty`: for what is small.

    >>> step = lambda state, tokens: (torch.tensor([[0.6, 0.4], [0.5, 0.5], [0.1, 0.9]]).log()[tokens + state], 1)
    >>> Exhaustive().decode(step, 0, torch.tensor([0]), length=2).tokens.tolist()
    [[1, 1]]
    """

    length_penalty: float = 0.0

    def validate(self) -> None:
        require(0 <= self.length_penalty < float("inf"), self, "length_penalty", "0 or more, and finite")

    def run(self, step: Step, state: Any, first: Tensor, plan: Plan, at: int) -> Decoded:
        rows, paths, last = len(first), Paths.begun(plan, at), first
        whole = plan
        for t in range(at, plan.steps):
            log_probs, state = step(state, last)
            count, tokens = log_probs.shape
            _refuse_many(rows, tokens, plan.steps - at)
            told, done = whole.told(t, paths.ended)
            gains = told_alone(log_probs.double(), told)
            parent = torch.arange(count, device=last.device).repeat_interleave(tokens)
            last = torch.arange(tokens, device=last.device).repeat(count)
            score = (paths.score.unsqueeze(1) + gains).flatten()
            paths = paths.taken(parent).extended(t, last, score, told[parent], done[parent], plan.end)
            state, whole = taken(state, parent), whole.repeated(tokens)
        return paths.best(rows, self.length_penalty)


def _refuse_many(rows: int, tokens: int, steps: int) -> None:
    if rows * tokens**steps > MOST:
        raise DataError(
            f"Exhaustive would look at {tokens}^{steps} sequences for each of {rows} rows; it must be {MOST:,} in all, "
            "or fewer. Use Beam(width=…)."
        )
