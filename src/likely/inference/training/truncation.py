"""Truncated back-propagation through time: how far gradients go back through the steps of a sequence.

    ∂L/∂θ = Σ_t Σ_{s ≤ t} ∂L/∂h_t (Π_{s < r ≤ t} ∂h_r/∂h_{r−1}) ∂h_s/∂θ

Outputs stay the same; some of the products over r are left out.

    fixed   the sequence is cut every k steps, and no gradient passes a cut
    hard    cut at random, at each step with probability 1/k: runs have geometric lengths with mean k
    soft    as hard, and what passes a step is divided by 1 − 1/k, the probability that it does: the mean of the
            gradient over the cuts is the whole gradient, at the price of its variance
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Literal

import torch
from torch import nn

from ...core.errors import SpecError
from ...core.random import current_generator
from ...core.spec import Spec, require

__all__ = ["Truncation", "truncated"]

KINDS = ("fixed", "hard", "soft")


class Truncation(Spec, axis="truncation"):
    """Cut gradients through time every `steps` steps ("fixed"), or on average so ("hard", or "soft" without bias).

    >>> Truncation(4).runs(10)
    [(4, 0.0), (4, 0.0), (2, 0.0)]
    >>> sum(length for length, _ in Truncation(4, "hard").runs(10))
    10
    """

    steps: int = 20
    kind: Literal["fixed", "hard", "soft"] = "fixed"

    def validate(self) -> None:
        """A run has a step; for gradients to pass at times, it has two on average."""
        require(self.kind in KINDS, self, "kind", f"one of {', '.join(KINDS)}")
        least = 2 if self.kind == "soft" else 1
        require(self.steps >= least, self, "steps", f"an integer, {least} or more")

    def runs(self, steps: int) -> list[tuple[int, float]]:
        """Lengths of runs that make up so many steps, and the factor of the gradient that leaves each at its start.

        Cuts are drawn from the current generator.
        """
        if self.kind == "fixed":
            whole, rest = divmod(steps, self.steps)
            return [(self.steps, 0.0)] * whole + ([(rest, 0.0)] if rest else [])
        kept = 1 - 1 / self.steps
        passes = (torch.rand(steps, generator=current_generator(), device="cpu") < kept).tolist()
        if self.kind == "soft":
            return [(1, 1 / kept if passed else 0.0) for passed in passes]
        starts = [0, *(step for step in range(1, steps) if not passes[step]), steps]
        return [(stop - start, 0.0) for start, stop in pairwise(starts)]


@contextmanager
def truncated(module: nn.Module, truncation: Truncation | None) -> Iterator[None]:
    """Inside, every layer of the module that goes through time step by step truncates its gradients so."""
    if truncation is None:
        yield
        return
    layers = [layer for layer in module.modules() if hasattr(layer, "truncation")]
    if not layers:
        raise SpecError(
            f"MAP(truncate={truncation!r}): the network has no layer whose gradients go back step by step, as those of "
            "RNN, GRU and LSTM do; leave truncate out."
        )
    before = [layer.truncation for layer in layers]
    try:
        for layer in layers:
            layer.truncation = truncation  # type: ignore[assignment]
        yield
    finally:
        for layer, kept in zip(layers, before, strict=True):
            layer.truncation = kept
