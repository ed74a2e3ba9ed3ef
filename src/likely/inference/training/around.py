"""An inference around another one: what it says of itself follows from the one inside."""

from __future__ import annotations

from typing import ClassVar

import torch

from ...core.spec import as_spec
from ..problem import Inference

__all__: list[str] = []


class _Around(Inference):
    """Does something before, after or beside the inference in its field `by`."""

    asks: ClassVar[frozenset[str]] = frozenset()
    """What it needs of a problem besides what the inference inside needs."""

    def validate(self) -> None:
        """`by` may be given as text."""
        object.__setattr__(self, "by", as_spec(self.inside, Inference, "by"))

    @property
    def inside(self) -> Inference:
        """The inference that it is around."""
        inside: Inference = self.by  # type: ignore[attr-defined]  # a field of each, in the place that its call has
        return inside

    @property
    def dtype(self) -> torch.dtype:  # type: ignore[override]
        """That of the inference inside."""
        return self.inside.dtype

    @property
    def descends(self) -> bool:  # type: ignore[override]
        """Whether the inference inside goes on from given parameters."""
        return self.inside.descends

    @property
    def needs(self) -> frozenset[str]:  # type: ignore[override]
        """What the inference inside needs, and what this one asks for besides."""
        return self.inside.needs | self.asks
