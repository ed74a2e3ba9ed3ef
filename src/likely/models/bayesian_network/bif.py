"""BIF, the interchange format for Bayesian networks: variables with their states, then a table for each.

    variable wet { type discrete [ 2 ] { yes, no }; }
    probability ( wet | rain ) { (yes) 0.9, 0.1;  (no) 0.2, 0.8; }

Commas and bars only separate. `table` lists all numbers of a block with the last parent fastest and the variable itself
slowest; `default` is the row of all states of the parents that have none of their own. Properties are skipped.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, NoReturn

import numpy as np

from ...core.errors import DataError, SpecError
from ...core.replacing import replacing
from .dag import Dag, closest
from .tables import SLACK, Tables

__all__ = ["read_bif", "write_bif"]

TOKEN = re.compile(
    r"""(?P<skip>[\s,|]+|//[^\n]*|/\*.*?\*/) | "(?P<quoted>[^"\n]*)" | (?P<word>[^\s,|{}()\[\];"]+) | (?P<mark>.)""",
    re.DOTALL | re.VERBOSE,
)
WORD = re.compile(r"""[^\s,|{}()\[\];"]+""")


def read_bif(
    path: str | os.PathLike[str],
) -> tuple[list[str | tuple[str, str]], dict[str, list[str]], list[np.ndarray]]:
    """The edges (all names first, in the order of the file), the states and the table of each variable.

    What cannot be read is refused with the file and the line.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "coin.bif"
    ...     text = "variable coin { type discrete [2] { head, tail }; } probability ( coin ) { table 0.5, 0.5; }"
    ...     _ = file.write_text(text)
    ...     read_bif(file)
    (['coin'], {'coin': ['head', 'tail']}, [array([0.5, 0.5])])
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"Cannot read {path}: {error}.") from error
    return _Reader(str(path), text).network()


def write_bif(
    path: str | os.PathLike[str], dag: Dag, states: Sequence[Sequence[object]], tables: Sequence[np.ndarray]
) -> None:
    """Write a network so that `read_bif` gives the same numbers to the last bit; states become text.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "coin.bif"
    ...     write_bif(file, Dag.from_edges(["coin"]), [["head", "tail"]], [np.array([0.5, 0.5])])
    ...     print(file.read_text().splitlines()[-2])
      table 0.5, 0.5;
    """
    for text in [*dag.names, *(str(state) for listing in states for state in listing)]:
        if not WORD.fullmatch(text) or "//" in text or "/*" in text:
            raise DataError(
                f'BIF cannot hold the name {text!r}; use names without spaces and without , | ; {{}} () [] ".'
            )
    lines = ["network unknown {", "}"]
    for name, listing in zip(dag.names, states, strict=True):
        listed = ", ".join(str(state) for state in listing)
        lines += [f"variable {name} {{", f"  type discrete [ {len(listing)} ] {{ {listed} }};", "}"]
    for variable, table in enumerate(tables):
        parents = dag.parents[variable]
        given = f" | {', '.join(dag.names[parent] for parent in parents)}" if parents else ""
        lines.append(f"probability ( {dag.names[variable]}{given} ) {{")
        for row in np.ndindex(table.shape[:-1]):
            shown = ", ".join(str(states[parent][state]) for parent, state in zip(parents, row, strict=True))
            numbers = ", ".join(repr(float(number)) for number in table[row])
            lines.append(f"  ({shown}) {numbers};" if parents else f"  table {numbers};")
        lines.append("}")
    try:
        with replacing(path) as part:
            part.write_text("\n".join(lines) + "\n", encoding="utf-8")
    except OSError as error:
        raise DataError(f"Cannot write {path}: {error.strerror or error}.") from error


class _Token(NamedTuple):
    text: str
    line: int
    word: bool  # a name or a number, not a mark


@dataclass
class _Block:
    """One probability block: whose table it is, where it stands, and the rows it gives."""

    child: str
    parents: list[str]
    line: int
    rows: dict[tuple[int, ...], list[float]] = field(default_factory=dict)
    default: list[float] | None = None
    table: list[float] | None = None


class _Reader:
    """A pass over the tokens with one function for each kind of block."""

    def __init__(self, path: str, text: str) -> None:
        self.path = path
        self.tokens = list(_tokens(text))
        self.place = 0
        self.end = text.count("\n") + 1
        self.states: dict[str, list[str]] = {}
        self.blocks: dict[str, _Block] = {}

    def network(self) -> tuple[list[str | tuple[str, str]], dict[str, list[str]], list[np.ndarray]]:
        while self.place < len(self.tokens):
            keyword = self.next("a block")
            if keyword.text == "network":
                self.skip_block()
            elif keyword.text == "variable":
                self.variable()
            elif keyword.text == "probability":
                self.probability()
            else:
                self.fail(f"expected 'network', 'variable' or 'probability', found {keyword.text!r}", keyword.line)
        for name in self.states:
            if name not in self.blocks:
                self.fail(f"variable {name!r} has no probability block", self.end)
        if not self.states:
            self.fail("there is no variable", self.end)
        edges: list[str | tuple[str, str]] = list(self.states)
        edges += [(parent, name) for name in self.states for parent in self.blocks[name].parents]
        try:
            dag = Dag.from_edges(edges)
        except SpecError as error:
            raise DataError(f"{self.path}: {error}") from error
        shapes = Tables(dag, [len(listing) for listing in self.states.values()])
        tables = [self.fill(shapes, variable) for variable in range(len(dag.names))]
        return edges, self.states, tables

    def variable(self) -> None:
        name = self.next("the name of a variable")
        if name.text in self.states:
            self.fail(f"variable {name.text!r} is declared twice", name.line)
        self.expect("{")
        states: list[str] = []
        while (token := self.next("'}'")).text != "}":
            if token.text != "type":
                self.skip_statement(token)
                continue
            self.expect("discrete")
            self.expect("[")
            count = self.next("a number of states")
            self.expect("]")
            self.expect("{")
            while (state := self.next("'}'")).text != "}":
                if not state.word or state.text in states:
                    problem = "is there twice" if state.word else "is not the name of a state"
                    self.fail(f"{state.text!r} {problem} in the states of {name.text!r}", state.line)
                states.append(state.text)
            self.expect(";")
            if count.text != str(len(states)):
                self.fail(f"{name.text!r} should have [ {count.text} ] states but lists {len(states)}", count.line)
        if not states:
            self.fail(f"variable {name.text!r} has no states", name.line)
        self.states[name.text] = states

    def probability(self) -> None:
        opening = self.expect("(")
        names: list[str] = []
        while (token := self.next("')'")).text != ")":
            if token.text not in self.states:
                self.fail(
                    f"no variable {token.text!r} was declared before.{closest(token.text, self.states)}", token.line
                )
            names.append(token.text)
        if not names or len(set(names)) < len(names):
            self.fail(f"a probability needs different variables, found ({', '.join(names)})", opening.line)
        if names[0] in self.blocks:
            self.fail(f"{names[0]!r} has a second probability block", opening.line)
        block = _Block(names[0], names[1:], opening.line)
        self.expect("{")
        while (token := self.next("'}'")).text != "}":
            if token.text == "table":
                size = math.prod(len(self.states[name]) for name in names)
                block.table = self.numbers(size, f"the table of {names[0]!r}", token.line)
            elif token.text == "default":
                block.default = self.numbers(len(self.states[names[0]]), f"the default of {names[0]!r}", token.line)
            elif token.text == "(":
                self.row(block, token.line)
            else:
                self.skip_statement(token)
        self.blocks[names[0]] = block

    def row(self, block: _Block, line: int) -> None:
        row: list[int] = []
        words: list[str] = []
        while (token := self.next("')'")).text != ")":
            if len(row) == len(block.parents):
                self.fail(f"a row of {block.child!r} names more than its {len(row)} parents", token.line)
            parent = block.parents[len(row)]
            if token.text not in self.states[parent]:
                hint = closest(token.text, self.states[parent])
                self.fail(f"{token.text!r} is not a state of {parent!r}.{hint}", token.line)
            row.append(self.states[parent].index(token.text))
            words.append(token.text)
        if len(row) < len(block.parents):
            self.fail(f"a row of {block.child!r} names {len(row)} of its {len(block.parents)} parents", line)
        if tuple(row) in block.rows:
            self.fail(f"the row ({', '.join(words)}) of {block.child!r} is there twice", line)
        what = f"the row ({', '.join(words)}) of {block.child!r}"
        numbers = self.numbers(len(self.states[block.child]), what, line)
        self.check_sum(numbers, what, line)
        block.rows[tuple(row)] = numbers

    def fill(self, shapes: Tables, variable: int) -> np.ndarray:
        """The table of a variable from its block, parents first and the variable last."""
        block, shape = self.blocks[shapes.dag.names[variable]], shapes.shapes[variable]
        table = np.full(shape, np.nan)
        if block.default is not None:
            self.check_sum(block.default, f"the default of {block.child!r}", block.line)
            table[...] = block.default
        if block.table is not None:
            table[...] = np.moveaxis(np.reshape(block.table, (shape[-1], *shape[:-1])), 0, -1)
            for row in np.ndindex(shape[:-1]):
                self.check_sum(list(table[row]), shapes.row_name(variable, row, list(self.states.values())), block.line)
        for row, numbers in block.rows.items():
            table[row] = numbers
        empty = np.argwhere(np.isnan(table).any(-1))
        if len(empty):
            named = shapes.row_name(variable, empty[0].tolist(), list(self.states.values()))
            self.fail(f"there are no numbers for {named}", block.line)
        return table

    def check_sum(self, numbers: Sequence[float], what: str, line: int) -> None:
        if abs(sum(numbers) - 1) > SLACK:
            self.fail(f"{what} sums to {sum(numbers):g}, not to 1", line)

    def numbers(self, count: int, what: str, line: int) -> list[float]:
        probabilities: list[float] = []
        while (token := self.next("';'")).text != ";":
            try:
                number = float(token.text)
            except ValueError:
                self.fail(f"expected a probability, found {token.text!r}", token.line)
            if not 0 <= number <= 1:
                self.fail(f"{token.text} is not a probability", token.line)
            probabilities.append(number)
        if len(probabilities) != count:
            self.fail(f"{what} has {len(probabilities)} numbers, it needs {count}", line)
        return probabilities

    def next(self, wanted: str) -> _Token:
        if self.place == len(self.tokens):
            self.fail(f"expected {wanted}, but the file ends", self.end)
        self.place += 1
        return self.tokens[self.place - 1]

    def expect(self, text: str) -> _Token:
        token = self.next(repr(text))
        if token.text != text:
            self.fail(f"expected {text!r}, found {token.text!r}", token.line)
        return token

    def skip_statement(self, first: _Token) -> None:
        """A property, which says nothing about the distribution."""
        if first.text != "property":
            self.fail(f"{first.text!r} is not known here", first.line)
        while self.next("';'").text != ";":
            pass

    def skip_block(self) -> None:
        while self.next("'{'").text != "{":
            pass
        while self.next("'}'").text != "}":
            pass

    def fail(self, problem: str, line: int) -> NoReturn:
        raise DataError(f"{self.path}, line {line}: {problem.rstrip('.')}.")


def _tokens(text: str) -> Iterator[_Token]:
    line = 1
    for match in TOKEN.finditer(text):
        kind = match.lastgroup or "mark"
        if kind != "skip":
            yield _Token(match[kind], line, kind != "mark")
        line += match[0].count("\n")
