"""What every model is: a scikit-learn estimator that can be saved as one file and loaded without running code."""

from __future__ import annotations

import importlib.metadata
import os
from collections.abc import Mapping
from typing import Any, Self

from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from .errors import ModelFileError, SpecError
from .files import read_file, write_file
from .spec import Spec, _plain, _unplain

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
            current = getattr(self, name)
            if isinstance(current, Spec):
                setattr(self, name, current.replace(**changes))
            elif hasattr(current, "set_params"):
                current.set_params(**changes)
            else:
                raise SpecError(
                    f"{type(self).__name__}({name}={current!r}) holds no spec, so {name}__{next(iter(changes))} means "
                    f"nothing; set {name} to a spec first."
                )
        return self

    # --- files --------------------------------------------------------------------------------------------------
    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to one file, atomically; `likely.load(path)` brings it back."""
        check_is_fitted(self)
        learned, tensors = self._state()
        header = {"version": importlib.metadata.version("likely"), **self._describe(), "learned": learned}
        write_file(path, header, tensors)

    def _describe(self) -> dict[str, Any]:
        """The class and the arguments, as JSON. An argument that is code (an nn.Module, a function) is only named."""
        params: dict[str, Any] = {}
        for name, value in self.get_params(deep=False).items():
            if isinstance(value, Estimator):
                params[name] = value._describe()
                continue
            try:
                params[name] = _plain(value)
            except SpecError:
                params[name] = {"code": type(value).__name__}
        return {"model": type(self).__name__, "params": params}

    def _state(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        """What was learned: plain JSON, and tensors by name."""
        raise NotImplementedError(f"{type(self).__name__} must say its state")

    def _restore(self, learned: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
        """Take back what `_state` gave; raise `ModelFileError` where it does not fit."""
        raise NotImplementedError(f"{type(self).__name__} must restore its state")


def load_estimator(path: str | os.PathLike[str], **code: Any) -> Estimator:
    """The model in a file. `code` gives the arguments that a file cannot hold, such as `network=my_module`."""
    header, tensors = read_file(path)
    try:
        model = _rebuild(header, code, str(path))
        model._restore(header["learned"], tensors)
    except ModelFileError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, RuntimeError, OverflowError) as error:
        detail = f"no {error}" if isinstance(error, KeyError) else str(error).partition("\n")[0]
        raise ModelFileError(f"{path} does not describe a model that can be rebuilt: {detail}") from error
    return model


def _rebuild(description: Mapping[str, Any], code: Mapping[str, Any], path: str) -> Estimator:
    name = description["model"]
    if name not in _MODELS:
        raise ModelFileError(
            f"{path} holds a model {name!r}, which is not known here ({', '.join(sorted(_MODELS))}); "
            "import the module that defines it first."
        )
    params: dict[str, Any] = {}
    for argument, value in description["params"].items():
        if argument in code:
            params[argument] = code[argument]
        elif isinstance(value, Mapping) and "model" in value:
            params[argument] = _rebuild(value, code, path)
        elif isinstance(value, Mapping) and "code" in value:
            raise ModelFileError(
                f"{path}: its {argument} is code ({value['code']}), which a file cannot hold; "
                f"give it: likely.load(path, {argument}=…)."
            )
        else:
            params[argument] = _unplain(value)
    return _MODELS[name](**params)
