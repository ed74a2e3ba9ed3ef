"""A formula beside a fitted model: how columns of new frames are made, without the rows that it was learned from.

In a file it is the text and what was learned (levels, knots, means) as plain data. Evaluating a formula calls functions
by name, so a file may only name those that make columns of numbers.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..core.errors import DataError, ModelFileError
from .formula import Formula, encoded, library, right_side

__all__ = ["KeptFormula"]

FUNCTIONS = {
    *("log", "log10", "log2", "exp", "exp10", "exp2", "bs", "cc", "cr", "cs", "center", "lag", "poly", "scale"),
    *("standardize", "C", "I", "Treatment", "Sum", "Helmert", "Diff", "Poly"),
}
"""What a formula of a file may call, beside numpy's functions of single numbers."""
CONTRASTS = {"treatment", "SAS", "sum", "helmert", "diff", "poly"}
BASES = {"bs", "cc", "cr", "cs", "poly"}
MOST = 1_000
"""Columns that one term of a file may make."""
PLAIN = (
    *(ast.Expression, ast.Name, ast.Load, ast.Constant, ast.BinOp, ast.UnaryOp, ast.Compare, ast.operator),
    *(ast.unaryop, ast.cmpop, ast.keyword, ast.List, ast.Tuple),
)


class KeptFormula:
    """Makes the columns of a model from frames, as its formula did for the rows of the fit.

    >>> design = Formula("y ~ x + C(group)", {"y": [1.0, 3.0], "x": [0.0, 1.0], "group": ["a", "b"]})
    >>> kept = KeptFormula.from_json(KeptFormula.of(design).to_json())
    >>> kept({"x": [2.0], "group": ["b"]}).to_dict("list")
    {'x': [2.0], 'C(group)[T.b]': [1.0]}
    """

    def __init__(self, formula: str, terms: tuple[str, ...], state: Mapping[str, Any], spec: Any = None) -> None:
        self.formula, self.terms, self._state, self._spec = formula, terms, state, spec
        self.of_file = spec is None
        """Whether it was read from a file, and so is looked at before it is evaluated."""

    @classmethod
    def of(cls, design: Formula) -> KeptFormula:
        """What is needed of a formula once its model is fitted."""
        spec = design._spec
        levels = {expr: [kind.value, state.get("categories")] for expr, (kind, state) in spec.encoder_state.items()}
        state = {"transforms": _to_json(spec.transform_state), "levels": _to_json(levels)}
        return cls(design.formula, design.terms, state, spec)

    def columns_of(self, X: Any) -> Any:
        """The columns of the model: made from a frame of others, else X as it is."""
        if isinstance(X, Formula):
            return X.X
        names = X if isinstance(X, Mapping) else getattr(X, "columns", None)
        return X if names is None or {str(name) for name in names} == set(self.terms) else self(X)

    def __call__(self, frame: Any) -> Any:
        """The columns of new rows."""
        if self._spec is None:
            self._spec = self._rebuilt()
        columns = encoded(self._spec, self.formula, frame)
        if tuple(columns.columns) != self.terms:
            raise DataError(f"{self.formula!r} gives other columns here than in the fit: {', '.join(columns.columns)}.")
        return columns

    def to_json(self) -> dict[str, Any]:
        """The text, the names of the columns, and what was learned."""
        return {"formula": self.formula, "terms": list(self.terms), **self._state}

    @classmethod
    def from_json(cls, stored: Any) -> KeptFormula:
        """The inverse of `to_json`; what it calls is looked at when it is first asked."""
        text = isinstance(stored, Mapping) and isinstance(stored.get("formula"), str)
        if not text or not isinstance(stored.get("terms"), list) or not all(type(t) is str for t in stored["terms"]):
            raise ModelFileError("The file has a formula without its text or the names of its columns.")
        return cls(stored["formula"], tuple(stored["terms"]), {k: stored.get(k) for k in ("transforms", "levels")})

    @property
    def strange(self) -> str | None:
        """The first part that a file may not evaluate."""
        for term in right_side(library().Formula(self.formula)):
            for factor in term.factors:
                if factor.eval_method.value == "python" and not _is_plain(factor.expr):
                    return str(factor.expr)
        return None

    def _rebuilt(self) -> Any:
        from formulaic.model_spec import ModelSpec
        from formulaic.parser.types import Factor

        try:
            side, strange = right_side(library().Formula(self.formula)), self.strange
            transforms = _from_json(self._state["transforms"])
            levels = {
                expr: (Factor.Kind(kind), {} if own is None else {"categories": list(own)})
                for expr, (kind, own) in _from_json(self._state["levels"]).items()
            }
        except (ValueError, TypeError, KeyError, AttributeError, SyntaxError) as error:
            raise ModelFileError(f"The formula of the file, {self.formula!r}, cannot be read.") from error
        if strange is not None:
            raise ModelFileError(f"The formula of the file has {strange!r}, which a file may not call.")
        return ModelSpec(formula=side, transform_state=transforms, encoder_state=levels)


