"""What models of a kernel share: the rows they keep, the matrices K between rows, and a kernel that goes to a file."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ...core.errors import DataError, ModelFileError, TrainingError
from ...core.spec import as_spec
from ...core.threads import factorisation, threads_for
from ...core.validation import as_rows, check_length, check_squares
from ...kernels import Kernel, KernelModule
from ...kernels.gram import gram
from ..labels import as_entries
from ..scored import Scored

__all__ = ["KernelMachine", "check_covariance", "numbers_of"]

BLOCK = 2**19
"""Entries of K that a prediction makes at a time: 4 MB, which the cache holds."""

CHECKED = 500
"""Rows on which a kernel is checked to be positive semidefinite."""


class KernelMachine(Scored):
    """A model whose answer is Σᵢ aᵢ k(xᵢ, x) over rows xᵢ that it keeps in the attribute named by `_kept`."""

    kernel: Any
    kernel_: Kernel
    _module: KernelModule

    def _forget(self) -> None:
        super()._forget()
        for name in ("kernel_", "_module"):
            self.__dict__.pop(name, None)

    def _open(self, X: Any) -> Tensor:
        """The rows of a fit; the kernel is made for rows like them."""
        kernel = as_spec(self.kernel, Kernel, "kernel")
        x = as_rows(self, X, reset=True).double()
        _refuse_too_many(len(x), type(self).__name__)
        self.kernel_, self._module = kernel, kernel.build(x).double().requires_grad_(False)
        return x

    @torch.no_grad()
    def _matrix(self, x: Tensor) -> Tensor:
        """K of the rows of a fit: symmetric and finite."""
        with threads_for(factorisation(len(x))):  # it is to be factorised next
            K = gram(self._module, x)
        if not bool(torch.isfinite(K.sum())):
            raise DataError(
                f"kernel={self.kernel_!r} has values that are not finite on these rows; scale the columns of X."
            )
        return K

    @torch.no_grad()
    def _answers(self, X: Any) -> np.ndarray:
        """The scores of each row, a block of rows at a time."""
        x = self._read(X)
        step = max(1, BLOCK // max(1, len(self._rows_kept)))
        with threads_for(min(len(x), step) * self._work):
            return torch.cat([self._scores(rows.double()) for rows in x.split(step)]).numpy()

    def _points(self, X: Any) -> Tensor:
        return self._read(X).double()

    def _read(self, X: Any) -> Tensor:
        """Rows at the door, like those of the fit."""
        self._check_fitted()
        x, kept = check_squares(as_rows(self, X, reset=False)), self._rows_kept
        if x.shape[1:] != kept.shape[1:]:
            raise DataError(
                f"X has rows of shape {tuple(x.shape[1:])}; the model was fitted on {tuple(kept.shape[1:])}."
            )
        return x

    def _expansion(self, x: Tensor, coefficients: np.ndarray) -> Tensor:
        """Σᵢ k(x, xᵢ) cᵢ over the rows that were kept, for coefficients (rows, k)."""
        if not len(coefficients):
            return x.new_zeros(len(x), coefficients.shape[1])
        return self._module(x, torch.from_numpy(self._rows_kept)) @ torch.from_numpy(coefficients)

    @property
    def _rows_kept(self) -> np.ndarray:
        rows: np.ndarray = getattr(self, self._kept)
        return rows

    @property
    def _affine(self) -> bool:
        return self.kernel_.affine

    @property
    def _work(self) -> float:
        return float(self._rows_kept.size)

    # --- files --------------------------------------------------------------------------------------------------
    def _state(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        learned, tensors = super()._state()
        weights = {f"kernel.{name}": value for name, value in self._module.state_dict().items()}
        return learned | {"kernel": _written(self.kernel_)}, tensors | weights

    def _restore(self, learned: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
        own = {name: value for name, value in tensors.items() if not name.startswith("kernel.")}
        super()._restore({name: value for name, value in learned.items() if name != "kernel"}, own)
        written = learned["kernel"]
        kernel = as_spec(self.kernel if written is None else written, Kernel, "kernel")
        rows = torch.from_numpy(getattr(self, self._kept))
        self.kernel_, self._module = kernel, kernel.build(rows).double().requires_grad_(False)
        weights = {name.removeprefix("kernel."): value for name, value in tensors.items() if name not in own}
        if not all(bool(value.isfinite().all()) for value in weights.values()):
            raise ModelFileError(
                "The file does not fit its own specs: the hyperparameters of its kernel are not finite."
            )
        self._module.load_state_dict(weights)
        with torch.no_grad():
            if len(rows) and not bool(self._module(rows[:2], rows[:2]).isfinite().all()):
                raise ModelFileError("The file does not fit its own specs: its kernel is not finite on its own rows.")


def numbers_of(y: Any, rows: int, owner: str) -> np.ndarray:
    """Targets as an array of float64 with one entry a row; NaN is a missing one."""
    if y is None:
        raise DataError(f"{owner} requires y to be passed, but the target y is None.")
    array = as_entries(y.detach().cpu().numpy() if isinstance(y, Tensor) else y, dtype=np.float64)
    check_length(array, rows)
    if np.isinf(array).any():
        raise DataError(f"y contains infinity at row {int(np.argwhere(np.isinf(array))[0][0])}; targets are finite.")
    return array


def check_covariance(K: np.ndarray, kernel: Any) -> None:
    """A kernel must be positive semidefinite; its matrix is looked at on some rows."""
    some = np.linspace(0, len(K) - 1, min(len(K), CHECKED)).astype(np.intp)
    part = torch.from_numpy(K[np.ix_(some, some)])
    level = float(part.diagonal().mean())
    slight = 1e-8 * max(level, 0.0) + 1e-300
    with threads_for(factorisation(len(part))):
        failed = bool(torch.linalg.cholesky_ex(part + slight * torch.eye(len(part)))[1])
    if failed:
        least = float(torch.linalg.eigvalsh(part)[0])
        raise TrainingError(
            f"kernel={kernel!r} is not positive semidefinite on these rows: its matrix has the eigenvalue {least:.3g}, "
            "so that there is no feature space to separate them in; take another kernel."
        )


def _written(kernel: Kernel) -> dict[str, Any] | None:
    """The kernel as JSON; None if it holds code, which `likely.load` is then given again."""
    try:
        return kernel.to_json()
    except ValueError:
        return None


def _refuse_too_many(rows: int, owner: str) -> None:
    """A matrix and its factor must fit in memory: better a word now than a killed process."""
    if not hasattr(os, "sysconf"):
        return
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    most = int((memory / 24) ** 0.5)  # three matrices of float64
    if rows > most:
        raise DataError(
            f"X has {rows} rows; {owner} needs matrices of rows × rows, and this machine has room for {most} rows. "
            "Fit a sample of the rows, or a Regressor or Classifier with a network."
        )
