"""Maps that mix columns between the layers that move them: permutations, and invertible matrices by LU factors."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn

from .bijection import Bijection

__all__ = ["LinearMap", "Permutation", "shuffled"]

LIMIT = 5.0
"""The logarithm of a factor of a matrix lies within ± this."""


class Permutation(Bijection):
    """Columns in another order, which is fixed.

    >>> Permutation((2, 0, 1))(torch.tensor([[10.0, 20.0, 30.0]]))[0]
    tensor([[30., 10., 20.]])
    """

    def __init__(self, order: Sequence[int]) -> None:
        super().__init__()
        self.order = tuple(order)
        back = tuple(int(place) for place in np.argsort(order))
        self._orders = {False: self.order, True: back}
        self._known: dict[tuple[bool, torch.device], Tensor] = {}

    def forward(self, x: Tensor, condition: Tensor | None = None) -> tuple[Tensor, Tensor]:
        return x.index_select(-1, self._index(x, False)), x.new_zeros(())

    def inverse(self, z: Tensor, condition: Tensor | None = None) -> Tensor:
        return z.index_select(-1, self._index(z, True))

    def _index(self, like: Tensor, back: bool) -> Tensor:
        key = (back, like.device)
        if key not in self._known:
            self._known[key] = torch.tensor(self._orders[back], device=like.device)
        return self._known[key]


class LinearMap(Bijection):
    """z = P L U x: a permutation P, unit lower triangular L, upper triangular U with a positive diagonal.

    log |det| = Σ log Uᵢᵢ, for each position of an image (a 1 × 1 convolution). Uᵢᵢ = exp(5 tanh(aᵢ/5)), so that no
    column can be stretched without end. It starts as P.

    >>> LinearMap((1, 0))(torch.tensor([[1.0, 2.0]]))[0]
    tensor([[2., 1.]], grad_fn=<MmBackward0>)
    """

    def __init__(self, order: Sequence[int]) -> None:
        super().__init__()
        width = len(order)
        self.order = tuple(order)
        self.factors = nn.Parameter(torch.zeros(width, width))
        """Off the diagonal: L below and U above; on it, aᵢ."""
        self._rows: dict[tuple[torch.device, torch.dtype], Tensor] = {}

    def forward(self, x: Tensor, condition: Tensor | None = None) -> tuple[Tensor, Tensor]:
        lower, upper, log_scale = self._parts()
        matrix = self._permutation(lower) @ lower @ upper
        return x @ matrix.mT, log_scale.sum() * x.shape[1:-1].numel()

    def inverse(self, z: Tensor, condition: Tensor | None = None) -> Tensor:
        lower, upper, _ = self._parts()
        columns = (z @ self._permutation(lower)).flatten(0, -2).mT
        back = torch.linalg.solve_triangular(lower, columns, upper=False, unitriangular=True)
        return torch.linalg.solve_triangular(upper, back, upper=True).mT.reshape(z.shape)

    def _parts(self) -> tuple[Tensor, Tensor, Tensor]:
        log_scale = LIMIT * (self.factors.diagonal() / LIMIT).tanh()
        one = torch.eye(len(self.order), dtype=log_scale.dtype, device=log_scale.device)
        return self.factors.tril(-1) + one, self.factors.triu(1) + log_scale.exp().diag_embed(), log_scale

    def _permutation(self, like: Tensor) -> Tensor:
        key = (like.device, like.dtype)
        if key not in self._rows:
            self._rows[key] = torch.eye(len(self.order), dtype=like.dtype, device=like.device)[list(self.order)]
        return self._rows[key]


def shuffled(width: int, layer: int) -> tuple[int, ...]:
    """An order of the columns for a layer, the same at every call; of two columns, the other way round.

    >>> shuffled(2, 5), sorted(shuffled(6, 1))
    ((1, 0), [0, 1, 2, 3, 4, 5])
    """
    if width < 3:
        return tuple(range(width))[::-1]
    return tuple(np.random.default_rng((width, layer)).permutation(width).tolist())
