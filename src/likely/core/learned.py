"""Estimators whose learned state is a list of arrays and plain values: they declare them; `save` and `load` follow."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from .declared import Arrays, Values, check_arrays, check_values
from .errors import ModelFileError
from .estimator import Estimator
from .layout import laid_out_array

__all__ = ["Learned", "restore_columns"]

COLUMNS = ("n_features_in_", "feature_names_in_")
"""What scikit-learn's models know about X."""


class Learned(Estimator):
    """An estimator that declares the attributes it learns.

    `_arrays` are numpy arrays (or None, or absent, where declared `maybe`), `_values` are plain JSON (numbers, text,
    lists, dicts). The first of `_arrays` and `_values` together is what makes the model count as fitted. `fit` starts
    with `self._forget()`. What a file holds is checked against the declarations before it is used.

    >>> from likely.core.declared import Array
    >>> class _Mean(Learned):
    ...     _arrays = {"mean_": Array("D")}
    ...     def fit(self, X, y=None):
    ...         self._forget()
    ...         self.mean_ = np.asarray(X).mean(0)
    ...         return self
    >>> _Mean().fit([[1.0], [3.0]])._state()
    ({}, {'mean_': tensor([2.], dtype=torch.float64)})
    """

    _arrays: ClassVar[Arrays] = {}
    _values: ClassVar[Values] = {}

    # --- what a subclass may add --------------------------------------------------------------------------------
    def _declared_arrays(self) -> Arrays:
        """The arrays of this model, where their shapes depend on its arguments."""
        return self._arrays

    def _dimensions(self) -> dict[str, Any]:
        """The sizes that the arguments or other attributes fix, by the names that `_arrays` uses."""
        return {"D": self.__dict__["n_features_in_"]} if "n_features_in_" in self.__dict__ else {}

    def _check_arguments(self) -> Any:
        """Raise a `SpecError` for arguments that no fit would have taken."""

    def _check_learned(self) -> None:
        """Raise for what was read from a file and fits its declarations, but not the rest of the model."""

    # --- the rest follows ---------------------------------------------------------------------------------------
    def __setattr__(self, name: str, value: Any) -> None:
        """A learned array lies in memory as a file gives it back, so that both answer with the same bits."""
        learned = isinstance(value, np.ndarray) and name in self._arrays
        super().__setattr__(name, laid_out_array(value) if learned else value)

    def _forget(self) -> None:
        """A fit that fails leaves no model of other data behind."""
        for name in (*self._arrays, *self._values):
            self.__dict__.pop(name, None)

    def __sklearn_is_fitted__(self) -> bool:
        return next(iter((*self._arrays, *self._values))) in self.__dict__

    def _check_fitted(self) -> None:
        check_is_fitted(self)

    def _state(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        values = {name: self.__dict__[name] for name in self._values if name in self.__dict__}
        for name in COLUMNS:
            if name in self.__dict__:
                value = self.__dict__[name]
                values[name] = [str(column) for column in value] if isinstance(value, np.ndarray) else int(value)
        arrays = {name: self.__dict__.get(name) for name in self._arrays}
        tensors = {n: torch.from_numpy(np.ascontiguousarray(a)) for n, a in arrays.items() if a is not None}
        return values, tensors

    def _restore(self, learned: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
        owner = type(self).__name__
        strange = [*(set(learned) - {*self._values, *COLUMNS}), *(set(tensors) - set(self._arrays))]
        if strange:
            raise ModelFileError(f"The file does not fit {owner}: it has {sorted(strange)[:3]}.")
        check_values(self._values, learned, owner)
        restore_columns(self, learned)
        for name in self._values:
            if name in learned:
                setattr(self, name, learned[name])
        arrays = {name: tensor.numpy() for name, tensor in tensors.items()}
        check_arrays(self._declared_arrays(), arrays, self._dimensions(), owner)
        for name in self._arrays:
            setattr(self, name, arrays.get(name))
        self._check_arguments()  # once their sizes are known to be those of arrays that are there
        self._check_learned()


def restore_columns(model: Any, learned: Mapping[str, Any]) -> None:
    """The number of columns and their names, from `n_features_in_` and `feature_names_in_` of a file."""
    count, names = (learned.get(name) for name in COLUMNS)
    if count is not None:
        if not isinstance(count, int) or isinstance(count, bool) or count < 1:
            raise ModelFileError(f"The file has n_features_in_={count!r}; it must be an integer above 0.")
        model.n_features_in_ = count
    if names is not None:
        listed = isinstance(names, list) and all(isinstance(name, str) for name in names)
        if not listed or len(names) != count:
            raise ModelFileError(f"The file has feature_names_in_ that are not the names of {count} columns.")
        model.feature_names_in_ = np.array(names, dtype=object)
