"""Constant sparse matrices S, whose products Sh with dense h can be differentiated and vectorised over many h.

∂(Sh) = S ∂h,   gradients go back by Sᵀ,   [Sh₁, Sh₂, …] = S [h₁, h₂, …]
"""

from __future__ import annotations

import inspect
import weakref
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd import Function

from ..core.quiet import quiet

__all__ = ["Selection", "SparseMatrix"]

HALF = (torch.bfloat16, torch.float16)


class Parts(NamedTuple):
    """What there is of each row, one row after the other: where rows start, their columns, their values."""

    offsets: Tensor
    columns: Tensor
    values: Tensor


class SparseMatrix:
    """A matrix of which only some entries are held; `make` gives them when the matrix is first used.

    It is made inside the product, beneath any of `torch.func`'s transformations, and so serves all of them.

    >>> entries = torch.tensor([0, 1, 1]), torch.tensor([1, 0, 0]), torch.tensor([5.0, 1.0, 2.0])
    >>> matrix = SparseMatrix.of(lambda: entries, (2, 2))
    >>> (matrix @ torch.eye(2)).tolist()
    [[0.0, 5.0], [3.0, 0.0]]
    """

    def __init__(self, make: Callable[[], Parts], shape: tuple[int, int]) -> None:
        self.shape = shape
        self._make: Callable[[], Parts] | None = make
        self._parts: Parts | None = None
        self._csr: Tensor | None = None
        self._turned: tuple[Parts, Tensor] | None = None
        self._transposed: SparseMatrix | None = None
        self._origin: weakref.ref[SparseMatrix] | None = None

    @staticmethod
    def of(entries: Callable[[], tuple[Tensor, Tensor, Tensor]], shape: tuple[int, int]) -> SparseMatrix:
        """From rows, columns and values in any order; entries at one position add up."""
        return SparseMatrix(lambda: _compressed(*entries(), shape), shape)

    @staticmethod
    def from_dense(matrix: Tensor) -> SparseMatrix:
        """The entries of a dense matrix that are not 0."""

        def entries() -> tuple[Tensor, Tensor, Tensor]:
            rows, columns = matrix.detach().nonzero(as_tuple=True)
            return rows, columns, matrix.detach()[rows, columns]

        return SparseMatrix.of(entries, (matrix.shape[0], matrix.shape[1]))

    @property
    def parts(self) -> Parts:
        """The entries, made once."""
        parts, make = self._parts, self._make
        if parts is None:
            if make is None:  # another thread has made them in between
                return self.parts
            self._parts = parts = make()
            self._make = None  # what it was made of may go
        return parts

    @property
    def T(self) -> SparseMatrix:
        """The transposed matrix."""
        origin = None if self._origin is None else self._origin()
        if origin is not None:
            return origin
        if self._transposed is None:
            self._transposed = self._linked(SparseMatrix(lambda: self._turn()[0], self.shape[::-1]))
        return self._transposed

    def with_values(self, change: Callable[[Tensor], Tensor]) -> SparseMatrix:
        """The same positions with other values: dropout of what is not 0, say."""
        parts, (turned, order) = self.parts, self._turn()
        values = change(parts.values)
        changed = SparseMatrix(lambda: parts._replace(values=values), self.shape)
        other = SparseMatrix(lambda: turned._replace(values=values[order]), self.shape[::-1])
        changed._transposed = changed._linked(other)
        return changed

    def _linked(self, transposed: SparseMatrix) -> SparseMatrix:
        """The transposed of the transposed is this one; a weak link, so that both go as soon as nobody needs them."""
        transposed._origin = weakref.ref(self)
        return transposed

    def _turn(self) -> tuple[Parts, Tensor]:
        if self._turned is None:
            self._turned = _turned(self.parts, self.shape[1])
        return self._turned

    def __matmul__(self, dense: Tensor) -> Tensor:
        return _Product.apply(self, dense)

    def dense(self) -> Tensor:
        """The whole matrix."""
        return self.times(torch.eye(self.shape[1], dtype=self.parts.values.dtype, device=self.parts.values.device))

    def times(self, dense: Tensor) -> Tensor:
        """The product without its derivative. Sparse matrices have no product in 16 bits: there it is in float32."""
        if self._csr is None:
            self._csr = _csr(self.parts, self.shape)
        device = dense.device.type
        if not torch.is_autocast_enabled(device) and dense.dtype not in HALF:
            return self._csr @ dense
        with torch.autocast(device, enabled=False):
            return self._csr @ (dense.float() if dense.dtype in HALF else dense)


