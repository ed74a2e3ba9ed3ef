"""`likely show`: what is in a model file."""

from __future__ import annotations

import math
from typing import Any

from .options import JsonOption, ModelArgument, in_words
from .output import lines, number, print_json, print_table

__all__ = ["show"]


def show(model: ModelArgument, json: JsonOption = False) -> None:
    """Show a model file: its parts, how it reads each column, its parameters and, if it is linear, its coefficients."""
    from .. import load
    from ..core.files import read_file
    from ..models import TableModel

    header, _ = read_file(model)
    fitted = load(model)
    inner = fitted.model_ if isinstance(fitted, TableModel) else fitted
    facts: dict[str, Any] = {
        "file": str(model),
        "bytes": model.stat().st_size,
        "version": header.get("version"),
        "model": in_words(fitted) if isinstance(fitted, TableModel) else repr(fitted),
    }
    if isinstance(fitted, TableModel):
        facts |= {"target": fitted.target, "table": fitted.table_.describe()}
    if hasattr(fitted, "classes_"):
        facts["classes"] = [str(label) for label in fitted.classes_]
    posterior = getattr(inner, "posterior_", None)
    shapes = {} if posterior is None else {name: list(value.shape[1:]) for name, value in posterior.parameters.items()}
    facts["members"] = 0 if posterior is None else len(posterior)
    names = fitted.table_.feature_names_ if isinstance(fitted, TableModel) else None
    weights = _coefficients(inner, names) if names and hasattr(inner, "coef_") else {}
    if json:
        print_json(facts | {"parameters": shapes, "coefficients": weights})
        return
    facts["file"] = f"{model}, {number(facts.pop('bytes') / 1000)} kB, written by Likely {facts.pop('version')}"
    facts["members"] = f"{facts['members']} set{'s' * (facts['members'] != 1)} of parameters, averaged over"
    if "classes" in facts:
        facts["classes"] = ", ".join(facts["classes"])
    lines(facts)
    rows = [(name, " × ".join(map(str, shape)) or "1", math.prod(shape)) for name, shape in shapes.items()]
    print_table("parameters", ["name", "shape", "entries"], rows)
    if weights:
        width = len(next(iter(weights.values())))
        heads = ["coefficient"] if width == 1 else [f"η{i + 1}" for i in range(width)]
        print_table("coefficients of the encoded columns", ["number", *heads], [(k, *v) for k, v in weights.items()])


def _coefficients(model: Any, names: list[str]) -> dict[str, list[float]]:
    """The weights of a linear model by the name of the number they multiply: one for each number of η."""
    return dict(zip(names, model.coef_.reshape(-1, len(names)).T.tolist(), strict=True))
