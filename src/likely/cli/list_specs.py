"""`likely list`: every part that a model can be made of."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from ..core.errors import SpecError
from .catalogue import Part, catalogue
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
    """The specs of every axis by name."""
    return {axis: [_described(part) for part in parts] for axis, parts in catalogue().items()}


def _described(part: Part) -> dict[str, Any]:
    shown = ", ".join(name if default is None else f"{name}={default}" for name, default in part.arguments.items())
    call = f"{part.name}({shown})"
    return {"name": part.name, "call": call, "arguments": part.arguments, "meaning": part.meaning}
