"""Latent codes of a flow: z of rows, rows of z, and the way between two rows.

    transform: x → z = f(x)        inverse_transform: z → x = f⁻¹(z)        interpolate: f⁻¹ of the line from z_a to z_b

Where the posterior has several members, the one with the largest weight answers: a mean of codes has no inverse.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from ...core.errors import DataError
from .between import _Between
from .module import ask

__all__ = ["Verb"]


class Verb:
    """A method whose name is also the name of an argument: asked for, it is the method; set, it is the argument.

    >>> class Model:
    ...     transform = Verb(lambda model, X: f"{model.__dict__['transform']} of {X}")
    >>> model = Model()
    >>> model.transform = "spline"
    >>> model.transform(3)
    'spline of 3'
    """

    def __init__(self, method: Any) -> None:
        self.method = method
        self.__doc__ = method.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, model: Any, owner: type | None = None) -> Any:
        return self.method if model is None else self.method.__get__(model)

    def __set__(self, model: Any, value: Any) -> None:
        model.__dict__[self.name] = value


class _Codes(_Between):
    """The verbs of a model whose rows have codes z."""

    @Verb
    def transform(self, X: Any, condition: Any = None) -> np.ndarray:
        """z of each row: (n, d), or the shape of images. An integer is taken at its middle."""
        self._refuse_labels("transform")
        x, given = self._asked(X, condition)
        return self._answer("code", x, given).numpy()

    def inverse_transform(self, Z: Any, condition: Any = None) -> Any:
        """The rows of z, in the form of X."""
        self._refuse_labels("inverse_transform")
        z = self._placed(torch.as_tensor(np.asarray(Z, dtype=np.float64)))
        size = self.form_.shape
        if z.ndim < 2 or z[0].numel() != torch.Size(size).numel():
            raise DataError(f"Z has shape {tuple(z.shape)}; codes have as many numbers as rows, of shape {size}.")
        return self.form_.given(self._answer("decode", z, self._spread_condition(condition, len(z))))

    def trajectory(self, X: Any, condition: Any = None) -> np.ndarray:
        """Rows on their way to z, (steps, n, …): first in units in which columns have variance 1, z last."""
        self._refuse_labels("trajectory")
        x, given = self._asked(X, condition)
        return self._answer("path", x, given, axis=1).numpy()

    def _answer(self, method: str, rows: Tensor, condition: Tensor | None, axis: int = 0) -> Tensor:
        best = self._best()

        def answer(block: slice) -> Tensor:
            given = None if condition is None else condition[block]
            return self._cpu(ask(self.posterior_, best, method, rows[block], given))

        return self._in_blocks(len(rows), answer, axis=axis)

    def _refuse_labels(self, verb: str) -> None:
        check_is_fitted(self)
        labels = [part.names[0] for part in self.columns_.parts if part.likelihood.labels]
        if labels and len(self.form_.shape) == 1:
            raise DataError(f"{verb} speaks of numbers; {labels[0]} has labels, which have no code.")
