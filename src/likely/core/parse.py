"""Read a spec from text. Only literals, names of registered specs and calls to them: nothing is ever evaluated.

>>> from likely.networks import Network
>>> Network.parse("mlp(hidden=[8, 8], activation=gelu)")
MLP(hidden=(8, 8), activation='gelu')
"""

from __future__ import annotations

import ast
from typing import Any, TypeVar

from .errors import SpecError
from .spec import Spec, _call, _lookup, _short, fold, inner_axes, registered

__all__ = ["parse_spec"]

S = TypeVar("S", bound=Spec)

LONGEST = 10_000
"""Characters a spec may have as text; longer input is refused before it is parsed."""

_WORDS = {"true": True, "false": False, "none": None, "inf": float("inf")}


def parse_spec(text: str, axis: type[S]) -> S:
    """The spec of `axis` that `text` describes."""
    if len(text) > LONGEST:
        raise SpecError(f"A {axis.axis} of {len(text)} characters is too long; at most {LONGEST} are read.")
    try:
        node = ast.parse(text.strip(), mode="eval").body
        return _spec(node, axis, text)
    except (SyntaxError, RecursionError, MemoryError, ValueError) as error:
        if isinstance(error, SpecError):
            raise
        raise SpecError(
            f"Cannot read {_short(text)} as a {axis.axis}; write it like a call with literals, "
            f"for example {next(iter(registered(axis)))!s}()."
        ) from None


def _spec(node: ast.expr, axis: type[S], text: str) -> S:
    if isinstance(node, ast.Name):
        return _call(_lookup(axis, node.id), (), {})
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        cls = _lookup(axis, node.func.id)
        fields = [name for name in cls.__dataclass_fields__]  # type: ignore[attr-defined]
        if any(keyword.arg is None for keyword in node.keywords):
            raise SpecError(f"In {_short(text)}: ** is not allowed in a spec.")
        args = [
            _value(argument, inner_axes(cls, fields[i]) if i < len(fields) else [], text)
            for i, argument in enumerate(node.args)
        ]
        kwargs = {k.arg: _value(k.value, inner_axes(cls, k.arg or ""), text) for k in node.keywords}
        return _call(cls, tuple(args), kwargs)  # type: ignore[arg-type]
    raise SpecError(
        f"Cannot read {_short(ast.unparse(node))} as a {axis.axis}; known: {', '.join(registered(axis))}."
    )


def _value(node: ast.expr, inner: list[type[Spec]], text: str) -> Any:
    if isinstance(node, ast.Constant) and not isinstance(node.value, bytes | complex) and node.value is not ...:
        return node.value
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant):
        value = node.operand.value
        if isinstance(value, int | float) and not isinstance(value, bool):
            return -value
    if isinstance(node, ast.List | ast.Tuple):
        return tuple(_value(item, inner, text) for item in node.elts)
    if isinstance(node, ast.Dict):
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
