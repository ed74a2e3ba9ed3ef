"""Estimators whose learned state is a list of arrays and plain values: they name them, and `save` and `load` follow."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from .errors import ModelFileError
from .estimator import Estimator

__all__ = ["Learned"]


class Learned(Estimator):
    """An estimator that lists the attributes it learns.

    `_arrays` are numpy arrays (or None, or absent), `_values` are plain JSON (numbers, text, lists, dicts). The first
    of `_arrays` and `_values` together is what makes the model count as fitted. `fit` starts with `self._forget()`.

    >>> class _Mean(Learned):
    ...     _arrays = ("mean_",)
    ...     def fit(self, X, y=None):
    ...         self._forget()
    ...         self.mean_ = np.asarray(X).mean(0)
    ...         return self
    >>> _Mean().fit([[1.0], [3.0]])._state()
    ({}, {'mean_': tensor([2.], dtype=torch.float64)})
    """

    _arrays: ClassVar[tuple[str, ...]] = ()
    _values: ClassVar[tuple[str, ...]] = ()

    def _forget(self) -> None:
        """A fit that fails leaves no model of other data behind."""
        for name in (*self._arrays, *self._values):
            self.__dict__.pop(name, None)

    def __sklearn_is_fitted__(self) -> bool:
        return (*self._arrays, *self._values)[0] in self.__dict__

    def _check_fitted(self) -> None:
        check_is_fitted(self)

    def _state(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        values = {name: self.__dict__[name] for name in self._values if name in self.__dict__}
        for name in ("n_features_in_", "feature_names_in_"):
            if name in self.__dict__:
                found = self.__dict__[name]
                values[name] = [str(each) for each in found] if isinstance(found, np.ndarray) else int(found)
        found_arrays = {name: self.__dict__.get(name) for name in self._arrays}
        tensors = {n: torch.from_numpy(np.ascontiguousarray(a)) for n, a in found_arrays.items() if a is not None}
        return values, tensors

    def _restore(self, learned: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
        known = {*self._values, "n_features_in_", "feature_names_in_"}
        strange = [*(set(learned) - known), *(set(tensors) - set(self._arrays))]
        if strange:
            raise ModelFileError(f"The file does not fit {type(self).__name__}: it has {sorted(strange)[:3]}.")
        for name, value in learned.items():
            setattr(self, name, np.array(value, dtype=object) if name == "feature_names_in_" else value)
        for name, tensor in tensors.items():
            setattr(self, name, tensor.numpy())
        if not self.__sklearn_is_fitted__():
            raise ModelFileError(f"The file does not hold what a fitted {type(self).__name__} learned.")
        for name in self._arrays:
            self.__dict__.setdefault(name, None)
