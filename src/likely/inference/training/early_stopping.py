"""Early stopping: each member keeps the weights that validate best, and waits only so long for better ones."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

__all__ = ["Best"]


class Best:
    """The best weights so far of each member, and how many epochs each has waited for better ones."""

    def __init__(self, members: int, patience: int | None) -> None:
        self.members, self.patience = members, patience or math.inf
        self.scores = torch.full((members,), math.inf, dtype=torch.float64)
        self.waited = [0] * members
        self.tensors: list[Tensor] = []

    def update(self, scores: Tensor, tensors: list[Tensor]) -> bool:
        """Take in the scores (lower is better) of an epoch; says whether every member's patience has run out."""
        waiting = torch.tensor([waited < self.patience for waited in self.waited])
        better = (scores.cpu() < self.scores) & waiting
        if not self.tensors:
            self.tensors = [t.detach().clone() for t in tensors]
        for kept, now in zip(self.tensors, tensors, strict=True):
            if self.members > 1:
                kept[better] = now.detach()[better]
            elif better[0]:
                kept.copy_(now.detach())
        self.scores = torch.where(better, scores.cpu(), self.scores)
        self.waited = [0 if b else waited + 1 for b, waited in zip(better.tolist(), self.waited, strict=True)]
        return all(waited >= self.patience for waited in self.waited)

    def state(self) -> dict[str, Any]:
        """For a checkpoint."""
        return {"scores": self.scores, "waited": self.waited, "tensors": self.tensors}

    def restore(self, state: dict[str, Any]) -> None:
        """The inverse of `state`."""
        self.scores, self.waited, self.tensors = state["scores"], state["waited"], state["tensors"]
