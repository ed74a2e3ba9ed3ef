"""A flow of tables with labels: a chain of labels (and of numbers that are few), and a flow of the others given them.

log p(x) = log p(labels) + log p(numbers | labels)
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from ..emissions import Columns
from .features import Features
from .flow_module import FlowModule
from .masked_density import MaskedDensity
from .module import DensityModule

__all__ = ["TableFlow", "columns_among"]


class TableFlow(DensityModule):
    """`labels` and `numbers` are the columns of each part.

    The flow is `told` the labels, one-hot, and the rounded numbers that stand among them, in their units.
    """

    def __init__(
        self, labels: list[int], numbers: list[int], chain: MaskedDensity, told: Features, flow: FlowModule
    ) -> None:
        super().__init__()
        self.labels, self.numbers = tuple(labels), tuple(numbers)
        self.chain, self.told, self.flow = chain, told, flow
        self.steps = {numbers[column]: step for column, step in flow.steps.items()}
        self._known: dict[tuple[bool, torch.device], Tensor] = {}

    @torch.no_grad()
    def adapt(self, x: Tensor, condition: Tensor | None, weight: Tensor | None) -> None:
        labels = self._labels(x)
        self.chain.adapt(labels, condition, weight)
        self.told.adapt(labels, weight)
        self.flow.adapt(self._numbers(x), None, weight)

    def forward(self, x: Tensor, condition: Tensor | None = None) -> Tensor:
        labels = self._labels(x)
        return self.chain(labels, condition) + self.flow(self._numbers(x), self._told(labels, condition))

    def log_prob(self, x: Tensor, condition: Tensor | None = None, draws: int = 1) -> Any:
        labels = self._labels(x)
        numbers = self.flow.log_prob(self._numbers(x), self._told(labels, condition), draws)
        chain = self.chain.log_prob(labels, condition)
        return (chain + numbers[0], numbers[1]) if isinstance(numbers, tuple) else chain + numbers

    def sample(self, count: int, condition: Tensor | None = None) -> Tensor:
        labels = self.chain.sample(count, condition).to(self.flow.units.scale.dtype)
        numbers = self.flow.sample(count, self._told(labels, condition))
        rows = numbers.new_empty(count, len(self.labels) + len(self.numbers))
        rows[:, self.labels], rows[:, self.numbers] = labels, numbers
        return rows

    def complete(self, x: Tensor, condition: Tensor | None, draws: int) -> Tensor:
        return self.flow.proposals.complete(self, x, condition, draws, self.labels)

    def _told(self, labels: Tensor, condition: Tensor | None) -> Tensor:
        """What the numbers are conditioned on."""
        told = self.told(labels)
        return told if condition is None else torch.cat([told, condition.flatten(1)], -1)

    def _labels(self, x: Tensor) -> Tensor:
        return x.index_select(1, self._index(x, True))

    def _numbers(self, x: Tensor) -> Tensor:
        return x.index_select(1, self._index(x, False))

    def _index(self, like: Tensor, labels: bool) -> Tensor:
        key = (labels, like.device)
        if key not in self._known:
            self._known[key] = torch.tensor(self.labels if labels else self.numbers, device=like.device)
        return self._known[key]


def columns_among(columns: Columns, some: list[int]) -> Columns:
    """The likelihoods of some of the columns, which then stand side by side.

    >>> from likely.models.generative.observed import columns_of
    >>> columns = columns_of("auto", torch.tensor([[1.5, 0.0, 2.5, 1.0], [2.5, 1.0, 0.5, 0.0]]))
    >>> [(part.likelihood, part.columns) for part in columns_among(columns, [1, 3]).parts]
    [(Bernoulli(), slice(0, 1, None)), (Bernoulli(), slice(1, 2, None))]
    """
    parts, start = [], 0
    for part in columns.parts:
        for index, column in enumerate(range(part.columns.start, part.columns.stop)):
            if column in some:
                parts.append(replace(part, columns=slice(start, start + 1), names=part.names[index : index + 1]))
                start += 1
    return Columns(parts)
