"""Invertible maps of rows, and the volume they stretch: what change of variables needs of each layer of a flow.

    z = f(x; condition),   log |det ∂z/∂x|,   x = f⁻¹(z; condition)

A density is asked for far more often than it is drawn from, so x → z is the direct way, and draws invert it. Features
lie on the last axis: (n, d), or (n, height, width, channels) for images.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from torch import Tensor, nn

__all__ = ["Bijection", "Chain", "per_row"]


class Bijection(nn.Module):
    """An invertible map with parameters."""

    def forward(self, x: Tensor, condition: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """z, and log |det ∂z/∂x| of each row: (n,), or one number where it is the same for all."""
        raise NotImplementedError

    def inverse(self, z: Tensor, condition: Tensor | None = None) -> Tensor:
        """x of z."""
        raise NotImplementedError

    def steps(self, x: Tensor, condition: Tensor | None = None) -> Iterator[Tensor]:
        """Where rows are on their way from x to z, z last."""
        yield self.forward(x, condition)[0]


class Chain(Bijection):
    """One map after the other; log-determinants add up.

    >>> from likely.models.generative.transforms import Permutation
    >>> import torch
    >>> chain = Chain([Permutation((1, 0)), Permutation((1, 0))])
    >>> chain(torch.tensor([[1.0, 2.0]]))[0]
    tensor([[1., 2.]])
    """

    def __init__(self, maps: Iterable[Bijection]) -> None:
        super().__init__()
        self.maps = nn.ModuleList(maps)

    def forward(self, x: Tensor, condition: Tensor | None = None) -> tuple[Tensor, Tensor]:
        total: Tensor | None = None
        for layer in self.maps:
            x, log_det = layer(x, condition)
            total = log_det if total is None else total + log_det
        return x, x.new_zeros(()) if total is None else total

    def inverse(self, z: Tensor, condition: Tensor | None = None) -> Tensor:
        for layer in reversed(self.maps):
            z = layer.inverse(z, condition)  # type: ignore[operator]
        return z

    def steps(self, x: Tensor, condition: Tensor | None = None) -> Iterator[Tensor]:
        for layer in self.maps:
            for x in layer.steps(x, condition):  # type: ignore[operator]  # noqa: B020
                yield x


def per_row(values: Tensor) -> Tensor:
    """The sum over all axes but the first.

    >>> import torch
    >>> per_row(torch.ones(2, 3, 4))
    tensor([12., 12.])
    """
    return values.sum(-1) if values.ndim == 2 else values.flatten(1).sum(1)