class Selection(SparseMatrix):
    """The matrix that picks rows: Sh = h[index]. Its transposed adds up, for each row of h, what was made of it.

    >>> pick = Selection(lambda: torch.tensor([2, 0, 2]), 3, 4)
    >>> h = torch.arange(4.0).unsqueeze(1)
    >>> (pick @ h).ravel().tolist(), (pick.T @ (pick @ h)).ravel().tolist()
    ([2.0, 0.0, 2.0], [0.0, 0.0, 4.0, 0.0])
    """

    def __init__(self, index: Callable[[], Tensor], rows: int, width: int, dtype: torch.dtype = torch.float32) -> None:
        def make() -> Parts:
            columns = index()
            ones = torch.ones(rows, dtype=dtype, device=columns.device)
            return Parts(torch.arange(rows + 1, device=columns.device), columns, ones)

        super().__init__(make, (rows, width))
        self._index = index

    @property
    def index(self) -> Tensor:
        """The rows that are picked."""
        return self._index()

    def times(self, dense: Tensor) -> Tensor:
        return dense.index_select(0, self.parts.columns)  # several times faster than a product with ones

    def largest(self, values: Tensor) -> Tensor:
        """The largest of the values, (rows, d), at each row of h: (width, d), without a derivative; −∞ for none."""
        return _Largest.apply(self, values.detach())


class _Product(Function):
    """S @ h. To autograd the matrix is a constant."""

    @staticmethod
    def forward(matrix: SparseMatrix, dense: Tensor) -> Tensor:  # type: ignore[override]
        return matrix.times(dense)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.matrix = inputs[0]

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[None, Tensor]:  # type: ignore[override]
        return None, _Product.apply(ctx.matrix.T, gradient)

    @staticmethod
    def jvp(ctx: Any, _: None, tangent: Tensor) -> Tensor:  # type: ignore[override]
        return _Product.apply(ctx.matrix, tangent)

    @staticmethod
    def vmap(info: Any, in_dims: tuple[Any, ...], matrix: SparseMatrix, dense: Tensor) -> tuple[Tensor, int]:  # type: ignore[override]
        return _side_by_side(_Product, in_dims[1], matrix, dense)


class _Largest(Function):
    """The largest value of each segment. It is a constant to autograd."""

    @staticmethod
    def forward(selection: Selection, values: Tensor) -> Tensor:  # type: ignore[override]
        offsets, columns, _ = selection.T.parts
        lengths = offsets.diff().long()
        return torch.segment_reduce(values.index_select(0, columns), "max", lengths=lengths, axis=0, unsafe=True)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.mark_non_differentiable(output)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[None, None]:  # type: ignore[override]
        return None, None

    @staticmethod
    def jvp(ctx: Any, _: None, tangent: Tensor) -> None:  # type: ignore[override]
        return None

    @staticmethod
    def vmap(info: Any, in_dims: tuple[Any, ...], selection: Selection, values: Tensor) -> tuple[Tensor, int]:  # type: ignore[override]
        return _side_by_side(_Largest, in_dims[1], selection, values)


for _forward in (_Product.forward, _Largest.forward):
    # torch reads the signature in every call; worked out anew each time, it takes longer than a small product
    setattr(_forward, "__signature__", inspect.signature(_forward))  # noqa: B010 (a plain assignment has no type)


def _side_by_side(function: Any, axis: int, matrix: SparseMatrix, dense: Tensor) -> tuple[Tensor, int]:
    """Many dense matrices as the columns of one."""
    columns = dense.movedim(axis, 1)
    out = function.apply(matrix, columns.reshape(len(columns), -1))
    return out.unflatten(1, columns.shape[1:]), 1


def _compressed(rows: Tensor, columns: Tensor, values: Tensor, shape: tuple[int, int]) -> Parts:
    code, order = (rows * shape[1] + columns).sort()
    positions, inverse = code.unique_consecutive(return_inverse=True)
    total = values.new_zeros(len(positions)).index_add_(0, inverse, values[order])
    return Parts(_offsets(positions // shape[1], shape[0]), positions % shape[1], total)


def _turned(parts: Parts, width: int) -> tuple[Parts, Tensor]:
    """The entries of the transposed matrix, and the positions from which their values come."""
    offsets, columns, values = parts
    rows = torch.repeat_interleave(torch.arange(len(offsets) - 1, device=offsets.device), offsets.diff())
    order = columns.argsort(stable=True)
    return Parts(_offsets(columns, width), rows[order], values[order]), order


def _offsets(rows: Tensor, count: int) -> Tensor:
    ends = torch.bincount(rows, minlength=count).cumsum(0)
    return torch.cat([ends.new_zeros(1), ends])


def _csr(parts: Parts, shape: tuple[int, int]) -> Tensor:
    with quiet(UserWarning, "Sparse CSR tensor support is in beta"):
        # what MKL takes as it is: with wider numbers every product would convert them
        pattern = (parts.offsets.int(), parts.columns.int()) if max(*shape, len(parts.values)) < 2**31 else parts[:2]
        return torch.sparse_csr_tensor(*pattern, parts.values, shape, check_invariants=False)
