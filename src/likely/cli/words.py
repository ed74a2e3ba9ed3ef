"""The description of a model in a file, written as the call that makes it: without the model, and without torch.

    {"spec": "network.MLP", "hidden": [4], "dropout": 0.0}   →   MLP(hidden=(4,))

Arguments at their defaults are left out, as `repr` does; the defaults are read from the source of the class.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Mapping
from typing import Any

from .catalogue import Part, Sources

__all__ = ["Words"]


class Words:
    """Writes descriptions as calls.

    >>> Words().of({"spec": "prior.Normal", "scale": 2.0})
    'Normal(scale=2.0)'
    >>> Words().of({"spec": "network.Linear", "bias": True})
    'Linear()'
    """

    def __init__(self) -> None:
        self._sources = Sources()

    def of(self, value: Any) -> str:
        """A value of a description: a model, a spec, code that a file cannot hold, or plain data."""
        if isinstance(value, Mapping):
            if isinstance(name := value.get("spec"), str):
                axis, _, name = name.partition(".")
                return self._call(name, {k: v for k, v in value.items() if k != "spec"}, axis)
            if isinstance(name := value.get("model"), str) and isinstance(params := value.get("params"), Mapping):
                return self._call(name, params)
            if set(value) == {"code"}:
                return f"<{value['code']}>"
            return "{" + ", ".join(f"{key!r}: {self.of(own)}" for key, own in value.items()) + "}"
        if isinstance(value, list):
            return f"({', '.join(map(self.of, value))}{',' * (len(value) == 1)})"
        return repr(value)

    def _call(self, name: str, arguments: Mapping[str, Any], axis: str | None = None) -> str:
        part = self._part(name, axis)
        defaults = {} if part is None else self._defaults(part)
        written = {argument: self.of(value) for argument, value in arguments.items()}
        chosen = [f"{argument}={text}" for argument, text in written.items() if text != defaults.get(argument)]
        return f"{name}({', '.join(chosen)})"

    def _part(self, name: str, axis: str | None) -> Part | None:
        """Our class of this name: of an axis, since a likelihood and a prior may share a name, or a model."""
        named = (self._sources.at(name, file) for file in self._sources.places.get(name, ()))
        return next((part for part in named if part.axis == axis), None)

    def _defaults(self, part: Part) -> dict[str, str | None]:
        return {name: None if value is None else self._default(value, part) for name, value in part.defaults.items()}

    def _default(self, value: ast.expr, part: Part) -> str | None:
        """A default as `of` would write it; None where only running the code would tell."""
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Name):
            made = self._sources.part(value.func.id, part.file)
            if made is None or made.axis is None:
                return None
            given = dict(zip(made.defaults, value.args, strict=False))
            given |= {word.arg: word.value for word in value.keywords if word.arg}
            own = self._defaults(made)
            written = {name: self._default(argument, made) for name, argument in given.items()}
            return f"{made.name}({', '.join(f'{name}={text}' for name, text in written.items() if text != own[name])})"
        try:
            return self.of(_literal(value))
        except ValueError:
            return None


def _literal(value: ast.expr) -> Any:
    """A default as JSON holds it: a literal, a ratio of two such as 1 / 3, or a constant such as math.pi."""
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Div):
        return _literal(value.left) / _literal(value.right)
    if isinstance(value, ast.Attribute) and isinstance(value.value, ast.Name) and value.value.id == "math":
        return getattr(math, value.attr)
    return _listed(ast.literal_eval(value))


def _listed(value: Any) -> Any:
    return [_listed(part) for part in value] if isinstance(value, tuple | list) else value
