"""Greedy decoding: the most probable token at each step."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from .base import Decoded, Decoding, Plan, Step, follow

__all__ = ["Greedy"]


class Greedy(Decoding):
    """yₜ = argmax p( · | y_<t), which need not lead to the most probable sequence.

    >>> step = lambda state, tokens: (torch.tensor([[0.6, 0.4], [0.1, 0.9]]).log()[tokens], state)
    >>> Greedy().decode(step, (), torch.tensor([0, 1]), length=3).tokens.tolist()
    [[0, 0, 0], [1, 1, 1]]
    """

    def run(self, step: Step, state: Any, first: Tensor, plan: Plan, at: int) -> Decoded:
        return follow(lambda log_probs: torch.argmax(log_probs, 1), step, state, first, plan, at)
