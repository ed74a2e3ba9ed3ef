"""The parts that models are made of, read from their source: no part is imported, and neither is torch.

A class is a part if its bases lead to one that opens an axis, `class Network(Spec, axis="network")`, and its name is
public: the rule by which `core.spec` registers them. Its arguments are its annotated fields and those of its bases.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

__all__ = ["Part", "catalogue"]

ROOT = Path(__file__).resolve().parent.parent
HEAD = re.compile(r"^class (\w+)\(([^)]*)\)", re.MULTILINE)
WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class Part:
    """One class in one file; `bases` are the classes that it names, as far as they are ours."""

    file: Path
    node: ast.ClassDef
    bases: tuple[Part, ...]

    @property
    def name(self) -> str:
        """The name of the class."""
        return self.node.name

    @cached_property
    def opens(self) -> str | None:
        """The axis that it opens, if it does."""
        given = next((word.value for word in self.node.keywords if word.arg == "axis"), None)
        return given.value if isinstance(given, ast.Constant) and isinstance(given.value, str) else None

    @cached_property
    def axis(self) -> str | None:
        """The axis that it belongs to."""
        return self.opens or next((base.axis for base in self.bases if base.axis), None)

    @cached_property
    def arguments(self) -> dict[str, str | None]:
        """Defaults as text by name, None where the argument must be given."""
        arguments: dict[str, str | None] = {}
        for base in reversed(self.bases):
            arguments |= base.arguments
        for line in self.node.body:
            if not isinstance(line, ast.AnnAssign) or not isinstance(line.target, ast.Name):
                continue
            if "ClassVar" not in ast.unparse(line.annotation):
                arguments[line.target.id] = _default(line.value)
        return arguments

    @property
    def meaning(self) -> str:
        """The first paragraph of the docstring."""
        return (ast.get_docstring(self.node) or "").split("\n\n")[0].replace("\n", " ")


def catalogue() -> dict[str, list[Part]]:
    """The public parts of every axis, by name.

    >>> "Normal" in [part.name for part in catalogue()["prior"]]
    True
    """
    known: dict[str, list[Part]] = {}
    alone: dict[str, list[Part]] = {}
    for part in _resolved():
        if part.opens:
            alone[part.opens] = [part] if part.arguments else []  # an axis of one part, such as `Noise`
        elif part.axis and not part.name.startswith("_"):
            known.setdefault(part.axis, []).append(part)
    both = {axis: sorted(parts, key=lambda part: part.name) for axis, parts in (alone | known).items() if parts}
    return dict(sorted(both.items()))


def _resolved() -> Iterator[Part]:
    """Every class of the library with its bases."""
    classes: dict[str, list[tuple[Path, ast.ClassDef]]] = {}
    for file, text in _files_with_parts():
        for node in ast.parse(text).body:
            if isinstance(node, ast.ClassDef):
                classes.setdefault(node.name, []).append((file, node))
    made: dict[tuple[Path, str], Part] = {}

    def part(file: Path, node: ast.ClassDef) -> Part:
        key = file, node.name
        if key not in made:
            names = [base.id for base in node.bases if isinstance(base, ast.Name)]
            near = [
                min(classes[name], key=lambda other: _distance(file, other[0])) for name in names if name in classes
            ]
            made[key] = Part(file, node, tuple(part(*base) for base in near if base[1] is not node))
        return made[key]

    for places in classes.values():
        for file, node in places:
            yield part(file, node)


def _files_with_parts() -> Iterator[tuple[Path, str]]:
    """Only these are worth parsing: a look at the first lines of classes finds them, by the names of their bases."""
    texts = {file: file.read_text(encoding="utf-8") for file in sorted(ROOT.rglob("*.py")) if file.parent.name != "cli"}
    heads = {
        file: [(name, set(WORD.findall(rest))) for name, rest in HEAD.findall(text)] for file, text in texts.items()
    }
    wanted, more = {"Spec"}, {"Spec"}
    while more:
        more = {name for own in heads.values() for name, bases in own if bases & wanted} - wanted
        wanted |= more
    for file, text in texts.items():
        if any(name in wanted for name, _ in heads[file]):
            yield file, text


def _distance(file: Path, other: Path) -> tuple[bool, int]:
    """Of two classes with one name, a base is the one in the same file, or in the nearest folder."""
    shared = len([1 for own, its in zip(file.parts, other.parts, strict=False) if own == its])
    return file != other, -shared


def _default(value: ast.expr | None) -> str | None:
    if value is None:
        return None
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "transient":
        return ast.unparse(value.args[0]) if value.args else "None"
    return ast.unparse(value)
