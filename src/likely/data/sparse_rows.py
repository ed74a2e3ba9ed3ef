"""Rows of which most numbers are 0: what is not is held, with its column. Bags of words, SciPy's sparse matrices.

    X = (values, columns, offsets),      W X by a sparse product, whichever layer asks for it

A linear layer takes such rows as it takes a tensor, so every network that begins with one can be given them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..core.errors import DataError
from .rows import Rows, index_of_parts
from .sparse import Parts, SparseMatrix

__all__ = ["SparseRows"]


class SparseRows(Rows):
    """Rows (n, width): `values` with their `columns`, one row after the other, and where each row starts.

    >>> rows = SparseRows(torch.tensor([2.0, 1.0]), torch.tensor([3, 0]), torch.tensor([0, 1, 2]), 4)
    >>> torch.nn.functional.linear(rows, torch.eye(4))
    tensor([[0., 0., 0., 2.],
            [1., 0., 0., 0.]])
    >>> len(rows[1:]), rows.shape
    (1, (4,))
    """

    kind = "sparse row"
    positional = False

    def __init__(self, values: Tensor, columns: Tensor, offsets: Tensor, width: int) -> None:
        self.values, self.columns, self.offsets, self.width = values, columns, offsets, width
        self._matrix: SparseMatrix | None = None

    @staticmethod
    def of(matrix: Any) -> SparseRows:
        """The rows of a matrix or array of `scipy.sparse`, of any format; nothing becomes dense.

        >>> from scipy.sparse import coo_array
        >>> SparseRows.of(coo_array(([2.0, 3.0, 4.0], ([1, 0, 1], [0, 2, 0])), shape=(2, 3))).dense()
        tensor([[0., 0., 3.],
                [6., 0., 0.]], dtype=torch.float64)
        """
        if matrix.ndim != 2:
            raise DataError(f"X is sparse and has shape {matrix.shape}; sparse rows are a matrix (n, d).")
        if 0 in matrix.shape:
            sizes = f"{matrix.shape[0]} sample(s) and {matrix.shape[1]} feature(s)"
            raise DataError(f"X is sparse and has {sizes} (shape={matrix.shape}) while a minimum of 1 is required.")
        if matrix.dtype.kind not in "biuf":
            raise DataError(f"X has values of kind {matrix.dtype} where numbers are needed.")
        rows = matrix.tocsr()
        if not rows.has_canonical_format:
            rows = rows.copy()  # the caller's own stays as it is
            rows.sum_duplicates()
        values = rows.data if rows.dtype in (np.float32, np.float64) else rows.data.astype(np.float64)
        if not np.isfinite(values).all():
            place = int(np.argmin(np.isfinite(values)))
            row = int(np.searchsorted(rows.indptr, place, side="right")) - 1
            shown = "NaN" if np.isnan(values[place]) else "infinity (inf)"
            raise DataError(f"X contains {shown} at row {row}, column {rows.indices[place]}; drop or fill it first.")
        columns, offsets = (torch.from_numpy(part.astype(np.int64)) for part in (rows.indices, rows.indptr))
        values = values if values.flags.writeable else values.copy()
        return SparseRows(torch.from_numpy(values), columns, offsets, int(rows.shape[1]))

    @property
    def matrix(self) -> SparseMatrix:
        """The same as a matrix (n, width), with what its products need made once."""
        if self._matrix is None:
            parts = Parts(self.offsets, self.columns, self.values)
            self._matrix = SparseMatrix(lambda: parts, (len(self), self.width))
        return self._matrix

    @property
    def features(self) -> Tensor:
        return self.values

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.width,)

    def __getitem__(self, index: Tensor | slice) -> SparseRows:
        if isinstance(index, slice):
            start, stop, step = index.indices(len(self))
            if step == 1 and stop - start == len(self):
                return self
            index = torch.arange(start, stop, step, device=self.device)
        places, offsets = index_of_parts(self.offsets, index)
        return SparseRows(self.values[places], self.columns[places], offsets, self.width)

    def map(self, change: Callable[[Tensor], Tensor]) -> SparseRows:
        return SparseRows(change(self.values), self.columns, self.offsets, self.width)

    def with_features(self, features: Tensor) -> SparseRows:
        return SparseRows(features, self.columns, self.offsets, self.width)

    def move(self, device: torch.device) -> SparseRows:
        return SparseRows(self.values.to(device), self.columns.to(device), self.offsets.to(device), self.width)

    def tensors(self) -> tuple[Tensor, ...]:
        return self.values, self.columns, self.offsets

    def dense(self) -> Tensor:
        """All numbers, (n, width)."""
        dense = self.values.new_zeros(len(self), self.width)
        return dense.index_put_((self.owner, self.columns), self.values, accumulate=True)

    def beside(self, columns: Tensor) -> SparseRows:
        """The same rows with more columns after their own: dense ones, (n, m).

        >>> rows = SparseRows(torch.tensor([2.0]), torch.tensor([1]), torch.tensor([0, 1, 1]), 2)
        >>> rows.beside(torch.tensor([[7.0], [8.0]])).dense()
        tensor([[0., 2., 7.],
                [0., 0., 8.]])
        """
        rows, more = columns.shape
        offsets = self.offsets + more * torch.arange(rows + 1, device=self.device)
        values, places = (part.new_empty(len(part) + rows * more) for part in (self.values, self.columns))
        own = torch.arange(len(self.values), device=self.device) + more * self.owner
        new = (offsets[1:].unsqueeze(1) - more + torch.arange(more, device=self.device)).flatten()
        values[own], places[own] = self.values, self.columns
        values[new] = columns.to(self.values).flatten()
        places[new] = (self.width + torch.arange(more, device=self.device)).repeat(rows)
        return SparseRows(values, places, offsets, self.width + more)

    def arranged(self, order: Tensor, batch_size: int, generator: torch.Generator) -> Tensor:
        """The order itself: nothing is padded, so that rows of any lengths share a batch."""
        return order

    @classmethod
    def __torch_function__(
        cls, function: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """A linear layer of such rows; torch asks here for all its functions, and others do not know them."""
        if function is not torch.nn.functional.linear:
            return NotImplemented
        return _linear(*args, **(kwargs or {}))


def _linear(rows: SparseRows, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    product = rows.matrix @ weight.mT
    return product if bias is None else product + bias
