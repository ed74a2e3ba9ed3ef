"""Sampled decoding: tokens are drawn, from all that the model thinks possible or from the more probable part of it."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ..core.random import current_generator
from ..core.spec import is_integer, require
from .base import Decoded, Decoding, Plan, Step, follow

__all__ = ["Sample"]


class Sample(Decoding):
    """yₜ ~ p( · | y_<t)^(1/temperature), among the `top_k` most probable tokens, and the nucleus of mass `top_p`.

    The nucleus is the smallest set of tokens, the most probable first, whose mass is `top_p` or more; of the `top_k`,
    if both are given. A low temperature is near `Greedy`, 1 leaves p as it is. The log-probability of a `Decoded` is
    that under p itself. Draws come from the generator of the call (`likely.core.random.drawing`).

    >>> from likely.core.random import drawing
    >>> step = lambda state, tokens: (torch.tensor([[0.5, 0.3, 0.2]]).log().expand(len(tokens), 3), state)
    >>> with drawing(0):
    ...     Sample(top_p=0.6).decode(step, (), torch.tensor([0]), length=8).tokens.max()
    tensor(1)
    """

    temperature: float = 1.0
    top_k: int | None = None
    top_p: float | None = None

    def validate(self) -> None:
        require(0 < self.temperature < float("inf"), self, "temperature", "above 0 and finite")
        require(self.top_k is None or is_integer(self.top_k), self, "top_k", "a positive integer or None")
        require(self.top_p is None or 0 < self.top_p <= 1, self, "top_p", "above 0 and at most 1, or None")

    def run(self, step: Step, state: Any, first: Tensor, plan: Plan, at: int) -> Decoded:
        return follow(self._drawn, step, state, first, plan, at)

    def probabilities(self, log_probs: Tensor) -> Tensor:
        """What tokens are drawn by, (n, V), from log-probabilities.

        >>> Sample(top_k=2).probabilities(torch.tensor([[0.5, 0.3, 0.2]]).log())
        tensor([[0.6250, 0.3750, 0.0000]])
        """
        scaled = log_probs
        if self.temperature != 1:
            scaled = (log_probs - log_probs.amax(1, keepdim=True)) / self.temperature
        if self.top_k is not None and self.top_k < scaled.shape[1]:
            values, kept = scaled.topk(self.top_k, 1)
            scaled = torch.full_like(scaled, -torch.inf).scatter_(1, kept, values)
        probs = scaled.softmax(1)
        if self.top_p is None or self.top_p == 1:
            return probs
        ordered, order = torch.sort(probs, dim=1, descending=True, stable=True)
        before = ordered.cumsum(1) - ordered  # the mass of what is more probable
        nucleus = torch.zeros_like(probs).scatter_(1, order, torch.where(before < self.top_p, ordered, 0.0))
        return nucleus / nucleus.sum(1, keepdim=True)

    def _drawn(self, log_probs: Tensor) -> Tensor:
        probs = self.probabilities(log_probs)
        return torch.multinomial(probs, 1, generator=current_generator(probs.device)).squeeze(1)
