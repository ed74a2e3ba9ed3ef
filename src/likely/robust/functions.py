"""Functions of rows at the door, and one that gives logits as what is attacked: a module, or anything of a tensor."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ..core.errors import DataError, SpecError
from ..core.plural import counted
from ..models.supervised.base import as_array
from .victim import ROWS, Labelled

__all__ = ["Function", "RowFunction", "evaluating", "rows_for"]


class RowFunction:
    """A function of rows (n, …) and its two doors: what goes in, and what comes out. A module answers as `eval` has it.

    >>> RowFunction(nn.Linear(2, 3)).numbers(torch.zeros(4, 2), (2,), "numbers (n, k)").shape
    torch.Size([4, 3])
    """

    def __init__(self, function: Callable[[Tensor], Tensor]) -> None:
        self.function = evaluating(function)

    def read(self, X: Any) -> Tensor:
        """Rows as the function takes them."""
        return rows_for(self.function, X)

    def numbers(self, x: Tensor, dimensions: tuple[int, ...], needs: str) -> Tensor:
        """What the function gives: for each row its numbers, in a tensor of so many dimensions."""
        given = self.function(x)
        if not isinstance(given, Tensor) or given.ndim not in dimensions or len(given) != len(x):
            shape = tuple(given.shape) if isinstance(given, Tensor) else type(given).__name__
            raise SpecError(f"model must give {needs}; for {counted(len(x), 'row')} it gave {shape}.")
        return given


class Function(Labelled):
    """Any function from rows (n, …) to logits (n, classes)."""

    def __init__(self, function: Callable[[Tensor], Tensor]) -> None:
        self.function = RowFunction(function)
        self.linear = type(function) is nn.Linear

    def read(self, X: Any) -> Tensor:
        x = self.function.read(X)
        with torch.no_grad():
            self.classes = self.scores(x[:1]).shape[1]
        return x

    def targets(self, x: Tensor, X: Any, y: Any) -> Tensor:
        labels = self.answers(x) if y is None else np.asarray(y.cpu() if isinstance(y, Tensor) else y)
        if labels.shape != (len(x),) or labels.dtype.kind not in "iu":
            raise DataError(f"y has shape {labels.shape} of {labels.dtype}; {len(x)} integers are needed: classes.")
        if labels.min() < 0 or labels.max() >= self.classes:
            raise DataError(
                f"y has labels {labels.min()} to {labels.max()}; the model has classes 0 to {self.classes - 1}."
            )
        return torch.from_numpy(labels.astype(np.int64)).to(x.device)

    def scores(self, x: Tensor) -> Tensor:
        needs = "logits (n, classes) of 2 classes or more"
        logits = self.function.numbers(x, (2,), needs)
        if logits.shape[1] < 2:
            raise SpecError(f"model must give {needs}; it gave {tuple(logits.shape)}.")
        return logits

    @torch.no_grad()
    def answers(self, X: Any) -> np.ndarray:
        x = self.read(X)
        return np.concatenate([as_array(self.scores(part).argmax(1)) for part in x.split(ROWS)])

    def wrong(self, answers: np.ndarray, y: Tensor) -> np.ndarray:
        return answers != as_array(y)


def rows_for(function: Any, X: Any) -> Tensor:
    """Rows (n, …) of finite numbers, as a function takes them: like the weights of a module.

    >>> rows_for(nn.Linear(2, 1).double(), [[1, 2]])
    tensor([[1., 2.]], dtype=torch.float64)
    """
    x = X.detach() if isinstance(X, Tensor) else torch.from_numpy(np.array(X))
    weights = function.parameters() if isinstance(function, nn.Module) else iter(())
    like = next(weights, x if x.is_floating_point() else torch.empty(0))
    x = x.to(like.device, like.dtype)
    if x.ndim < 2 or not len(x) or not bool(x.isfinite().all()):
        raise DataError(f"X must have rows (n, …) of finite numbers; found shape {tuple(x.shape)}.")
    return x


def evaluating(function: Any) -> Any:
    """A module that is in training as a copy in evaluation: dropout and batch norm are not to answer at random.

    The module itself stays as it is, also for others that use it at the same time.

    >>> evaluating(nn.Dropout(0.5)).training
    False
    """
    if not isinstance(function, nn.Module) or not any(part.training for part in function.modules()):
        return function
    try:
        return copy.deepcopy(function).eval()
    except (RuntimeError, TypeError) as error:
        raise SpecError(
            f"model is a {type(function).__name__} in training, where it may answer at random, and it cannot be copied "
            f"({error}); call model.eval() first."
        ) from error
