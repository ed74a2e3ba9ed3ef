"""Changes of values: noise, binary pixels, patches left out, and pairs of rows blended."""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import Tensor

from ...core.errors import DataError, SpecError
from ...core.spec import require
from ..rows import Inputs, Rows
from .base import Augment, Triple, aligned, axes_of, floats

__all__ = ["Binarise", "Cutout", "Jitter", "Mixup"]


class Jitter(Augment):
    """Add Gaussian noise of this standard deviation to every number; rows of any kind.

    >>> Jitter(0.0)(torch.ones(1, 2))
    tensor([[1., 1.]])
    """

    scale: float = 0.1

    def validate(self) -> None:
        require(self.scale >= 0, self, "scale", "0 or more")

    def change(self, x: Inputs) -> Inputs:
        if isinstance(x, Rows):
            return x.map(self.change)  # type: ignore[arg-type]
        return x + self.scale * torch.randn_like(floats(self, x))


class Binarise(Augment):
    """Every number p between 0 and 1 becomes 1 with probability p, else 0: grey pixels as draws of binary ones.

    >>> Binarise()(torch.tensor([[0.0, 1.0]]))
    tensor([[0., 1.]])
    """

    makes_rows: ClassVar[bool] = True

    def change(self, x: Any) -> Tensor:
        within = not isinstance(x, Rows) and bool((floats(self, x).amin() >= 0) & (x.amax() <= 1))
        if not within:
            raise DataError(f"{self!r} needs numbers between 0 and 1, such as pixels divided by 255.")
        return (torch.rand_like(x) < x).to(x)


class Cutout(Augment):
    """Set a square (of a signal, a stretch) of this size to 0, with its centre at random; at the border it is cut.

    >>> int((Cutout(3)(torch.ones(1, 1, 9, 9)) == 0).sum()) in (4, 6, 9)
    True
    """

    size: int = 4

    def validate(self) -> None:
        require(self.size >= 0, self, "size", "0 or more positions")

    def change(self, x: Any) -> Tensor:
        hole = torch.ones((1,) * x.ndim, dtype=torch.bool, device=x.device)
        for axis in axes_of(self, x):
            positions = torch.arange(x.shape[axis], device=x.device)
            first = torch.randint(x.shape[axis], (len(x), 1), device=x.device) - self.size // 2
            hole = hole & aligned((positions >= first) & (positions < first + self.size), x, axis)
        return torch.where(hole, 0, x)


class Mixup(Augment):
    """Train between rows: x = λxᵢ + (1 − λ)xⱼ has the targets yᵢ with weight λ and yⱼ with weight 1 − λ.

    λ ~ Beta(alpha, alpha) for each row, j another row of the batch; works for targets of every kind. The batch comes
    twice, once with each target.

    >>> x, y, weight = Mixup(1.0).batch(torch.rand(4, 3), torch.arange(4), None)
    >>> x.shape, y.shape, float(weight.sum().round())
    (torch.Size([8, 3]), torch.Size([8]), 4.0)
    """

    alpha: float = 0.2

    def validate(self) -> None:
        require(0 <= self.alpha < torch.inf, self, "alpha", "0 or a positive number")

    def change(self, x: Any) -> Any:
        if self.alpha:
            raise SpecError("Mixup changes targets too; it works in training only: MAP(augment=Mixup()).")
        return x

    def batch(self, x: Any, y: Tensor, weight: Tensor | None, positions: tuple[int, ...] = ()) -> Triple:
        if not self.alpha:
            return x, y, weight
        if isinstance(x, Rows):
            raise DataError(f"{self!r} needs rows of one shape; X has {x.kind}s, of which none lies between two.")
        alpha = torch.full((len(x),), self.alpha, dtype=torch.float64)
        fraction = torch.distributions.Beta(alpha, alpha).sample().to(floats(self, x))
        other = torch.randperm(len(x)).to(x.device)
        along = fraction.view(-1, *(1,) * (x.ndim - 1))
        mixed = along * x + (1 - along) * x[other]
        weights = x.new_ones(len(x), *positions) if weight is None else weight
        own = fraction.view(-1, *(1,) * (weights.ndim - 1))
        mixed, both = torch.cat([mixed, mixed]), torch.cat([own * weights, (1 - own) * weights[other]])
        return mixed, torch.cat([y, y[other]]), both
