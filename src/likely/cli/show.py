"""`likely show`: what is in a model file."""

from __future__ import annotations

import math
from typing import Any

from .options import JsonOption, ModelArgument
from .output import lines, number, print_json, print_table

__all__ = ["show"]


def show(model: ModelArgument, json: JsonOption = False) -> None:
    """Show a model file: its parts, how it reads each column, and the names of its parameters."""
    from .. import load
    from ..core.files import read_file
    from ..data import TableModel

    header, tensors = read_file(model)
    fitted = load(model)
    parameters = [(name, list(value.shape), math.prod(value.shape)) for name, value in tensors.items()]
    facts: dict[str, Any] = {
        "file": str(model),
        "bytes": model.stat().st_size,
        "version": header.get("version"),
        "model": repr(fitted.model if isinstance(fitted, TableModel) else fitted),
    }
    if isinstance(fitted, TableModel):
        facts |= {"target": fitted.target, "table": fitted.table_.describe()}
        if hasattr(fitted, "classes_"):
            facts["classes"] = [str(label) for label in fitted.classes_]
    if json:
        named = [{"name": name, "shape": shape} for name, shape, _ in parameters]
        print_json(facts | {"parameters": named})
        return
    facts["file"] = f"{model}, {number(facts.pop('bytes') / 1000)} kB, written by Likely {facts.pop('version')}"
    if "classes" in facts:
        facts["classes"] = ", ".join(facts["classes"])
    lines(facts)
    print_table("parameters", ["name", "shape", "numbers"], [(n, " × ".join(map(str, s)), c) for n, s, c in parameters])
