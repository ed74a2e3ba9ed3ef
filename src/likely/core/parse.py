"""Read a spec from text. Only literals, names of registered specs and calls to them: nothing is ever evaluated.

>>> from likely.networks import Network
>>> Network.parse("mlp(hidden=[8, 8], activation=gelu)")
MLP(hidden=(8, 8), activation='gelu')
"""

from __future__ import annotations

import ast
import dataclasses
import typing
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from typing import Any, TypeVar

from .errors import SpecError
from .kinds import hints_of
from .quiet import quiet
from .spec import (
    Spec,
    _call,
    _lookup,
    _short,
    fold,
    registered,
)

__all__ = ["parse_call", "parse_spec"]

S = TypeVar("S", bound=Spec)

LONGEST = 10_000
"""Characters a spec may have as text; longer input is refused before it is parsed."""

_WORDS = {"true": True, "false": False, "none": None, "inf": float("inf"), "nan": float("nan")}


def parse_spec(text: str, axis: type[S]) -> S:
    """The spec of `axis` that `text` describes."""
    if not isinstance(text, str):
        raise SpecError(f"A {axis.axis} is read from text; found {_short(text)}.")
    if len(text) > LONGEST:
        raise SpecError(f"A {axis.axis} of {len(text)} characters is too long; at most {LONGEST} are read.")
    try:
        with quiet(Warning):  # Python warns of odd escapes, which are the user's words here
            node = ast.parse(text.strip(), mode="eval").body
        return _spec(node, axis, text)
    except SpecError:
        raise
    except (SyntaxError, RecursionError, MemoryError, ValueError):
        raise SpecError(
            f"Cannot read {_short(text)} as a {axis.axis}; write it like a call with literals, "
            f"for example {next(iter(registered(axis)))}()."
        ) from None


def parse_call(text: str, makers: Mapping[str, Callable[..., Any]], axes: list[type[Spec]], what: str) -> Any:
    """What a call in text makes: one of `makers` by name, with literals, specs of these axes, or calls like it inside.

    >>> from likely.likelihoods import Likelihood
    >>> parse_call("pair(first=normal(scale=2.0), second=3)", {"Pair": dict}, [Likelihood], "thing")
    {'first': Normal(scale=2.0), 'second': 3}
    """
    known = {fold(name): name for name in makers}

    def made(node: ast.expr) -> Any:
        if isinstance(node, ast.Name) and fold(node.id) in known:
            return makers[known[fold(node.id)]]()
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and fold(node.func.id) in known:
            name = known[fold(node.func.id)]
            named = {str(keyword.arg): made(keyword.value) for keyword in node.keywords}
            try:
                return makers[name](*map(made, node.args), **named)
            except TypeError as error:
                raise SpecError(f"In {_short(text)}: {str(error).replace('__init__()', name)}.") from None
        return _value(node, axes, text)

    try:
        body = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, RecursionError, MemoryError, ValueError):
        body = ast.Constant(None)
    name = body.id if isinstance(body, ast.Name) else getattr(getattr(body, "func", None), "id", None)
    if not isinstance(name, str):
        raise SpecError(
            f"Cannot read {_short(text)} as a {what}; write it like a call, such as {next(iter(makers))}()."
        )
    if fold(name) not in known:
        close = get_close_matches(fold(name), known, n=1)
        hint = f" Did you mean {known[close[0]]}?" if close else ""
        raise SpecError(f"Unknown {what} {name!r}.{hint} Known: {', '.join(makers)}.")
    return made(body)


def _spec(node: ast.expr, axis: type[S], text: str) -> S:
    if isinstance(node, ast.Name):
        return _call(_lookup(axis, node.id), (), {})
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        cls = _lookup(axis, node.func.id)
        fields = [field.name for field in dataclasses.fields(cls) if field.init]  # type: ignore[arg-type]
        args = [
            _value(argument, _inner_axes(cls, fields[i]) if i < len(fields) else [], text)
            for i, argument in enumerate(node.args)
        ]
        kwargs: dict[str, Any] = {}
        for keyword in node.keywords:
            if keyword.arg is None:
                raise SpecError(f"In {_short(text)}: ** is not allowed in a spec.")
            if keyword.arg in kwargs:
                raise SpecError(f"{cls.__name__} got {keyword.arg!r} twice.")
            kwargs[keyword.arg] = _value(keyword.value, _inner_axes(cls, keyword.arg), text)
        return _call(cls, tuple(args), kwargs)
    raise SpecError(f"Cannot read {_short(ast.unparse(node))} as a {axis.axis}; known: {', '.join(registered(axis))}.")


def _value(node: ast.expr, inner: list[type[Spec]], text: str) -> Any:
    if isinstance(node, ast.Constant) and not isinstance(node.value, bytes | complex) and node.value is not ...:
        return node.value
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        value = _value(node.operand, [], text) if isinstance(node.operand, ast.Constant | ast.Name) else None
        if isinstance(value, int | float) and not isinstance(value, bool):
            return -value
    if isinstance(node, ast.List | ast.Tuple):
        return tuple(_value(item, inner, text) for item in node.elts)
    if isinstance(node, ast.Dict):
        if not all(isinstance(key, ast.Constant | ast.Name) for key in node.keys):
            raise SpecError(f"In {_short(text)}: the keys of {_short(ast.unparse(node))} must be words.")
        pairs = zip(node.keys, node.values, strict=True)
        return {_value(k, [], text): _value(v, inner, text) for k, v in pairs if k is not None}
    if isinstance(node, ast.Name):
        if node.id in _WORDS:
            return _WORDS[node.id]
        if any(fold(node.id) in map(fold, registered(axis)) for axis in inner):
            return _inner(node, node.id, inner, text)
        return node.id
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and inner:
        return _inner(node, node.func.id, inner, text)
    raise SpecError(f"In {_short(text)}: {_short(ast.unparse(node))} is not a literal or a known spec.")


def _inner(node: ast.expr, name: str, inner: list[type[Spec]], text: str) -> Spec:
    for axis in inner:
        if fold(name) in map(fold, registered(axis)):
            return _spec(node, axis, text)
    return _spec(node, inner[0], text)


def _inner_axes(cls: type[Spec], name: str) -> list[type[Spec]]:
    """The axes of the specs that a field may hold, from its annotation."""
    axes: list[type[Spec]] = []

    def walk(hint: Any) -> None:
        if isinstance(hint, type) and issubclass(hint, Spec) and hint is not Spec:
            axes.append(hint)
        for argument in typing.get_args(hint):
            walk(argument)

    walk(hints_of(cls).get(name))
    return axes
