"""Conditional tables p(x | parents): all of them in one vector, each with a row for every state of the parents.

    log p(x₁, …, xₙ) = Σᵢ log p(xᵢ | parents of xᵢ)

Rows go through the states of the parents with the last parent fastest, as numpy does.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence

import numpy as np

from ...core.errors import DataError, LikelyWarning
from .dag import Dag

__all__ = ["SLACK", "Tables"]

SLACK = 0.005
"""Printed probabilities are rounded: a row whose sum is this close to 1 is scaled, any other is refused."""


class Tables:
    """The shapes of the tables of a graph, and what can be done with complete rows of codes alone.

    >>> dag = Dag.from_edges([("rain", "wet")])
    >>> tables = Tables(dag, [2, 2])
    >>> vector = tables.join([[0.8, 0.2], [[0.9, 0.1], [0.3, 0.7]]])
    >>> tables.log_prob(vector, np.array([[1, 1]])).round(4)  # log 0.2 · 0.7
    array([-1.9661])
    """

    def __init__(self, dag: Dag, sizes: Sequence[int]) -> None:
        self.dag = dag
        self.sizes = tuple(int(size) for size in sizes)
        self.shapes = [tuple(self.sizes[member] for member in dag.family(v)) for v in range(len(dag.names))]
        self.start = np.concatenate([[0], np.cumsum([math.prod(shape) for shape in self.shapes])]).astype(np.int64)

    def split(self, vector: np.ndarray) -> list[np.ndarray]:
        """Views of the tables: axes are the parents, in the order of `dag.parents`, and last the variable."""
        return [
            vector[begin:end].reshape(shape)
            for begin, end, shape in zip(self.start[:-1], self.start[1:], self.shapes, strict=True)
        ]

    def join(self, tables: Sequence[object]) -> np.ndarray:
        """One vector of tables whose rows are probabilities; a table that is none is refused, with its row."""
        vector = np.empty(self.start[-1])
        for variable, (view, table) in enumerate(zip(self.split(vector), tables, strict=True)):
            name = self.dag.names[variable]
            try:
                given = np.asarray(table, dtype=np.float64)
            except (TypeError, ValueError) as error:
                raise DataError(f"The table of {name!r} is not an array of numbers ({error}).") from error
            if given.shape != view.shape:
                axes = ", ".join(self.dag.names[member] for member in self.dag.family(variable))
                raise DataError(
                    f"The table of {name!r} has shape {given.shape}; over ({axes}) it must be {view.shape}."
                )
            view[...] = given
            self._check_rows(variable, view)
        return vector

    def _check_rows(self, variable: int, table: np.ndarray) -> None:
        total = table.sum(-1)
        sound = np.isfinite(table).all(-1) & (table >= 0).all(-1) & (np.abs(total - 1) <= SLACK)
        if not sound.all():
            row = tuple(int(index) for index in np.argwhere(~sound)[0])
            numbers = table[row]
            problem = f"sums to {total[row]:g}"
            if not (np.isfinite(numbers).all() and (numbers >= 0).all()):
                problem = "has numbers that are not probabilities"
            values = ", ".join(f"{number:g}" for number in numbers[:6]) + (", …" if len(numbers) > 6 else "")
            raise DataError(f"The table of {self.row_name(variable, row)} {problem} ({values}); it must sum to 1.")
        rounded = np.abs(total - 1) > 1e-12
        table[rounded] /= total[rounded][..., None]

    def row_name(self, variable: int, row: Sequence[int], states: Sequence[Sequence[object]] | None = None) -> str:
        """A row of a table in words: p(wet | rain=yes)."""
        parents = self.dag.parents[variable]
        shown = [
            f"{self.dag.names[parent]}={states[parent][state] if states else state}"
            for parent, state in zip(parents, row, strict=True)
        ]
        name = self.dag.names[variable]
        return f"p({name} | {', '.join(shown)})" if shown else f"p({name})"

    def warn_of_unseen(self, counts: np.ndarray, states: Sequence[Sequence[object]]) -> None:
        """Say that some rows are uniform only because nothing was seen."""
        unseen = [(v, row) for v, table in enumerate(self.split(counts)) for row in np.argwhere(table.sum(-1) <= 0)]
        if unseen:
            named = self.row_name(unseen[0][0], unseen[0][1].tolist(), states)
            warnings.warn(
                f"{len(unseen)} rows of the tables were never seen and are uniform, such as {named}; smoothing > 0 "
                "gives every row its own reason.",
                LikelyWarning,
                stacklevel=3,
            )

    def entries(self, variable: int, codes: np.ndarray) -> np.ndarray:
        """For each complete row of codes, the entry of a variable's table in the vector."""
        family = self.dag.family(variable)
        return self.start[variable] + np.ravel_multi_index(
            tuple(codes[:, member] for member in family), self.shapes[variable]
        )

    def log_prob(self, vector: np.ndarray, codes: np.ndarray) -> np.ndarray:
        """log p of complete rows: −∞ where a row is impossible."""
        with np.errstate(divide="ignore"):
            logs = np.log(vector)
        total = np.zeros(len(codes))
        for variable in range(len(self.sizes)):
            total += logs[self.entries(variable, codes)]
        return total

    def counts(self, codes: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """How often each entry was seen; a row counts for each family that is complete in it (−1 is missing)."""
        vector = np.zeros(self.start[-1])
        for variable, table in enumerate(self.split(vector)):
            complete = (codes[:, self.dag.family(variable)] >= 0).all(1)
            entries = self.entries(variable, codes[complete]) - self.start[variable]
            table[...] = np.bincount(entries, weights[complete], minlength=table.size).reshape(table.shape)
        return vector

    def normalise(self, counts: np.ndarray) -> np.ndarray:
        """Rows of counts as probabilities; a row without any is uniform."""
        vector = np.array(counts, dtype=np.float64)
        for table in self.split(vector):
            total = table.sum(-1, keepdims=True)
            np.divide(table, total, out=table, where=total > 0)
            np.copyto(table, 1 / table.shape[-1], where=total <= 0)
        return vector

    def pseudo_counts(self, count: float, rows: float | None = None) -> np.ndarray:
        """A vector of `count`, or of this many rows spread evenly over each table (BDeu)."""
        vector = np.full(self.start[-1], float(count))
        if rows:
            for table in self.split(vector):
                table[...] = rows / table.size
        return vector

    def ancestral(self, vector: np.ndarray, rows: int, random: np.random.Generator) -> np.ndarray:
        """Rows of codes drawn variable by variable, each from its table given the parents drawn before it."""
        codes = np.zeros((rows, len(self.sizes)), np.int64)
        views = self.split(vector)
        for variable in self.dag.order:
            limits = np.cumsum(views[variable], -1)[tuple(codes[:, parent] for parent in self.dag.parents[variable])]
            level = random.random((rows, 1)) * limits[..., -1:]
            codes[:, variable] = (limits <= level).sum(-1)
        return codes
