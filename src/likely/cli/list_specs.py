"""`likely list`: every part that a model can be made of."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import pkgutil
from typing import Annotated, Any

import typer

from ..core.errors import SpecError
from .options import JsonOption
from .output import print_json, print_table

__all__ = ["list_specs"]


def list_specs(
    axis: Annotated[
        str | None,
        typer.Argument(metavar="[AXIS]", help="likelihood, network, prior, inference, …; all without one."),
    ] = None,
    json: JsonOption = False,
) -> None:
    """List the parts that models are made of, with their arguments."""
    known = _all_axes()
    if axis is not None and axis not in known:
        from difflib import get_close_matches

        close = get_close_matches(axis, known, n=1)
        hint = f" Did you mean {close[0]}?" if close else ""
        raise SpecError(f"Unknown axis {axis!r}.{hint} Known: {', '.join(known)}.")
    chosen = {axis: known[axis]} if axis is not None else known
    if json:
        print_json(chosen)
        return
    for name, specs in chosen.items():
        print_table(name, ["spec", "meaning"], [(spec["call"], spec["meaning"]) for spec in specs])


def _all_axes() -> dict[str, list[dict[str, Any]]]:
    """The specs of every axis by name; importing the packages is what registers them."""
    import likely

    from ..core.spec import axes, registered

    for module in pkgutil.iter_modules(likely.__path__, "likely."):
        if module.name not in ("likely.cli", "likely.__main__"):
            importlib.import_module(module.name)
    found: dict[str, list[type[Any]]] = {axis: list(registered(axis).values()) for axis in sorted(axes())}
    return {axis: [_described(spec) for spec in specs] for axis, specs in found.items() if specs}


def _described(spec: type[Any]) -> dict[str, Any]:
    fields = [field for field in dataclasses.fields(spec) if field.init]
    arguments = {field.name: _default(field) for field in fields}
    shown = ", ".join(name if default is None else f"{name}={default}" for name, default in arguments.items())
    meaning = (inspect.getdoc(spec) or "").split("\n\n")[0].replace("\n", " ")
    return {"name": spec.__name__, "call": f"{spec.__name__}({shown})", "arguments": arguments, "meaning": meaning}


def _default(field: dataclasses.Field[Any]) -> str | None:
    """The default as text; none where the argument must be given."""
    if field.default is not dataclasses.MISSING:
        return repr(field.default)
    if field.default_factory is not dataclasses.MISSING:
        return repr(field.default_factory())
    return None
