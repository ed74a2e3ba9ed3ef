"""Labels at the door: any labels become 0, 1, …, and a missing one does not count."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from sklearn.exceptions import DataConversionWarning
from sklearn.utils import check_array
from sklearn.utils.multiclass import check_classification_targets
from torch import Tensor

from ..core.errors import DataError, LikelyWarning, ModelFileError
from ..core.learned import Learned
from ..core.spec import as_spec
from ..core.validation import check_length
from ..likelihoods import Likelihood

__all__ = [
    "Labelled",
    "as_column",
    "as_entries",
    "classes_in_order",
    "encode_labels",
    "is_ordered",
    "is_text",
    "missing_among",
    "order_of",
    "read_labels",
    "restore_classes",
    "several_classes",
    "shown",
    "state_of_classes",
]


MOST_BYTES = 2**16
"""Of one label in a file; a longer one is not the name of a class."""


def read_labels(y: Any, owner: str, *, rows: int, missing_label: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Labels as an array (n, …), and which of them are missing: NaN, None, or `missing_label` if one is given."""
    if y is None:
        raise DataError(f"{owner} requires y to be passed, but the target y is None.")
    if isinstance(y, Tensor):
        y = y.detach().cpu().numpy()
    labels = as_entries(y)
    check_length(labels, rows)
    if labels.dtype.kind == "f" and np.isinf(labels).any():
        raise DataError(f"y contains infinity at row {int(np.argwhere(np.isinf(labels))[0][0])}; labels are finite.")
    missing = missing_among(labels, missing_label)
    if not missing.all():
        _check_kind(labels[~missing])
    return labels, missing


def missing_among(labels: np.ndarray, missing_label: int | None = None) -> np.ndarray:
    """Which labels are missing: NaN, None, and `missing_label` if one is given; no other label is ever left out.

    >>> missing_among(np.array([-1, 0, 1])).any(), missing_among(np.array([-1, 0, 1]), missing_label=-1)
    (np.False_, array([ True, False, False]))
    """
    missing = _missing(labels)
    if missing_label is not None and labels.dtype.kind in "iufO":
        missing |= np.asarray(labels == missing_label, dtype=bool)
    return missing


def as_entries(y: Any, dtype: Any = None) -> np.ndarray:
    """y as an array with one entry a row, of any values; what cannot be one is refused by name."""
    try:
        return check_array(
            y,
            dtype=dtype,
            ensure_2d=False,
            allow_nd=True,
            ensure_all_finite=False,
            ensure_min_samples=0,
            input_name="y",
        )
    except (TypeError, ValueError) as error:
        reason = str(error).partition("\n")[0].rstrip(".")
        if "could not convert string" in reason:
            text = reason.partition(": ")[2]
            raise DataError(f"y has text ({text}) where numbers are needed; for labels use Classifier.") from error
        if "sequence" in reason:
            raise DataError("y has entries of different lengths; each row needs as many as the others.") from error
        raise DataError(f"y: {reason}.") from error


