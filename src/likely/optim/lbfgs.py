"""L-BFGS: quasi-Newton steps θ ← θ − tB∇f(θ), with B ≈ H⁻¹ from the last steps and t by the strong Wolfe conditions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

import torch
from torch import Tensor

from ..core.spec import require
from .base import Optimizer, is_count, is_number
from .eager import eager

__all__ = ["LBFGS"]


class LBFGS(Optimizer):
    """Up to `iterations` quasi-Newton steps in each `step(closure)`, remembering the last `history` ones.

    It ends early where no derivative exceeds `tol`. For losses of the whole data, which do not change between steps.

    >>> LBFGS(history=20)
    LBFGS(history=20)
    """

    elementwise: ClassVar[bool] = False
    needs_closure: ClassVar[bool] = True

    lr: float = 1.0
    history: int = 10
    iterations: int = 20
    tol: float = 1e-7

    def validate(self) -> None:
        super().validate()
        require(is_count(self.history), self, "history", "an integer, 1 or more")
        require(is_count(self.iterations), self, "iterations", "an integer, 1 or more")
        require(is_number(self.tol) and self.tol >= 0, self, "tol", "0 or more")

    def build(self, parameters: Iterable[Tensor]) -> torch.optim.Optimizer:
        return eager(torch.optim.LBFGS)(
            list(parameters),
            lr=self.lr,
            max_iter=self.iterations,
            history_size=self.history,
            tolerance_grad=self.tol,
            tolerance_change=1e-14,  # the gradient decides when to end, not a short step
            line_search_fn="strong_wolfe",
        )
