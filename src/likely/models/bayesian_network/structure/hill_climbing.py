"""Hill climbing: from graph to graph by the edge whose change raises the score most, until none does.

    score(graph) = Σᵢ score(xᵢ | parents of xᵢ)

    BIC    log-likelihood − ½ log n · free numbers                BDeu    log p(rows | graph)

An edge into x changes one term, so after a move only the moves into one or two variables are scored anew. A top need
not be the highest: it begins again from graphs that score the same or less.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np

from ....core.spec import is_integer, require
from .base import Edge, Limits, Structure
from .sample import Sample

__all__ = ["Climb", "FamilyScore", "HillClimbing"]

WALK = 2
"""Edges that are turned before it goes up again, for each variable."""
LEAST = 1e-9
"""A gain below this, relative to the score, is rounding."""


class HillClimbing(Structure):
    """Edges are added, dropped and turned, whichever raises the score most, until no change does.

    Parameters
    ----------
    score : `"bic"` takes half the logarithm of the number of rows for each free number; `"bdeu"` is the probability of
        the rows with `equivalent_sample_size` prior rows spread evenly over each table. Graphs that tell the same
        independences have the same score.
    max_parents : the most parents of a variable; None lets the score decide.
    tabu : how many moves it goes on from a top, to graphs that it has not seen, before it ends at the best one.
    restarts : it begins anew near the best graph, until so many times in a row it got no higher: from another graph
        that tells the same independences, found by turning edges at random, without some of its edges and with others.
    required, forbidden : edges (parent, child) that must be there, or may not.

    >>> from likely import BayesianNetwork
    >>> rows = {"a": [0, 1, 0, 1] * 25, "b": [0, 0, 1, 1] * 25, "c": [0, 1, 1, 0] * 25, "d": [0, 1, 1, 0] * 25}
    >>> BayesianNetwork(structure=HillClimbing(score="bdeu", max_parents=1)).fit(rows).edges_[4:]
    [['c', 'd']]
    """

    score: Literal["bic", "bdeu"] = "bic"
    equivalent_sample_size: float = 1.0
    max_parents: int | None = None
    tabu: int = 0
    restarts: int = 30
    required: tuple[tuple[str, str], ...] = ()
    forbidden: tuple[tuple[str, str], ...] = ()

    def validate(self) -> None:
        super().validate()
        require(self.score in ("bic", "bdeu"), self, "score", '"bic" or "bdeu"')
        require(0 < self.equivalent_sample_size < math.inf, self, "equivalent_sample_size", "a positive number")
        parents = self.max_parents
        require(parents is None or is_integer(parents), self, "max_parents", "a positive integer, or None")
        for name in ("tabu", "restarts"):
            require(is_integer(getattr(self, name), 0), self, name, "an integer from 0")

    def learn(self, sample: Sample, random: np.random.Generator) -> list[Edge]:
        return self.climb(sample, random).edges

    def climb(self, sample: Sample, random: np.random.Generator) -> Climb:
        """The whole way up, with the best score after each move."""
        rows = self.equivalent_sample_size if self.score == "bdeu" else None
        climb = Climb(FamilyScore(sample, rows), self.limits(sample.names), self.max_parents, self.tabu)
        idle = 0
        while idle < self.restarts:
            idle = 0 if climb.again(random) else idle + 1
        return climb


class FamilyScore:
    """The score of a variable given its parents, each counted once: BIC, or BDeu with so many prior rows."""

    def __init__(self, sample: Sample, rows: float | None = None) -> None:
        self.sample, self.rows = sample, rows
        self.price = 0.5 * math.log(max(sample.total, 1.0))
        self.known: dict[tuple[int, frozenset[int]], float] = {}

    def __call__(self, child: int, parents: frozenset[int]) -> float:
        score = self.known.get((child, parents))
        if score is None:
            score = self.known[child, parents] = self._score(child, sorted(parents))
        return score

    def _score(self, child: int, parents: Sequence[int]) -> float:
        if self.rows is not None:
            return self.sample.bdeu(child, parents, self.rows)
        free = self.sample.states_of(parents) * (int(self.sample.sizes[child]) - 1)
        return self.sample.log_likelihood(child, parents) - self.price * free

    def total(self, parents: Sequence[frozenset[int]]) -> float:
        """The score of a graph: the sum over its variables."""
        return sum(self(child, own) for child, own in enumerate(parents))


class Climb:
    """The way up: `edges` of the best graph, and `history`, the best score after each move."""

    def __init__(self, score: FamilyScore, limits: Limits, max_parents: int | None, tabu: int) -> None:
        count = len(limits.allowed)
        self.score, self.limits, self.most = score, limits, count if max_parents is None else max_parents
        self.tabu = tabu
        self.gain = np.full((count, count), -np.inf)
        self._stand([frozenset(np.flatnonzero(limits.required[:, child]).tolist()) for child in range(count)])
        self.best, self.kept = score.total(self.parents), list(self.parents)
        self.history = [self.best]
        self._ascend()

    @property
    def edges(self) -> list[Edge]:
        """The edges of the best graph so far."""
        return [(parent, child) for child, own in enumerate(self.kept) for parent in sorted(own)]

    def _stand(self, parents: Sequence[frozenset[int]]) -> None:
        """Go to a graph."""
        known = getattr(self, "parents", None)
        self.parents = list(parents)
        for child, own in enumerate(parents):
            if known is None or known[child] != own:
                self._rescore(child)

    def _ascend(self) -> bool:
        """Go up from where it stands, and `tabu` moves on; whether there was something higher than ever before."""
        value = top = self.score.total(self.parents)
        seen, waited, higher = {tuple(self.parents)}, 0, False
        while waited <= self.tabu:
            move = self._best_move(seen)
            if move is None:
                break
            value += move[0]
            self._make(move)
            seen.add(tuple(self.parents))
            waited += 1
            if value > top + LEAST * abs(top):
                top, waited = value, 0
            if value > self.best + LEAST * abs(self.best):
                self.best, self.kept, higher = value, list(self.parents), True
            self.history.append(self.best)
        return higher

    def again(self, random: np.random.Generator) -> bool:
        """Go up from near another graph of the same independences as the best one; whether that led higher.

        An edge a → b can be turned without a change of the score if all other parents of b are those of a. Then edges
        are dropped and added, few or many: higher tops may be near or far.
        """
        parents = list(self.kept)
        for _ in range(WALK * len(parents)):
            covered = [
                (a, b)
                for b, own in enumerate(parents)
                for a in own
                if own == parents[a] | {a} and self.limits.allowed[b, a] and not self.limits.required[a, b]
            ]
            if not covered:
                break
            a, b = covered[random.integers(len(covered))]
            parents[a], parents[b] = parents[a] | {b}, parents[b] - {a}
        fraction = random.random()  # of the edges that are there, and of variables that get another parent
        for child, own in enumerate(parents):
            dropped = [p for p in own if random.random() < fraction and not self.limits.required[p, child]]
            parents[child] = own.difference(dropped)
        for child in np.flatnonzero(random.random(len(parents)) < fraction).tolist():
            parents[child] = parents[child].union(self._another(parents, child, random))
        self._stand(parents)
        return self._ascend()

    def _another(self, parents: Sequence[frozenset[int]], child: int, random: np.random.Generator) -> list[int]:
        """One more parent of a variable at random, if it may have one."""
        may = self.limits.allowed[:, child] & ~_ancestors(parents)[child]
        may[[child, *parents[child]]] = False
        others = np.flatnonzero(may)
        return [int(random.choice(others))] if len(others) and len(parents[child]) < self.most else []

    def _rescore(self, child: int) -> None:
        """What it would gain to add each other variable to the parents of one, or to drop it from them."""
        own = self.parents[child]
        now = self.score(child, own)
        for other in range(len(self.parents)):
            if other in own:
                self.gain[other, child] = self.score(child, own - {other}) - now
            elif self.limits.allowed[other, child] and len(own) < self.most:
                self.gain[other, child] = self.score(child, own | {other}) - now
            else:
                self.gain[other, child] = -np.inf

    def _best_move(self, seen: set[tuple[frozenset[int], ...]]) -> tuple[float, str, int, int] | None:
        """The best move to a graph that was not seen: to add, drop or turn an edge."""
        count = len(self.parents)
        edge = np.zeros((count, count), bool)
        for child, own in enumerate(self.parents):
            edge[list(own), child] = True
        above = _ancestors(self.parents)
        gains = np.where(edge | above.T, -np.inf, self.gain)  # an edge from a descendant would close a circle
        moves = [(gains, "add"), (np.where(edge & ~self.limits.required, self.gain, -np.inf), "drop")]
        turned = np.full((count, count), -np.inf)
        for parent, child in np.argwhere(edge & ~self.limits.required & self.limits.allowed.T):
            if not any(above[parent, other] for other in self.parents[child] if other != parent):
                turned[parent, child] = self.gain[parent, child] + self.gain[child, parent]
        moves.append((turned, "turn"))
        whole = np.concatenate([table.reshape(-1) for table, _ in moves])
        while True:
            place = int(whole.argmax())
            if whole[place] == -np.inf:
                return None
            kind, (parent, child) = moves[place // count**2][1], divmod(place % count**2, count)
            if tuple(self._after(kind, parent, child)) not in seen:
                return float(whole[place]), kind, parent, child
            whole[place] = -np.inf

    def _after(self, kind: str, parent: int, child: int) -> list[frozenset[int]]:
        parents = list(self.parents)
        parents[child] = parents[child] | {parent} if kind == "add" else parents[child] - {parent}
        if kind == "turn":
            parents[parent] = parents[parent] | {child}
        return parents

    def _make(self, move: tuple[float, str, int, int]) -> None:
        _, kind, parent, child = move
        self.parents = self._after(kind, parent, child)
        self._rescore(child)
        if kind == "turn":
            self._rescore(parent)


def _ancestors(parents: Sequence[frozenset[int]]) -> np.ndarray:
    """[a, b]: whether there is a way from a to b.

    >>> _ancestors([frozenset(), frozenset({0}), frozenset({1})]).astype(int)
    array([[0, 1, 1],
           [0, 0, 1],
           [0, 0, 0]])
    """
    above = np.zeros((len(parents), len(parents)), bool)
    done: set[int] = set()

    for start in range(len(parents)):
        waiting = [start]
        while waiting:
            child = waiting[-1]
            open_ = [parent for parent in parents[child] if parent not in done]
            if open_:
                waiting += open_
                continue
            waiting.pop()
            if child not in done:
                done.add(child)
                for parent in parents[child]:
                    above[:, child] |= above[:, parent]
                    above[parent, child] = True
    return above
