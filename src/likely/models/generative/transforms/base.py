"""What a person chooses of a flow's layers: the `transform` axis. A spec builds one layer after the other.

Elementwise transforms move each number by an increasing function whose parameters a network computes from others; then
the Jacobian is triangular, and its log-determinant a sum.
"""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from ....core.spec import Spec

__all__ = ["Transform"]


class Transform(Spec, axis="transform"):
    """How one layer of a flow maps rows."""


class _Elementwise(Transform):
    """An increasing function of one number, by `size` parameters that a network gives for it: raw, without bounds."""

    @property
    def size(self) -> int:
        """Parameters of one number."""
        raise NotImplementedError

    def columns(self, count: int) -> Sequence[int]:
        """Which of so many numbers each of the raw parameters belongs to."""
        raise NotImplementedError

    def forward(self, x: Tensor, raw: Tensor) -> tuple[Tensor, Tensor]:
        """z and log ∂z/∂x of numbers x (…, k) with raw parameters (…, k·size)."""
        raise NotImplementedError

    def inverse(self, z: Tensor, raw: Tensor) -> Tensor:
        """x of z."""
        raise NotImplementedError