def _is_plain(expression: str) -> bool:
    """Whether it is made of columns, numbers, operators and the functions that are known.

    >>> _is_plain("np.log(x ** 2) + bs(age, df=4)"), _is_plain("__import__('os').remove(x)"), _is_plain("x.values")
    (True, False, False)
    >>> _is_plain("x + 9 ** 9 ** 9"), _is_plain("bs(age, df=10 ** 9)")
    (False, False)
    """
    try:
        tree = ast.parse(expression, mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    known: set[ast.AST] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _is_known(node.func):
            known |= {node, node.func, *ast.walk(node.func)}
        if isinstance(node, ast.Attribute) and _is_known(node):
            known |= {node, *ast.walk(node)}
    names = {node for node in ast.walk(tree) if isinstance(node, ast.Name)}
    return not any(name.id.startswith("__") for name in names) and all(
        (node in known or isinstance(node, PLAIN)) and _is_bounded(node, names - known) for node in ast.walk(tree)
    )


def _is_bounded(node: ast.AST, columns: set[ast.Name]) -> bool:
    """Whether its value is no larger than the columns are: powers of literal numbers and repeated lists may be huge."""
    if isinstance(node, ast.BinOp):
        if any(isinstance(side, ast.List | ast.Tuple) or _is_text(side) for side in (node.left, node.right)):
            return False
        return not isinstance(node.op, ast.Pow | ast.LShift) or not columns.isdisjoint(ast.walk(node.left))
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in BASES:
        sizes = [*node.args[1:], *(own.value for own in node.keywords if own.arg in ("df", "degree"))]
        return all(isinstance(own, ast.Constant) and _is_size(own.value) for own in sizes)
    return True


def _is_size(value: object) -> bool:
    return value is None or (isinstance(value, int | float) and value <= MOST)


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str | bytes)


def _is_known(function: ast.AST) -> bool:
    if isinstance(function, ast.Name):
        return function.id in FUNCTIONS
    if not isinstance(function, ast.Attribute) or not isinstance(function.value, ast.Name):
        return False
    if function.value.id == "contr":
        return function.attr in CONTRASTS
    return function.value.id == "np" and isinstance(getattr(np, function.attr, None), np.ufunc)


def _to_json(value: Any) -> Any:
    """Plain data; keys need not be text, and arrays come back as arrays."""
    if isinstance(value, Mapping):
        return {"map": [[_to_json(key), _to_json(own)] for key, own in value.items()]}
    if isinstance(value, np.ndarray):
        return {"array": value.tolist()}
    if isinstance(value, np.generic):
        return value.item()
    return [_to_json(own) for own in value] if isinstance(value, list | tuple) else value


def _from_json(value: Any) -> Any:
    if isinstance(value, Mapping):
        if "array" in value:
            return np.array(value["array"])
        return {_from_json(key): _from_json(own) for key, own in value["map"]}
    return [_from_json(own) for own in value] if isinstance(value, list) else value
