"""What the graph of a Bayesian network tells alone, before any table: independence, blankets, the factorisation."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from sklearn.utils.validation import check_is_fitted

from ...core.errors import DataError
from .bayes_ball import d_separated
from .dag import Dag

__all__ = ["GraphQuestions"]


class GraphQuestions:
    """Questions about `edges`; they need no fit, unless edges are learned."""

    edges: Any

    def _graph(self) -> Dag:
        if self.edges is None:
            check_is_fitted(self, "edges_")
            return Dag.from_edges(self.__dict__["edges_"])
        return Dag.from_edges(self.edges)

    def d_separated(
        self, a: str | Collection[str], b: str | Collection[str], given: str | Collection[str] = ()
    ) -> bool:
        """Whether the graph alone makes a and b independent given others (names or lists of names), by Bayes ball.

        >>> from likely import BayesianNetwork
        >>> collider = BayesianNetwork([("rain", "wet"), ("sprinkler", "wet")])
        >>> collider.d_separated("rain", "sprinkler"), collider.d_separated("rain", "sprinkler", given="wet")
        (True, False)
        """
        dag = self._graph()
        first, second, known = (_positions(dag, names) for names in (a, b, given))
        for one, other, words in (
            (first, second, "a and b"),
            (first, known, "a and given"),
            (second, known, "b and given"),
        ):
            if one & other:
                raise DataError(f"{words} share {dag.names[min(one & other)]!r}; each variable belongs to one of them.")
        return d_separated(dag, first, second, known)

    def markov_blanket(self, name: str) -> list[str]:
        """Parents, children and the children's other parents: given these, all others tell nothing more."""
        dag = self._graph()
        return [dag.names[variable] for variable in dag.markov_blanket(dag.position(name))]

    def factorisation(self) -> str:
        """The joint distribution as the product that the graph stands for."""
        return self._graph().factorisation()


def _positions(dag: Dag, names: str | Collection[str]) -> set[int]:
    return {dag.position(name) for name in ([names] if isinstance(names, str) else names)}
