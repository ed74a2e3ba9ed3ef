"""What a field's annotation says of its values: numbers, words, specs. Checked on construction, read by the parser."""

from __future__ import annotations

import dataclasses
import os
import types
import typing
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

from .errors import SpecError

__all__ = ["check_kinds", "hints_of"]


class Kind(NamedTuple):
    """One alternative of an annotation: does a value belong to it, and its name in messages."""

    holds: Callable[[Any], bool]
    words: str


_PLAIN: dict[Any, Kind] = {
    bool: Kind(lambda v: isinstance(v, bool), "True or False"),
    int: Kind(lambda v: isinstance(v, int) and not isinstance(v, bool), "an integer"),
    float: Kind(lambda v: isinstance(v, int | float) and not isinstance(v, bool), "a number"),
    str: Kind(lambda v: isinstance(v, str | os.PathLike), "text"),
    types.NoneType: Kind(lambda v: v is None, "None"),
}


def check_kinds(spec: Any, shown: Callable[[Any], str] = repr) -> None:
    """Raise a `SpecError` for the first field whose value is of none of the kinds that its annotation names."""
    owner: Any = type(spec)
    for name, kinds in _kinds_of(owner).items():
        value = getattr(spec, name)
        if not any(kind.holds(value) for kind in kinds):
            needs = " or ".join(kind.words for kind in kinds)
            raise SpecError(f"{owner.__name__}({name}={shown(value)}): {name} must be {needs}.")


def hints_of(cls: type) -> dict[str, Any]:
    """The annotations of a class, resolved; none if one of them is known to a type checker only."""
    try:
        return typing.get_type_hints(cls)
    except NameError:
        return {}


@cache
def _kinds_of(cls: Any) -> dict[str, list[Kind]]:
    """The kinds of each field; fields that may hold anything else (functions, data, containers) are left out."""
    kinds_by_name: dict[str, list[Kind]] = {}
    hints = hints_of(cls)
    for field in dataclasses.fields(cls):
        kinds = [_kind(hint) for hint in _alternatives(hints.get(field.name, Any))]
        if all(kind is not None for kind in kinds):
            kinds_by_name[field.name] = [kind for kind in kinds if kind is not None]
    return kinds_by_name


def _alternatives(hint: Any) -> list[Any]:
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return [inner for argument in typing.get_args(hint) for inner in _alternatives(argument)]
    return [hint]


def _kind(hint: Any) -> Kind | None:
    if hint in _PLAIN:
        return _PLAIN[hint]
    if typing.get_origin(hint) is typing.Literal:
        values = typing.get_args(hint)
        return Kind(lambda v: any(type(v) is type(w) and v == w for w in values), " or ".join(map(repr, values)))
    axis: Any = getattr(hint, "axis", None)
    if isinstance(hint, type) and axis:  # a spec
        return Kind(lambda v: isinstance(v, hint), f"{'an' if axis[0] in 'aeiou' else 'a'} {axis} spec")
    return None
