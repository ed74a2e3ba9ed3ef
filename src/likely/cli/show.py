"""`likely show`: what is in a model file, read from its header. The model is not built, and torch is not loaded."""

from __future__ import annotations

import math
import mmap
import re
from collections.abc import Mapping
from itertools import compress
from typing import Any

from ..core.errors import ModelFileError
from ..core.header import CODES, Content, Header, opened
from .options import AXES, JsonOption, ModelArgument
from .output import lines, number, print_json, print_table
from .words import Words

__all__ = ["show"]

MEMBERS = ("parameters.", "draws.")
"""How the names of tensors begin that hold one set of parameters for each member of a posterior."""
IS_AFFINE = "buffers.is_affine"
"""The tensor that says which member is an affine map in place of the network."""
FEW = 6
"""Entries up to which a tensor is shown with its values."""


def show(model: ModelArgument, json: JsonOption = False) -> None:
    """Show a model file: its parts, how it reads each column, its parameters and, if it is linear, its coefficients.

    These have standard errors, intervals and tests, in the units of the columns, with log-likelihood, AIC and BIC,
    where the model's summary() has them. Also what the likelihood learned beside them: a scale, a dispersion, degrees
    of freedom, cut points.
    """
    with opened(model) as (stream, header), mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as content:
        header.verify(content)
        try:
            facts = _facts(header, content)
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            detail = f"no {error}" if isinstance(error, KeyError) else str(error)
            raise ModelFileError(f"{model} does not describe a model: {detail}.") from error
        facts = {"file": str(model), "bytes": len(content), **facts}
    if json:
        print_json(facts)
    else:
        _print(facts)


def _facts(header: Header, content: Content) -> dict[str, Any]:
    """What the file says, by name."""
    words, description = Words(), header.description
    facts: dict[str, Any] = {"version": description.get("version"), "model": words.of(description)}
    params, learned = description["params"], description["learned"]
    names: list[str] = []
    if description["model"] == "TableModel":
        from ..data.columns import column_from_json, describe

        inner, text = params["model"]["params"], learned["table"].get("text")
        columns = [column_from_json(column) for column in learned["table"].get("columns", ())]
        names = [feature for column in columns for feature in column.features]
        axes = AXES if text is None else (*AXES, "tokens")
        facts["model"] = ", ".join(f"{axis} {_bare(words, inner[axis])}" for axis in axes if axis in inner)
        facts |= {"target": params["target"], "table": describe(columns) if text is None else f"texts of {text}"}
    if description["model"] in ("TableModel", "FrameModel"):
        learned = learned["model"]
    if "vocabulary" in learned:
        facts["tokens"] = _vocabulary(learned["vocabulary"])
    if isinstance(learned.get("edges_"), list) and "states_" in learned:
        pairs = [edge for edge in learned["edges_"] if isinstance(edge, list)]
        facts["edges"] = ", ".join(f"{parent} → {child}" for parent, child in pairs) or "none: all are independent"
        facts["states"] = "; ".join(f"{name}: {_some(own)}" for name, own in learned["states_"].items())
    if "classes" in learned:
        facts["classes"] = [str(label) for label in learned["classes"]]
    facts["learned"] = {
        name.rstrip("_"): value
        for name, value in learned.items()
        if name.endswith("_") and name != "form_" and _is_scalar(value)
    }
    facts["constants"] = {str(name): float(value) for name, value in (learned.get("constants") or {}).items()}
    coefficients = _coefficients(header, content, learned, names)
    facts |= _sizes(header) | {"affine_weight": _affine_weight(header, content)}
    facts |= {"values": _values(header, content), "coefficients": coefficients}
    return facts | _summary(learned.get("summary"))


def _some(states: list[Any]) -> str:
    """States of a variable, the first few.

    >>> _some(["no", "yes"])
    'no, yes'
    """
    return ", ".join(str(state) for state in states[:FEW]) + (", …" if len(states) > FEW else "")


def _vocabulary(learned: Mapping[str, Any] | list[str]) -> str:
    """How many tokens of which kind a model knows.

    >>> _vocabulary({"kind": "characters", "points": [97, 98]})
    '2 characters'
    """
    if isinstance(learned, list):
        return f"{len(learned)} words"
    if learned["kind"] == "forms":
        return f"{len(learned['forms'])} forms of words"
    if learned["kind"] == "bag":
        both = " and pairs of them" if learned["pairs"] else ""
        return f"{len(learned['codes'])} columns: {_vocabulary(learned['tokens'])}{both}"
    counts = {"characters": "points", "words": "words", "byte_pairs": "merges"}
    kind = str(learned["kind"])
    what = {"byte_pairs": "pairs of bytes merged"}.get(kind, kind)
    return f"{len(learned[counts[kind]])} {what}"


def _summary(told: Mapping[str, Any] | None) -> dict[str, Any]:
    """What `summary()` of the model tells: its terms, in the units of the columns, and the fit as a whole."""
    if told is None:
        return {}
    names, terms = list(told["terms"][0]), [dict(term) for term in told["terms"]]
    if any(list(term) != names for term in terms):
        raise ValueError("its terms are not told alike")
    return {"fit": dict(told["facts"]), "summary": terms, "errors": str(told["note"])}


