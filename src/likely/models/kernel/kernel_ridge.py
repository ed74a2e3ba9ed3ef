"""Kernel ridge regression: least squares in the feature space of a kernel, by its dual.

    min over f of Σᵢ (yᵢ − f(xᵢ))² + α‖f‖²   is   f(x) = Σᵢ aᵢ k(xᵢ, x),   (K + αI) a = y

The primal has as many unknowns as features, be it infinitely many; the dual as many as rows. With weights w the
diagonal gets α/wᵢ. f is also the mean of the Gaussian process with covariance k and noise variance α.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar, Literal, Self

import numpy as np
import torch
from sklearn.base import RegressorMixin
from torch import Tensor

from ...core.declared import AMOUNT, NOT_NEGATIVE, Array, Arrays, Values, maybe
from ...core.draws import Refused
from ...core.errors import DataError
from ...core.interrupt import interruptible
from ...core.spec import require
from ...core.threads import factorisation, threads_for
from ...core.validation import as_weights
from ...kernels import RBF
from ...kernels.cholesky import cholesky, inverse_of, report_jitter
from .kernel_machine import KernelMachine, numbers_of

__all__ = ["KernelRidge"]

REMEDY = "raise alpha, drop repeated rows, or take a kernel with a shorter length scale"


class KernelRidge(RegressorMixin, KernelMachine):
    """Ridge regression with any kernel. There is no intercept: add `Constant()` to the kernel for one.

    y is (n,), or (n, k) for several targets; a row with a missing target (NaN) does not count. `alpha=0` goes through
    every point. Learned: `dual_coef_` = a, the rows `X_fit_`, the kernel `kernel_` and the `jitter_` that rounding
    asked for beside alpha (0 as a rule, with a warning otherwise).

    >>> from likely.kernels import Constant, Linear
    >>> X, y = [[0.0], [1.0], [2.0]], [1.0, 3.0, 5.0]
    >>> KernelRidge(Linear() + Constant(), alpha=1e-6).fit(X, y).predict([[4.0]]).round(3)
    array([9.])
    >>> KernelRidge(RBF(), alpha=0.1).fit(X, y).loo_predict_.round(1)
    array([0.8, 2.9, 1.8])
    """

    log_prob = Refused("it is a function without noise; GaussianProcess has the same mean, and a density.")
    sample = Refused("it is a function without noise; GaussianProcess has the same mean, and a density.")

    _arrays: ClassVar[Arrays] = {
        "dual_coef_": Array("N | N T"),
        "X_fit_": Array("N D …"),
        "weights_": maybe(Array("N", NOT_NEGATIVE)),
    }
    _values: ClassVar[Values] = {"jitter_": AMOUNT}
    _kept = "X_fit_"
    weights_: np.ndarray | None

    def __init__(self, kernel: Any = RBF(), alpha: float = 1.0) -> None:  # noqa: B008 (a frozen value)
        self.kernel = kernel
        self.alpha = alpha

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Solve for a, by one Cholesky factor of K + αI."""
        self._forget()
        self._check_arguments()
        x = self._open(X)
        targets, weight = _counted(numbers_of(y, len(x), "KernelRidge"), as_weights(sample_weight, x))
        columns = targets.reshape(len(x), -1)
        root = None if weight is None else weight.sqrt()
        with threads_for(factorisation(len(x))):
            system = self._system(x, root)
            factor, jitter = cholesky(system, REMEDY)
            if root is None:
                dual = torch.cholesky_solve(columns, factor)
            else:
                dual = root[:, None] * torch.cholesky_solve(root[:, None] * columns, factor)
        report_jitter(jitter, REMEDY, stacklevel=3)
        self.dual_coef_ = dual.reshape(targets.shape).numpy()
        self.X_fit_ = x.numpy().copy()
        self.weights_ = None if weight is None else weight.numpy()
        self.jitter_ = jitter * float(system.diagonal().mean())
        return self

    def predict(self, X: Any) -> np.ndarray:
        """f(x) of each row, shaped like y."""
        answers = self._answers(X)
        return answers.reshape(len(answers), *self.dual_coef_.shape[1:])

    @property
    def _score(self) -> Literal["mean"]:
        return "mean"

    def _scores(self, x: Tensor) -> Tensor:
        return self._expansion(x, self.dual_coef_.reshape(len(self.dual_coef_), -1))

    @property
    def loo_predict_(self) -> np.ndarray:
        """What a fit without a row would predict for it, for every row: yᵢ − aᵢ / [(K + αW⁻¹)⁻¹]ᵢᵢ, without refits."""
        self._check_fitted()
        x = torch.from_numpy(self.X_fit_)
        dual = torch.from_numpy(self.dual_coef_).reshape(len(x), -1)
        weight = torch.ones(len(x)).double() if self.weights_ is None else torch.from_numpy(self.weights_)
        with threads_for(factorisation(len(x))):
            system = self._system(x, weight.sqrt())
            system.diagonal().add_(self.jitter_)
            inverse = inverse_of(interruptible(len(x) ** 3 / 3, torch.linalg.cholesky, system)).diagonal()
            # y = (K + αW⁻¹) a; without weight, a row was not in the fit and aᵢ = 0
            factor = torch.where(weight > 0, (self.alpha + self.jitter_ - 1 / inverse) / weight, 0.0)
            predicted = self._matrix(x) @ dual + factor[:, None] * dual
        return predicted.reshape(self.dual_coef_.shape).numpy()

    def _check_arguments(self) -> None:
        number = isinstance(self.alpha, int | float | np.number) and not isinstance(self.alpha, bool)
        require(number and 0 <= self.alpha < math.inf, self, "alpha", "0 or a positive number")

    def _system(self, x: Tensor, root: Tensor | None) -> Tensor:
        """√W K √W + αI; a row without weight stands by itself."""
        K = self._matrix(x)
        if root is not None:
            K = root[:, None] * K * root
            K.diagonal().add_((root == 0).double() * K.diagonal().max())
        K.diagonal().add_(self.alpha)
        return K

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


def _counted(targets: np.ndarray, weight: Tensor | None) -> tuple[Tensor, Tensor | None]:
    """Targets without NaN, and weights that are 0 where they were missing."""
    if targets.ndim > 2:
        raise DataError(f"y has shape {targets.shape}; KernelRidge needs (n,), or (n, k) for several targets.")
    holes = np.isnan(targets).reshape(len(targets), -1)
    if (partly := holes.any(1) & ~holes.all(1)).any():
        raise DataError(
            f"y has some of its targets at row {int(partly.argmax())} but not all; fit a model for each column."
        )
    missing = torch.from_numpy(holes[:, 0])
    values = torch.from_numpy(np.nan_to_num(targets))
    if not bool(missing.any()):
        return values, weight
    counted = (~missing).double() if weight is None else weight * ~missing
    if not bool(counted.any()):
        raise DataError("y has no target: all are missing or have zero weight.")
    return values, counted
