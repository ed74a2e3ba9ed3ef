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

__all__ = ["Part", "Sources", "catalogue"]

ROOT = Path(__file__).resolve().parent.parent
HEAD = re.compile(r"^class (\w+)\(([^)]*)\)", re.MULTILINE)
WORD = re.compile(r"\w+")
INIT = "__init__"


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
    def defaults(self) -> dict[str, ast.expr | None]:
        """Defaults by name, None where the argument must be given: of `__init__`, or else of the annotated fields."""
        own = next((line for line in self.node.body if isinstance(line, ast.FunctionDef) and line.name == INIT), None)
        if own is not None:
            return _signature(own.args)
        defaults: dict[str, ast.expr | None] = {}
        for base in reversed(self.bases):
            defaults |= base.defaults
        for line in self.node.body:
            if not isinstance(line, ast.AnnAssign) or not isinstance(line.target, ast.Name):
                continue
            if "ClassVar" not in ast.unparse(line.annotation):
                defaults[line.target.id] = _without_transient(line.value)
        return defaults

    @cached_property
    def arguments(self) -> dict[str, str | None]:
        """Defaults as text by name, None where the argument must be given."""
        return {name: None if value is None else ast.unparse(value) for name, value in self.defaults.items()}

    @property
    def meaning(self) -> str:
        """The first paragraph of the docstring."""
        return (ast.get_docstring(self.node) or "").split("\n\n")[0].replace("\n", " ")


class Sources:
    """The classes of the library by name. A file is parsed when one of its classes is asked for."""

    def __init__(self) -> None:
        self.texts = {
            file: file.read_text(encoding="utf-8") for file in sorted(ROOT.rglob("*.py")) if file.parent.name != "cli"
        }
        self.bases: dict[tuple[str, Path], set[str]] = {}
        self.places: dict[str, list[Path]] = {}
        for file, text in self.texts.items():
            for name, rest in HEAD.findall(text):
                self.bases[name, file] = set(WORD.findall(rest))
                self.places.setdefault(name, []).append(file)
        self._nodes: dict[Path, dict[str, ast.ClassDef]] = {}
        self._imports: dict[Path, dict[str, Path]] = {}
        self._parts: dict[tuple[str, Path], Part] = {}

    def part(self, name: str, file: Path = ROOT) -> Part | None:
        """The class that a file means by this name: its own, the one it imports, or the one in the nearest folder."""
        if name not in self.places:
            return None
        source = self._imports.get(file, {}).get(name)
        places = [place for place in self.places[name] if source and source in (place, *place.parents)]
        return self.at(name, min(places or self.places[name], key=lambda place: _distance(file, place)))

    def parts(self, root: str) -> Iterator[Part]:
        """Every class whose bases lead to `root`."""
        wanted, more = {root}, {root}
        while more:
            more = {name for (name, _), bases in self.bases.items() if bases & wanted} - wanted
            wanted |= more
        for name in wanted:
            for file in self.places.get(name, ()):
                yield self.at(name, file)

    def at(self, name: str, file: Path) -> Part:
        """The class of this name in a file."""
        if (name, file) not in self._parts:
            if file not in self._nodes:
                body = ast.parse(self.texts[file]).body
                self._imports[file] = _imports(file, body)
                self._nodes[file] = {line.name: line for line in body if isinstance(line, ast.ClassDef)}
            node = self._nodes[file][name]
            names = [base.id for base in node.bases if isinstance(base, ast.Name) and base.id != name]
            bases = [self.part(base, file) for base in names]
            self._parts[name, file] = Part(file, node, tuple(base for base in bases if base is not None))
        return self._parts[name, file]


def catalogue() -> dict[str, list[Part]]:
    """The public parts of every axis, by name.

    >>> "Normal" in [part.name for part in catalogue()["prior"]]
    True
    """
    known: dict[str, list[Part]] = {}
    alone: dict[str, list[Part]] = {}
    for part in Sources().parts("Spec"):
        if part.opens:
            alone[part.opens] = [part] if part.arguments else []  # an axis of one part, such as `Noise`
        elif part.axis and not part.name.startswith("_"):
            known.setdefault(part.axis, []).append(part)
    both = {axis: sorted(parts, key=lambda part: part.name) for axis, parts in (alone | known).items() if parts}
    return dict(sorted(both.items()))


def _imports(file: Path, body: list[ast.stmt]) -> dict[str, Path]:
    """Where a file has its names from: the file or the folder of each relative import."""
    sources: dict[str, Path] = {}
    for line in body:
        if isinstance(line, ast.ImportFrom) and line.level:
            folder = file.parents[line.level - 1].joinpath(*(line.module or "").split("."))
            source = folder.with_suffix(".py")
            sources |= {alias.name: source if source.exists() else folder for alias in line.names}
    return sources


def _distance(file: Path, other: Path) -> tuple[bool, int]:
    """Of two classes with one name, a base is the one in the same file, or in the nearest folder."""
    shared = len([1 for own, its in zip(file.parts, other.parts, strict=False) if own == its])
    return file != other, -shared


def _signature(arguments: ast.arguments) -> dict[str, ast.expr | None]:
    """Defaults by name, without `self`."""
    placed = [*arguments.posonlyargs, *arguments.args]
    needed: list[ast.expr | None] = [None] * (len(placed) - len(arguments.defaults))
    both = [
        *zip(placed, [*needed, *arguments.defaults], strict=True),
        *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True),
    ]
    return {argument.arg: default for argument, default in both[1:]}


def _without_transient(value: ast.expr | None) -> ast.expr | None:
    """The default of a field, also where `transient` holds it."""
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "transient":
        return value.args[0] if value.args else ast.Constant(None)
    return value