def _sizes(header: Header) -> dict[str, Any]:
    """How many sets of parameters there are (0 for a model that is not a posterior), and the shape of each tensor."""
    shapes, members = {}, 0
    for name, stored in sorted(header.tensors.items(), key=lambda item: _natural(item[0])):
        start = next((start for start in MEMBERS if name.startswith(start)), None)
        if start is not None:
            members, shapes[name.removeprefix(start)] = stored.shape[0], list(stored.shape[1:])
        elif "weights" not in header.tensors:  # beside a posterior's parameters are only numbers that serve them
            shapes[name] = list(stored.shape)
    return {"members": members, "parameters": shapes}


def _affine_weight(header: Header, content: Content) -> float:
    """The weight of the affine map that stands beside networks, 0 where there is none."""
    marks = header.tensors.get(IS_AFFINE)
    return 0.0 if marks is None else sum(compress(header.tensors["weights"].values(content), content[marks.place]))


def _values(header: Header, content: Content) -> dict[str, list[float]]:
    """The entries of tensors with few of them; not of a posterior's, which has one set for each member."""
    known = {name: own for name, own in header.tensors.items() if own.dtype in CODES}
    small = {name: own for name, own in known.items() if 0 < math.prod(own.shape) <= FEW}
    return {
        name: list(own.values(content))
        for name, own in small.items()
        if not name.startswith(MEMBERS) and "weights" not in header.tensors
    }


def _coefficients(
    header: Header, content: Content, learned: Mapping[str, Any], names: list[str]
) -> dict[str, list[float]]:
    """The weights of a linear model by the name of the number they multiply: one for each number of η.

    They are averaged over the posterior, Σₛ wₛ βₛ.
    """
    stored = header.tensors.get("parameters.network.weight")
    if not names or stored is None or not learned.get("plan", {}).get("linear"):
        return {}
    weights, values = header.tensors["weights"].values(content), stored.values(content)
    size = len(values) // len(weights)
    sets = [values[start : start + size] for start in range(0, len(values), size)]
    mean = [sum(w * v for w, v in zip(weights, column, strict=True)) for column in zip(*sets, strict=True)]
    return {name: mean[i :: len(names)] for i, name in enumerate(names)}


def _print(facts: dict[str, Any]) -> None:
    shapes, weights, members = facts.pop("parameters"), facts.pop("coefficients"), facts.pop("members")
    values, affine = facts.pop("values"), facts.pop("affine_weight")
    terms, note = facts.pop("summary", []), facts.pop("errors", "")
    if fit := facts.pop("fit", {}):
        facts["fit"] = ", ".join(f"{name.replace('_', ' ')} {number(value)}" for name, value in fit.items())
    facts["file"] = f"{facts['file']}, {number(facts.pop('bytes') / 1000)} kB, written by Likely {facts.pop('version')}"
    if learned := facts.pop("learned"):
        facts["learned"] = ", ".join(f"{name} {number(value)}" for name, value in learned.items())
    if constants := facts.pop("constants"):
        facts["constants"] = ", ".join(f"{name} {number(value)}" for name, value in constants.items())
    if members > 1:
        facts["members"] = _members(members, affine)
    if "classes" in facts:
        facts["classes"] = ", ".join(facts["classes"])
    lines(facts)
    rows = [
        (name, " × ".join(map(str, shape)) or "1", math.prod(shape), ", ".join(map(number, values.get(name, ()))))
        for name, shape in shapes.items()
    ]
    heads = ["name", "shape", "entries", *(["values"] if values else [])]
    print_table("parameters", heads, [row[: len(heads)] for row in rows])
    if terms:
        heads = [name.replace("_", " ") for name in terms[0]]
        cells = [["—" if value is None else value for value in term.values()] for term in terms]
        print_table("coefficients in the units of the columns", heads, cells, note)
    elif weights:
        width = len(next(iter(weights.values())))
        heads = ["coefficient"] if width == 1 else [f"η{i + 1}" for i in range(width)]
        print_table("coefficients of the encoded columns", ["number", *heads], [(k, *v) for k, v in weights.items()])


def _members(count: int, affine: float) -> str:
    """What predictions are averages over, and how much of them is the affine map.

    >>> _members(3, 0.0)
    '3 sets of parameters, averaged over'
    >>> _members(9, 0.912)
    '8 networks and an affine map of the columns, averaged over; the weight of the map is 0.912'
    """
    if not affine:
        return f"{count} sets of parameters, averaged over"
    networks = f"{count - 1} networks" if count > 2 else "a network"
    return f"{networks} and an affine map of the columns, averaged over; the weight of the map is {number(affine)}"


def _bare(words: Words, value: Any) -> str:
    """Text such as auto without its quotes."""
    return value if isinstance(value, str) else words.of(value)


def _natural(name: str) -> list[tuple[bool, int, str]]:
    """So that layer 10 follows layer 9."""
    return [(part.isdigit(), int(part) if part.isdigit() else 0, part) for part in re.split(r"(\d+)", name)]


def _is_scalar(value: Any) -> bool:
    return isinstance(value, bool | int | float | str)