def as_column(labels: np.ndarray, missing: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Labels (n, 1) read as (n,), with scikit-learn's warning."""
    if labels.ndim != 2 or labels.shape[1] != 1:
        return labels, missing
    warnings.warn(
        "A column-vector y was passed when a 1d array was expected; it is read as one label per row.",
        DataConversionWarning,
        stacklevel=5,
    )
    return labels[:, 0], missing[:, 0]


def encode_labels(labels: np.ndarray, missing: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """The position of each label in `classes`, as floats; NaN where it is missing."""
    index = np.zeros(labels.shape, dtype=np.intp)
    present = labels[~missing]
    if is_text(present) == is_text(classes):
        order = np.argsort(classes, kind="stable")
        position = order[np.minimum(np.searchsorted(classes, present, sorter=order), len(classes) - 1)]
        unknown = classes[position] != present
    else:  # "1" is not 1
        position, unknown = np.zeros(len(present), dtype=np.intp), np.ones(len(present), dtype=bool)
    if unknown.any():
        row = np.argwhere(~missing)[unknown.argmax()][0]
        raise DataError(
            f"y has the class {shown(present[unknown][:1])} at row {row}, which was not seen in fit; "
            f"known: {shown(classes)}."
        )
    index[~missing] = position
    return np.where(missing, np.nan, index)


def shown(labels: Iterable[Any], most: int = 10) -> str:
    """Labels as a person wrote them, for messages.

    >>> shown(np.array([0, 1]))
    '0, 1'
    """
    values = [label.item() if isinstance(label, np.generic) else label for label in labels]
    return ", ".join(map(repr, values[:most])) + (", …" if len(values) > most else "")


def state_of_classes(classes: np.ndarray) -> dict[str, Any]:
    """Classes as JSON, with their kind, so that they come back as they were."""
    return {"classes": classes.tolist(), "classes_kind": classes.dtype.str if classes.dtype.kind != "O" else "O"}


def restore_classes(learned: Mapping[str, Any], *, least: int = 2, ordered: bool = False) -> np.ndarray:
    """The inverse of `state_of_classes`, where there are at least so many.

    Those of an `ordered` likelihood have an order of their own.
    """
    kind, values = learned["classes_kind"], learned["classes"]
    if not isinstance(kind, str) or kind.lstrip("<>|=")[:1] not in ("O", "U", "i", "u", "f", "b"):
        raise ModelFileError(f"The file has classes of an unknown kind {kind!r}.")
    if not isinstance(values, list) or len(values) < least:
        raise ModelFileError(f"The file has fewer than {'two classes' if least == 2 else 'one class'}.")
    dtype = np.dtype(object if kind == "O" else kind)
    if dtype.itemsize > MOST_BYTES or not all(isinstance(value, str | int | float) for value in values):
        raise ModelFileError("The file has classes that are not labels.")
    classes = np.array(values, dtype=dtype)
    rising = np.sort(classes) if ordered and len({type(value) for value in values}) == 1 else classes
    if classes.tolist() != values or not (rising[1:] > rising[:-1]).all():
        raise ModelFileError(f"The file has classes that are not different labels in order: {shown(classes)}.")
    return classes


class Labelled(Learned):
    """A model of labels: it also learns `classes_`, and calls their number C where it declares its arrays."""

    classes_: np.ndarray

    def _forget(self) -> None:
        super()._forget()
        self.__dict__.pop("classes_", None)

    def _dimensions(self) -> dict[str, Any]:
        return super()._dimensions() | ({"C": len(self.classes_)} if "classes_" in self.__dict__ else {})

    def _state(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        learned, tensors = super()._state()
        return learned | (state_of_classes(self.classes_) if "classes_" in self.__dict__ else {}), tensors

    def _restore(self, learned: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
        if "classes" in learned:
            self.classes_ = restore_classes(learned, ordered=is_ordered(getattr(self, "likelihood", None)))
        super()._restore({name: learned[name] for name in learned if not name.startswith("classes")}, tensors)


def order_of(y: Any) -> list[Any] | None:
    """The labels in their order, if y is an ordered `pd.Categorical` (or a series of one) or a polars `Enum`.

    >>> import pandas as pd
    >>> order_of(pd.Series(["b", "a"], dtype=pd.CategoricalDtype(["b", "a"], ordered=True))), order_of(["b", "a"])
    (['b', 'a'], None)
    """
    kind = getattr(y, "dtype", None)
    if getattr(kind, "ordered", False) is True or type(kind).__name__ == "Enum":
        return list(kind.categories)  # type: ignore[union-attr]
    return None


def is_ordered(likelihood: Any) -> bool:
    """Whether a likelihood, as a user gives it, is of labels that have an order."""
    if isinstance(likelihood, str) and likelihood != "auto":
        likelihood = as_spec(likelihood, Likelihood, "likelihood")
    return isinstance(likelihood, Likelihood) and likelihood.ordered


def classes_in_order(labels: np.ndarray, y: Any, likelihood: Any) -> np.ndarray:
    """The different labels of y as an ordered likelihood takes them: by its own order, that of y, or of numbers."""
    present = several_classes(labels)
    given = getattr(likelihood, "order", None)
    order = list(given) if given is not None else order_of(y)
    if order is None and is_text(present):
        raise DataError(
            f"y has text labels ({shown(present)}) without an order, and {type(likelihood).__name__} needs one: give "
            f"{type(likelihood).__name__}({present.tolist()[:4]}) with the labels in their order, an ordered "
            "pd.Categorical, or a polars Enum."
        )
    if order is None:
        return present
    if is_text(np.array(order, dtype=object)) != is_text(present) or not set(present.tolist()) <= set(order):
        strange = [label for label in present.tolist() if label not in order]
        raise DataError(f"y has the class {shown(strange[:1])}, which is not among {shown(order)}.")
    absent = [label for label in order if label not in set(present.tolist())]
    if absent and given is not None:
        raise DataError(
            f"y has no label {shown(absent)}, so that its cut points are unknown; leave it out of {likelihood!r}."
        )
    if absent:
        warnings.warn(f"y has no label {shown(absent)}, so it is no class of the model.", LikelyWarning, stacklevel=6)
    kept = [label for label in order if label not in absent]
    return np.array(kept, dtype=present.dtype)


def _missing(labels: np.ndarray) -> np.ndarray:
    if labels.dtype.kind == "f":
        return np.isnan(labels)
    if labels.dtype.kind == "O":
        return np.frompyfunc(_is_missing, 1, 1)(labels).astype(bool)
    return np.zeros(labels.shape, bool)


def _is_missing(value: Any) -> bool:
    """None, NaN, and the NA of pandas, which is neither equal nor unequal to itself."""
    if value is None:
        return True
    try:
        return bool(value != value)
    except (TypeError, ValueError):
        return type(value).__name__ == "NAType"


def is_text(labels: np.ndarray) -> bool:
    """Whether labels are text and not numbers."""
    return labels.dtype.kind == "U" or (labels.dtype.kind == "O" and any(isinstance(v, str) for v in labels.flat[:1]))


def _check_kind(labels: np.ndarray) -> None:
    """Labels are text, integers or booleans, all of one kind: what a model file can hold and `np.unique` sort."""
    kind = labels.dtype.kind
    if kind == "O":
        kinds = {type(value) for value in labels}
        names = ", ".join(sorted(label_type.__name__ for label_type in kinds))
        if not all(issubclass(label_type, str | int | float | np.number | np.bool_) for label_type in kinds):
            raise DataError(f"y has labels of the type {names}; labels are text, integers or booleans.")
        if len({issubclass(label_type, str) for label_type in kinds}) > 1:
            raise DataError(f"y mixes labels of different types ({names}); make them all text or all numbers.")
        labels = np.array(labels.tolist())
    elif kind not in "iufbU":
        what = {"M": "dates", "m": "durations", "S": "bytes"}.get(kind, str(labels.dtype))
        raise DataError(f"y has {what} for labels; labels are text, integers or booleans.")
    try:
        check_classification_targets(labels)
    except ValueError as error:
        value = labels[(labels != np.floor(labels)).argmax()]
        raise DataError(
            f"y is continuous (it has the value {value:.7g}), and a classifier needs labels; for numbers use Regressor."
        ) from error


def several_classes(labels: np.ndarray, name: str = "y", *, none: str = "no label at all") -> np.ndarray:
    """The different labels in order, of which a classifier needs two or more.

    >>> several_classes(np.array(["no", "yes", "no"]))
    array(['no', 'yes'], dtype='<U3')
    """
    classes = np.unique(labels)
    if len(classes) < 2:
        what = f"only one class ({shown(classes)})" if len(classes) else none
        raise DataError(f"{name} has {what}; a classifier needs at least two classes.")
    return classes
