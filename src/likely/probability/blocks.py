"""Many independent rows whose distributions are made when they are asked, a block of rows at a time.

A mixture over many components, such as the nodes of an integral, holds them all for each of its rows. Where few numbers
per row say which mixture it is, those are kept, and each question makes the mixtures of one block after another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor
from torch.distributions import Distribution

__all__ = ["Blocks"]


class Blocks(Distribution):
    """`rows` numbers, one per row; `make(slice)` gives the distribution of those rows, at most `size` of them.

    >>> rates = torch.tensor([1.0, 2.0, 3.0])
    >>> blocks = Blocks(lambda rows: torch.distributions.Poisson(rates[rows]), 3, 2)
    >>> blocks.mean, blocks.sample((5,)).shape
    (tensor([1., 2., 3.]), torch.Size([5, 3]))
    """

    arg_constraints: dict[str, Any] = {}  # noqa: RUF012  torch's own convention

    def __init__(self, make: Callable[[slice], Distribution], rows: int, size: int) -> None:
        self.make, self.size = make, size
        super().__init__(torch.Size([rows]), validate_args=False)

    def parts(self) -> Iterator[tuple[slice, Distribution]]:
        """The distribution of each block, and the rows that it is of."""
        for first in range(0, self.batch_shape[0], self.size):
            rows = slice(first, min(first + self.size, self.batch_shape[0]))
            yield rows, self.make(rows)

    def ask(self, question: Callable[..., Tensor], *values: Tensor) -> Tensor:
        """question(distribution, *values) of each block, with the values (…, rows) of its rows, side by side."""
        stretched = [value.expand(torch.broadcast_shapes(value.shape, self.batch_shape)) for value in values]
        answers = [question(part, *(value[..., rows] for value in stretched)) for rows, part in self.parts()]
        return torch.cat(answers, -1)

    @property
    def support(self) -> Any:  # type: ignore[override]
        """That of the first row."""
        return self.make(slice(0, 1)).support

    @property
    def mean(self) -> Tensor:
        """The means."""
        return self.ask(lambda part: part.mean)

    @property
    def variance(self) -> Tensor:
        """The variances."""
        return self.ask(lambda part: part.variance)

    def log_prob(self, value: Tensor) -> Tensor:
        return self.ask(lambda part, own: part.log_prob(own), value)

    def cdf(self, value: Tensor) -> Tensor:
        return self.ask(lambda part, own: part.cdf(own), value)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        return self.ask(lambda part: part.sample(torch.Size(sample_shape)))
