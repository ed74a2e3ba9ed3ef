"""Exact inference: a clique tree prepared once, then asked about as many rows of evidence as there are."""

from __future__ import annotations

import numpy as np

from ...core.doors import check_indices, check_sizes
from . import propagate
from .clique_tree import clique_tree
from .schedule import schedule
from .tables import Tables

__all__ = ["ExactInference"]

EMPTY = np.zeros(0)


class ExactInference:
    """p(· | evidence) of a network with given tables.

    Evidence is a matrix of codes (rows, variables), −1 where nothing is known. `soft` weighs the states of all
    variables: p(what was seen | state), up to a factor.

    >>> from .dag import Dag
    >>> tables = Tables(Dag.from_edges([("rain", "wet")]), [2, 2])
    >>> inference = ExactInference(tables, tables.join([[0.8, 0.2], [[0.9, 0.1], [0.3, 0.7]]]))
    >>> probabilities, evidence = inference.posteriors(np.array([[-1, 1]]))
    >>> probabilities.round(4), evidence.round(4)  # p(rain | wet) and wet itself; log p(wet)
    (array([[0.3636, 0.6364, 0. , 1. ]]), array([-1.5141]))
    """

    def __init__(self, tables: Tables, vector: np.ndarray) -> None:
        self.tables = tables
        self.tree = clique_tree(tables.dag, tables.sizes)
        self.plan = schedule(tables.dag, tables.sizes, self.tree)
        self.neutral = np.ones(sum(tables.sizes))
        self.nothing = np.zeros(len(tables.sizes), np.bool_)
        self.use(vector)

    def use(self, vector: np.ndarray) -> None:
        """Take other tables for the same graph: multiply them into the cliques."""
        plan = self.plan
        check_sizes("Exact inference", {"tables": (vector, str(plan.table_start[-1]))})
        with np.errstate(divide="ignore"):
            log_vector = np.log(vector)
        self.vector = vector
        self.potentials = np.ones(plan.start[-1])
        self.logs = np.zeros(plan.start[-1])
        for variable, clique in enumerate(plan.family_home):
            places = plan.family[plan.family_start[variable] : plan.family_start[variable + 1]]
            cells = slice(plan.start[clique], plan.start[clique + 1])
            self.potentials[cells] *= vector[places]
            self.logs[cells] += log_vector[places]
        if ((self.potentials < propagate.TINY) & (self.logs > -np.inf)).any():
            self.potentials[:] = 0.0  # too small for plain numbers: a mass of zero sends every row to the logarithms

    def posteriors(self, codes: np.ndarray, soft: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        """The distributions of all variables side by side (rows, states), and log p(evidence) of each row."""
        marginals = np.zeros((len(codes), len(self.neutral)))
        return marginals, self._absorb(codes, soft, marginals=marginals)[0]

    def log_prob(self, codes: np.ndarray, soft: np.ndarray | None = None) -> np.ndarray:
        """log p(evidence) of each row; what is unknown is summed out."""
        if soft is None and (codes >= 0).all():
            return self.tables.log_prob(self.vector, codes)
        return self._absorb(codes, soft)[0]

    def expected_counts(self, codes: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Σ weight · p(family | row) for every entry of the tables, and log p of each row."""
        counts = np.zeros(len(self.vector))
        return counts, self._absorb(codes, None, weights, counts=counts)[0]

    def most_probable(self, codes: np.ndarray, soft: np.ndarray | None = None) -> tuple[float, np.ndarray]:
        """max log p(x, evidence) for one row of evidence (1, variables), and the codes of that x."""
        self._check(codes)
        return propagate.maximise(self.plan, self.logs, codes, *self._soft(soft))

    def sample(
        self, codes: np.ndarray, rows: int, random: np.random.Generator, soft: np.ndarray | None = None
    ) -> tuple[float, np.ndarray]:
        """log p(evidence) for one row of evidence, and exact draws from p(x | evidence), from the root down."""
        (log_z,), conditional = self._absorb(codes, soft)
        if log_z == -np.inf:
            return log_z, np.zeros((0, codes.shape[1]), np.int64)
        blocks = [  # the uniform numbers of all rows at once would be large for many cliques
            propagate.draw(self.plan, conditional, random.random((min(4096, rows - first), len(self.plan.rows))))
            for first in range(0, rows, 4096)
        ]
        return log_z, np.concatenate(blocks)

    def _absorb(
        self,
        codes: np.ndarray,
        soft: np.ndarray | None,
        weights: np.ndarray = EMPTY,
        marginals: np.ndarray = EMPTY[:, None],
        counts: np.ndarray = EMPTY,
    ) -> tuple[np.ndarray, np.ndarray]:
        self._check(codes)
        weighed = self._soft(soft)
        return propagate.absorb(self.plan, self.potentials, self.logs, codes, weights, *weighed, marginals, counts)

    def _check(self, codes: np.ndarray) -> None:
        """Codes are what the compiled absorption indexes its tables by."""
        check_sizes("Exact inference", {"codes": (codes, f"rows {len(self.tables.sizes)}")})
        for variable, size in enumerate(self.tables.sizes):
            check_indices("Exact inference", "codes", codes[:, variable], size, least=-1)

    def _soft(self, soft: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        """The weights of all states, and which variables have any that matter."""
        if soft is None:
            return self.neutral, self.nothing
        check_sizes("Exact inference", {"soft": (soft, str(len(self.neutral)))})
        return soft, np.logical_or.reduceat(soft != 1.0, self.plan.state_start[:-1])
