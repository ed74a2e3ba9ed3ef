"""Averages of weights along the way of training: often better, and calmer, than where the way ends.

EMA   θ̄ₜ = Σₛ βᵗ⁻ˢ θₛ / Σₛ βᵗ⁻ˢ            exponential moving average over the steps s ≤ t
SWA   θ̄ = mean of θ at the end of every epoch of the last part of training      (stochastic weight averaging)
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ...core.spec import Spec, require

__all__ = ["EMA", "SWA", "Average"]


class Average(Spec, axis="average"):
    """How the weights met in training are averaged: by the weight that each new one gets."""

    def weight(self, step: int, length: int, every: int, taken: int) -> float:
        """θ̄ ← θ̄ + weight·(θ − θ̄) after a step (counted from 1) of `length`, `every` of which are an epoch.

        `taken` says how many θ are in the average already; 0 leaves this one out.
        """
        raise NotImplementedError(f"{type(self).__name__} must weigh")


class EMA(Average):
    """The exponential moving average: a step that lies k steps back counts `decay`ᵏ, without a bias to the start.

    >>> [round(EMA(0.5).weight(step, 10, 1, step - 1), 4) for step in (1, 2, 3)]
    [1.0, 0.6667, 0.5714]
    """

    decay: float = 0.999

    def validate(self) -> None:
        """A decay is a fraction."""
        require(0 < self.decay < 1, self, "decay", "a number between 0 and 1")

    def weight(self, step: int, length: int, every: int, taken: int) -> float:
        return (1 - self.decay) / (1 - self.decay ** (taken + 1))


class SWA(Average):
    """Stochastic weight averaging: the mean of the weights at the ends of epochs, from the fraction `start` on.

    >>> [round(SWA(0.5).weight(step, 4, 1, taken), 4) for step, taken in ((1, 0), (2, 0), (3, 0), (4, 1))]
    [0.0, 0.0, 1.0, 0.5]
    """

    start: float = 0.75

    def validate(self) -> None:
        """A start is a fraction of all steps."""
        require(0 <= self.start < 1, self, "start", "a fraction of training, 0 or more and below 1")

    def weight(self, step: int, length: int, every: int, taken: int) -> float:
        return 1 / (taken + 1) if step % every == 0 and step > self.start * length else 0.0


class Averaged:
    """The average so far of a vector that changes from step to step."""

    def __init__(self, spec: Average, flat: Tensor, length: int, every: int) -> None:
        self.spec, self.length, self.every = spec, length, every
        self.mean, self.taken = flat.clone(), 0

    @torch.no_grad()
    def take(self, flat: Tensor, step: int) -> None:
        """Take in the vector after this step, counted from 1."""
        weight = self.spec.weight(step, self.length, self.every, self.taken)
        if weight:
            self.mean.lerp_(flat, weight)
            self.taken += 1

    def state(self) -> dict[str, Any]:
        """For a checkpoint."""
        return {"mean": self.mean, "taken": self.taken}

    def restore(self, state: dict[str, Any]) -> None:
        """The inverse of `state`."""
        self.mean.copy_(state["mean"])
        self.taken = state["taken"]
