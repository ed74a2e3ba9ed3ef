"""Names and states in, codes out: what people say about variables, as the arrays that inference reads."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ...core.errors import DataError, SpecError
from .columns import encode, read_columns
from .dag import Dag, closest

__all__ = ["Evidence", "Labels", "Soft", "check_states"]

Evidence = Mapping[str, Any]
"""What is known: {variable: state}."""
Soft = Mapping[str, Mapping[Any, float]]
"""What is only indicated: {variable: {state: p(what was seen | state), up to a factor}}; states left out weigh 0."""


class Labels:
    """The states of the variables of a graph, numbered.

    >>> labels = Labels(Dag.from_edges([("rain", "wet")]), {"rain": ["no", "yes"], "wet": ["no", "yes"]})
    >>> labels.evidence({"wet": "yes"})
    array([[-1, 1]])
    >>> labels.decode([0, 1])
    {'rain': 'no', 'wet': 'yes'}
    """

    def __init__(self, dag: Dag, states: Mapping[str, Sequence[Any]]) -> None:
        self.dag = dag
        self.states = [list(states[name]) for name in dag.names]
        self.sizes = [len(own) for own in self.states]
        self.start = [0, *np.cumsum(self.sizes).tolist()]
        self.numbers = [{state: number for number, state in enumerate(own)} for own in self.states]

    def code(self, variable: int, state: Any) -> int:
        """The number of a state."""
        try:
            return self.numbers[variable][state]
        except (KeyError, TypeError):
            hint = closest(state, self.states[variable])
            raise DataError(f"{state!r} is not a state of {self.dag.names[variable]!r}.{hint}") from None

    def decode(self, codes: Iterable[int]) -> dict[str, Any]:
        """{variable: state} of the codes that are known."""
        named = zip(self.dag.names, self.states, codes, strict=True)
        return {name: states[code] for name, states, code in named if code >= 0}

    def evidence(self, evidence: Evidence | None) -> np.ndarray:
        """Codes (1, variables), −1 where nothing is known."""
        codes = np.full((1, len(self.sizes)), -1)
        for name, state in _mapping(evidence, "evidence").items():
            variable = self.dag.position(name)
            codes[0, variable] = self.code(variable, state)
        return codes

    def soft(self, soft: Soft | None) -> tuple[np.ndarray | None, float]:
        """The weights of all states, scaled so that each variable's greatest is 1, and the logarithm of the scale."""
        if not _mapping(soft, "soft"):
            return None, 0.0
        weights, scale = np.ones(self.start[-1]), 0.0
        for name, by_state in (soft or {}).items():
            variable = self.dag.position(name)
            mine = weights[self.start[variable] : self.start[variable + 1]]
            mine[:] = 0.0
            for state, weight in _mapping(by_state, f"soft[{name!r}]").items():
                if not isinstance(weight, int | float | np.number) or not 0 <= weight < math.inf:
                    raise DataError(f"soft[{name!r}][{state!r}] is {weight!r}; weights are finite and not negative.")
                mine[self.code(variable, state)] = weight
            top = float(mine.max())
            if top > 0:
                mine /= top
                scale += math.log(top)
        return weights, scale

    def rows(self, X: Any) -> np.ndarray:
        """Codes (rows, variables) of a table; a variable that is not a column is unknown in every row."""
        return self.encode(read_columns(X, self.dag.names))

    def encode(self, columns: Mapping[str, Any]) -> np.ndarray:
        """Codes (rows, variables) of columns by name."""
        codes = np.full((len(next(iter(columns.values()))), len(self.sizes)), -1)
        for place, name in enumerate(self.dag.names):
            if name in columns:
                codes[:, place] = encode(columns[name], self.states[place])
        return codes

    def split(self, values: np.ndarray) -> dict[str, np.ndarray]:
        """Columns over all states as {variable: the columns of its states}."""
        return {name: values[:, self.start[v] : self.start[v + 1]] for v, name in enumerate(self.dag.names)}


def check_states(states: Any, dag: Dag) -> dict[str, list[Any]]:
    """The states that were given, by variable: text, numbers or booleans, all different.

    >>> check_states({"rain": ("no", "yes")}, Dag.from_edges([("rain", "wet")]))
    {'rain': ['no', 'yes']}
    """
    if states is not None and not isinstance(states, Mapping):
        raise SpecError(f"states must be {{variable: [state, …]}}; found a {type(states).__name__}.")
    checked: dict[str, list[Any]] = {}
    for name, given in (states or {}).items():
        dag.position(name)
        listed = [] if isinstance(given, str) or not isinstance(given, Iterable) else list(given)
        checked[name] = [state.item() if isinstance(state, np.generic) else state for state in listed]
        kinds = {_kind(state) for state in checked[name]}
        if len(kinds) != 1 or None in kinds or len(set(checked[name])) < len(checked[name]):
            raise SpecError(
                f"states[{name!r}] is {given!r}; it must list different states of one kind: text, numbers or booleans."
            )
    return checked


def _kind(state: Any) -> str | None:
    if isinstance(state, str | bool):
        return type(state).__name__
    return "number" if isinstance(state, int | float) and math.isfinite(state) else None


def _mapping(value: Any, argument: str) -> Mapping[Any, Any]:
    if value is not None and not isinstance(value, Mapping):
        raise DataError(f"{argument} must be a dict; found a {type(value).__name__}.")
    return value or {}
