"""Functions of results, of rows or of models that say what they take when they are given another of these."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any, ParamSpec, TypeVar

from .errors import DataError

__all__ = ["a_model", "described", "rows_of", "takes"]

P = ParamSpec("P")
R = TypeVar("R")


def takes(words: str, *needed: type | str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """A function whose first argument is of one of the types, or has all the attributes, that are needed.

    A mapping of such values passes too. With nothing needed it is anything but a model. `words` say what it takes.

    >>> @takes("what evaluate.compare(…) gives", dict)
    ... def board(results):
    ...     return len(results)
    >>> board([1])
    Traceback (most recent call last):
    ...
    likely.core.errors.DataError: board takes what evaluate.compare(…) gives; found a list.
    """
    types = tuple(kind for kind in needed if isinstance(kind, type))
    names = [name for name in needed if isinstance(name, str)]

    def fits(value: Any) -> bool:
        if not needed:
            return not is_model(value)
        if types and isinstance(value, types):
            return True
        return bool(names) and not isinstance(value, type) and all(_has(value, name) for name in names)

    def check(function: Callable[P, R]) -> Callable[P, R]:
        first = next(iter(inspect.signature(function).parameters))

        @functools.wraps(function)
        def checked(*args: P.args, **kwargs: P.kwargs) -> R:
            value = args[0] if args else kwargs.get(first)
            parts = list(value.values()) if isinstance(value, Mapping) else [value]
            if (args or first in kwargs) and not fits(value) and not all(map(fits, parts)):
                raise DataError(f"{function.__name__} takes {words}; found {described(value)}.")
            return function(*args, **kwargs)

        return checked

    return check


def rows_of(owner: str, answer: str, **given: Any) -> None:
    """Raise unless the arguments are one value for each row, and as many of each; `answer` is the model's for them.

    >>> rows_of("rmse", "predict(X)", actual=[1, 2], predicted=[1])
    Traceback (most recent call last):
    ...
    likely.core.errors.DataError: rmse: actual has 2 rows and predicted has 1; they must agree.
    """
    for name, value in given.items():
        if is_model(value):
            raise DataError(
                f"{owner}({', '.join(given)}) takes values, one for each row; {name} is {described(value)}: give "
                f"{'the targets y' if name == 'actual' else f'model.{answer}'}."
            )
        if hasattr(value, "log_prob") and hasattr(value, "batch_shape"):
            raise DataError(
                f"{owner}({', '.join(given)}) takes values, one for each row; {name} is a distribution: give its mean "
                f"or model.{answer}, or score the distribution by evaluate.log_score or evaluate.crps."
            )
    sizes = {name: len(value) for name, value in given.items() if hasattr(value, "__len__")}
    if len(set(sizes.values())) > 1:
        (first, rows), (second, others) = list(sizes.items())[:2]
        raise DataError(f"{owner}: {first} has {rows} rows and {second} has {others}; they must agree.")


def is_model(value: Any) -> bool:
    """Whether it can be fitted: an estimator, or the class of one."""
    return callable(getattr(value, "fit", None))


def a_model(value: Any) -> str:
    """The name of a model, and whether it was fitted, where that can be told.

    >>> from likely import Regressor
    >>> a_model(Regressor())
    'a Regressor that is not fitted'
    """
    if isinstance(value, type):
        return f"the class {value.__name__}"
    learned = any(name.endswith("_") and not name.startswith("_") for name in vars(value))
    return f"a {type(value).__name__}{'' if learned else ' that is not fitted'}"


def described(value: Any) -> str:
    """What a value is, in a few words.

    >>> import numpy as np
    >>> described(np.zeros((2, 3))), described("a"), described(None)
    ('an array of shape (2, 3)', "the text 'a'", 'None')
    """
    if value is None:
        return "None"
    if is_model(value):
        return a_model(value)
    if isinstance(value, str):
        return f"the text {value[:30]!r}"
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        return f"an array of shape {tuple(value.shape)}"
    name = type(value).__name__
    return f"{'an' if name[0] in 'AEIOUaeiou' else 'a'} {name}"


def _has(value: Any, name: str) -> bool:
    """Also where the attribute is a property that cannot answer yet."""
    return getattr(value, name, None) is not None
