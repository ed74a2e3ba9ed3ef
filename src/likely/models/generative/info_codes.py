"""Codes of a generator that can be read off its rows: a bound on the information that rows hold of them.

    c ~ uniform,   x = G(z, c):      I(c; x) ≥ H(c) + E log Q(c | x)

The reader Q is a network of its own; it and the generator raise the bound together (InfoGAN: Chen et al., 2016).
"""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor
from torch.distributions import Normal
from torch.nn.functional import cross_entropy, one_hot, softplus

from ...core.errors import DataError
from ...core.random import current_generator
from ...core.spec import Spec, is_integer, require
from ...optim.base import is_number

__all__ = ["Codes", "as_codes"]

NARROW = 1e-2
"""The least standard deviation with which a reader tells a number."""


class Codes(Spec, axis="codes"):
    """A label for each of `categories`, all equally likely, and so many `numbers`, uniform from −1 to 1.

    The generator's loss has `weight` times −E log Q(c | x) in it. Codes of rows are an array with the labels first,
    (n, len(categories) + numbers).

    >>> codes = Codes((3,), numbers=1)
    >>> codes.encode(torch.tensor([[2.0, 0.5]]))
    tensor([[0.0000, 0.0000, 1.0000, 0.5000]])
    >>> round(codes.entropy, 4)
    1.7918
    """

    categories: tuple[int, ...] = (10,)
    numbers: int = 0
    weight: float = 1.0

    @classmethod
    def example(cls) -> Self:
        return cls((2,), numbers=1)

    def validate(self) -> None:
        several = isinstance(self.categories, tuple) and all(is_integer(own, 2) for own in self.categories)
        require(several, self, "categories", "a tuple of integers, each 2 or more, such as (10,)")
        require(is_integer(self.numbers, 0), self, "numbers", "an integer, 0 or more")
        require(bool(self.categories) or self.numbers > 0, self, "categories", "one or more, where numbers is 0")
        require(is_number(self.weight) and self.weight > 0, self, "weight", "a number above 0")

    @property
    def columns(self) -> int:
        """Of an array of codes."""
        return len(self.categories) + self.numbers

    @property
    def width(self) -> int:
        """Inputs of a generator: labels are one-hot."""
        return sum(self.categories) + self.numbers

    @property
    def answers(self) -> int:
        """Outputs of a reader: a logit for each category; a mean and a scale for each number."""
        return sum(self.categories) + 2 * self.numbers

    @property
    def entropy(self) -> float:
        """H(c) in nats."""
        return sum(math.log(own) for own in self.categories) + self.numbers * math.log(2)

    def drawn(self, count: int, like: Tensor) -> Tensor:
        """Codes at random, (count, columns)."""
        chance = like.new_empty(count, self.columns).uniform_(generator=current_generator(like.device))
        classes = chance.new_tensor(self.categories)
        labels = (chance[:, : len(classes)] * classes).floor().minimum(classes - 1)
        return torch.cat([labels, 2 * chance[:, len(classes) :] - 1], 1)

    def encode(self, codes: Tensor) -> Tensor:
        """As a generator reads them, (n, width)."""
        labels = [one_hot(codes[:, place].long(), own).to(codes) for place, own in enumerate(self.categories)]
        return torch.cat([*labels, codes[:, len(self.categories) :]], 1)

    def checked(self, codes: Tensor, count: int) -> Tensor:
        """Codes that someone asked for: one row for all, or one for each; a `DataError` names what will not do."""
        codes = codes.reshape(-1, 1) if codes.ndim < 2 and self.columns == 1 else codes
        codes = codes[None] if codes.ndim == 1 else codes
        if codes.ndim != 2 or codes.shape[1] != self.columns or len(codes) not in (1, count):
            shape = tuple(codes.shape)
            raise DataError(f"codes has shape {shape}; it must be (1, {self.columns}) or ({count}, {self.columns}).")
        for place, own in enumerate(self.categories):
            label = codes[:, place]
            if not bool(((label == label.round()) & (label >= 0) & (label < own)).all()):
                raise DataError(f"codes: column {place} has labels, which must be integers from 0 to {own - 1}.")
        if not bool(codes.isfinite().all()):
            raise DataError("codes has values that are not finite.")
        return codes.expand(count, -1)

    # --- what a reader says -------------------------------------------------------------------------------------
    def surprise(self, answer: Tensor, codes: Tensor) -> Tensor:
        """−log Q(c | x) of each row, (n,), from the answer of a reader (n, answers)."""
        total = answer.new_zeros(len(answer))
        logits, means, scales = self._parts(answer)
        for place, own in enumerate(logits):
            total = total + cross_entropy(own, codes[:, place].long(), reduction="none")
        normal = Normal(means, scales, validate_args=False)
        return total - normal.log_prob(codes[:, len(logits) :]).sum(1)

    def read(self, answer: Tensor) -> Tensor:
        """Probabilities of the categories and means of the numbers, (n, width)."""
        logits, means, _ = self._parts(answer)
        return torch.cat([*(own.softmax(1) for own in logits), means], 1)

    def _parts(self, answer: Tensor) -> tuple[list[Tensor], Tensor, Tensor]:
        """Logits of each category, means and standard deviations of numbers."""
        *logits, means, scales = answer.split([*self.categories, self.numbers, self.numbers], 1)
        return list(logits), means, softplus(scales) + NARROW


def as_codes(codes: Any) -> Tensor:
    """An array of numbers, whatever holds them; a `DataError` if they are none."""
    try:
        return torch.from_numpy(np.asarray(codes, dtype=np.float64))
    except (TypeError, ValueError) as error:
        raise DataError(f"codes must be numbers: labels first, then numbers from −1 to 1; {error}.") from error
