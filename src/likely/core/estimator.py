"""What every model is: a scikit-learn estimator that can be saved as one file and loaded without running code."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from typing import Any, Self

import numpy as np
import torch
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from .errors import ModelFileError, SpecError
from .files import read_file, write_file
from .random import seed_of
from .spec import (
    Spec,
    _plain,
    _short,
    _unplain,
    refuse_namesake,
)
from .version import __version__

__all__ = ["Estimator", "load_estimator"]

_MODELS: dict[str, type[Estimator]] = {}


class Estimator(BaseEstimator):
    """The constructor stores its arguments and does nothing else; what is learned appears in `fit` and ends in `_`.

    A subclass says what it learned in `_state` (plain JSON and tensors) and takes it back in `_restore`; `save`,
    `likely.load`, `clone`, `get_params` and `set_params(network__hidden=…)` follow.
    """

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if not cls.__name__.startswith("_"):
            refuse_namesake(cls, _MODELS.get(cls.__name__), "model")
            _MODELS[cls.__name__] = cls

    def set_params(self, **params: Any) -> Self:
        """Set arguments by name; `network__hidden=(8,)` replaces the spec with a changed copy."""
        inner: dict[str, dict[str, Any]] = {}
        known = self.get_params(deep=False)
        for name, value in params.items():
            outer, _, rest = name.partition("__")
            if outer not in known:
                raise ValueError(
                    f"Invalid parameter {outer!r} for estimator {type(self).__name__}. "
                    f"Valid parameters are: {sorted(known)!r}."
                )
            if rest:
                inner.setdefault(outer, {})[rest] = value
            else:
                setattr(self, name, value)
        for name, changes in inner.items():
            current = vars(self)[name]
            if isinstance(current, Spec):
                setattr(self, name, current.replace(**changes))
            elif hasattr(current, "set_params"):
                current.set_params(**changes)
            else:
                raise SpecError(
                    f"{type(self).__name__}({name}={_short(current)}) is not a spec, so "
                    f"{name}__{next(iter(changes))} "
                    f"is not a parameter; set {name} to a spec first."
                )
        return self

    def _seed(self, random_state: Any = None) -> int:
        """The seed of one call: that of its `random_state`, or else of the model's.

        An int repeats the same draws at every call; None in both places never does.
        """
        return seed_of(getattr(self, "random_state", None) if random_state is None else random_state)

    # --- files --------------------------------------------------------------------------------------------------
    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to one file, atomically; `likely.load(path)` brings it back."""
        check_is_fitted(self)
        learned, tensors = self._state()
        header = {"version": __version__, **self._describe(), "learned": learned}
        write_file(path, header, tensors)

    def _describe(self) -> dict[str, Any]:
        """The class and the arguments, as JSON."""
        params = {name: _described(value) for name, value in self.get_params(deep=False).items()}
        return {"model": type(self).__name__, "params": params}

    def _state(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        """What was learned: plain JSON, and tensors by name."""
        raise NotImplementedError(f"{type(self).__name__} must say its state")

    def _restore(self, learned: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
        """Take back what `_state` gave; raise `ModelFileError` where it does not fit."""
        raise NotImplementedError(f"{type(self).__name__} must restore its state")


def load_estimator(
    path: str | os.PathLike[str], *, find: Callable[[str], object] | None = None, **code: Any
) -> Estimator:
    """The model in a file. `code` gives the arguments that a file cannot hold, such as `network=my_module`.

    `find` imports the file that defines a model of this name, if there is one.
    """
    header, tensors = read_file(path)
    for name in _names_of_models(header):
        if find is not None and name not in _MODELS:
            find(name)
    known: set[str] = set()
    try:
        model = _rebuild(header, code, str(path), known)
        model._restore(header["learned"], tensors)
        same = json.dumps(model._state()[0], sort_keys=True) == json.dumps(header["learned"], sort_keys=True)
    except ModelFileError:
        raise
    except Exception as error:  # whatever a foreign description leads to, it is the file that is at fault
        detail = f"no {error}" if isinstance(error, KeyError) else (str(error).splitlines() or [repr(error)])[0]
        raise ModelFileError(f"{path} does not describe a model that can be rebuilt: {detail}") from error
    if not same:
        raise ModelFileError(f"{path} does not describe a model that can be rebuilt: what it learned was changed.")
    for name in code:
        if name not in known:
            raise SpecError(f"load got {name!r}, but {header['model']} has {', '.join(sorted(known))}.")
    return model


def _names_of_models(description: Any) -> list[str]:
    """The names of the model and of the models inside it."""
    if not isinstance(description, Mapping):
        return []
    own = [name] if isinstance(name := description.get("model"), str) else []
    params = description.get("params")
    inner = params.values() if isinstance(params, Mapping) else ()
    return own + [name for value in inner for name in _names_of_models(value)]


def _described(value: Any) -> Any:
    """An argument as JSON. Code (an nn.Module, a function) is only named; a source of seeds belongs to its fit."""
    if isinstance(value, Estimator):
        return value._describe()
    if isinstance(value, np.random.RandomState | np.random.Generator):
        return None
    if isinstance(value, Mapping) and not all(isinstance(key, str) for key in value):  # such as weights of labels 0, 1
        return {"pairs": [[_described(key), _described(own)] for key, own in value.items()]}
    try:
        return _plain(str(value) if isinstance(value, torch.device) else value)
    except SpecError:
        return {"code": type(value).__name__}


def _rebuild(description: Mapping[str, Any], code: Mapping[str, Any], path: str, known: set[str]) -> Estimator:
    """The unfitted model that `_describe` described; `known` collects the names of all arguments."""
    name = description["model"]
    if name not in _MODELS:
        raise ModelFileError(
            f"{path} holds a model {_short(name)}, which is not known here ({', '.join(sorted(_MODELS))}); "
            "import the module that defines it first."
        )
    params: dict[str, Any] = {}
    for argument, value in description["params"].items():
        known.add(argument)
        keys = set(value) if isinstance(value, Mapping) else set()
        if argument in code:
            params[argument] = code[argument]
        elif keys == {"model", "params"}:
            params[argument] = _rebuild(value, code, path, known)
        elif keys == {"code"}:
            raise ModelFileError(
                f"{path}: its {argument} is code ({value['code']}), which a file cannot hold; "
                f"give it: likely.load(path, {argument}=…)."
            )
        elif keys == {"pairs"}:
            params[argument] = {_unplain(key): _unplain(own) for key, own in value["pairs"]}
        else:
            params[argument] = _unplain(value)
    return _MODELS[name](**params)
