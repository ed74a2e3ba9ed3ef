"""What a Bayesian network tells of one piece of evidence e: marginals, joint tables, the best explanation, log p(e).

    p(x | e) = p(x, e) / p(e),   p(e) = Σₓ p(x, e)

Soft evidence weighs the states of a variable instead of choosing one: p(x, e) = p(x) ∏ᵢ weightᵢ(xᵢ).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ...core.errors import DataError
from .exact import ExactInference
from .labels import Evidence, Labels, Soft

__all__ = ["REMEDY", "EvidenceQuestions", "Explanation", "listed"]

LARGEST = 2**22
"""Entries of a joint table; each takes a pass over the clique tree."""
REMEDY = " Check it, or fit with smoothing > 0."
"""What an error of probability zero ends with."""


class Explanation(NamedTuple):
    """The most probable states of all variables, their log p(states, evidence), and p(states | evidence)."""

    assignment: dict[str, Any]
    log_prob: float
    probability: float


class EvidenceQuestions:
    """Questions about one piece of evidence; a model gives the names of its states and its inference."""

    @cached_property
    def _labels(self) -> Labels:
        raise NotImplementedError(f"{type(self).__name__} must name its states")

    @cached_property
    def _inference(self) -> ExactInference:
        raise NotImplementedError(f"{type(self).__name__} must give its inference")

    def marginals(self, evidence: Evidence | None = None, soft: Soft | None = None) -> dict[str, dict[Any, float]]:
        """p(variable | evidence) of every variable: {name: {state: probability}}."""
        labels = self._labels
        probabilities, (log_z,) = self._inference.posteriors(labels.evidence(evidence), labels.soft(soft)[0])
        self._check_possible(log_z, evidence, soft)
        flat, start = probabilities[0].tolist(), labels.start
        named = zip(labels.dag.names, labels.states, start[:-1], start[1:], strict=True)
        return {name: dict(zip(states, flat[begin:end], strict=True)) for name, states, begin, end in named}

    def joint(
        self, names: str | Sequence[str], evidence: Evidence | None = None, soft: Soft | None = None
    ) -> dict[tuple[Any, ...], float]:
        """p(names | evidence) for every combination of their states: {(state, …): probability}.

        >>> from likely import BayesianNetwork
        >>> tables = {"rain": [0.8, 0.2], "wet": [[0.9, 0.1], [0.3, 0.7]]}
        >>> model = BayesianNetwork.from_tables([("rain", "wet")], tables)
        >>> {states: round(p, 3) for states, p in model.joint(["rain", "wet"]).items()}
        {(0, 0): 0.72, (0, 1): 0.08, (1, 0): 0.06, (1, 1): 0.14}
        """
        labels = self._labels
        chosen = [labels.dag.position(name) for name in ([names] if isinstance(names, str) else names)]
        if len(set(chosen)) < len(chosen) or not chosen:
            raise DataError(f"names must be different variables, at least one; found {names!r}.")
        sizes = [labels.sizes[variable] for variable in chosen]
        if math.prod(sizes) > LARGEST:
            raise DataError(
                f"The joint table of {len(chosen)} variables has {math.prod(sizes):.3g} entries; ask for fewer."
            )
        grid = np.indices(sizes).reshape(len(chosen), -1).T
        codes = np.repeat(labels.evidence(evidence), len(grid), 0)
        known = codes[:, chosen]
        codes[:, chosen] = grid
        log_p = self._inference.log_prob(codes, labels.soft(soft)[0])
        log_p[((known >= 0) & (grid != known)).any(1)] = -np.inf
        self._check_possible(log_p.max(), evidence, soft)
        probability = np.exp(log_p - log_p.max())
        keys = [tuple(labels.states[v][s] for v, s in zip(chosen, row, strict=True)) for row in grid.tolist()]
        return dict(zip(keys, (probability / probability.sum()).tolist(), strict=True))

    def most_probable(self, evidence: Evidence | None = None, soft: Soft | None = None) -> Explanation:
        """The most probable states of all variables together, given the evidence (by max-product absorption).

        >>> from likely import BayesianNetwork
        >>> tables = {"rain": [0.8, 0.2], "wet": [[0.9, 0.1], [0.3, 0.7]]}
        >>> BayesianNetwork.from_tables([("rain", "wet")], tables).most_probable({"wet": 1}).assignment
        {'rain': 1, 'wet': 1}
        """
        codes, (weights, scale) = self._labels.evidence(evidence), self._labels.soft(soft)
        best, states = self._inference.most_probable(codes, weights)
        self._check_possible(best, evidence, soft)
        total = self._inference.log_prob(codes, weights)[0]
        return Explanation(self._labels.decode(states.tolist()), best + scale, float(np.exp(best - total)))

    def evidence_log_prob(self, evidence: Evidence | None = None, soft: Soft | None = None) -> float:
        """log p(evidence): −∞ if it is impossible. Soft evidence counts as log Σ p(x) · weight(x)."""
        weights, scale = self._labels.soft(soft)
        return float(self._inference.log_prob(self._labels.evidence(evidence), weights)[0] + scale)

    def _check_possible(self, log_z: float, evidence: Evidence | None, soft: Soft | None) -> None:
        if log_z == -np.inf:
            indicated = [f"soft {name}" for name in soft or {}]
            raise DataError(f"The evidence has probability zero: {listed(evidence or {}, indicated)}.{REMEDY}")


def listed(evidence: Evidence, more: Sequence[str] = ()) -> str:
    """The evidence as an error shows it: the first of its states."""
    shown = [f"{name}={state}" for name, state in evidence.items()] + list(more)
    return ", ".join(shown[:8]) + (", …" if len(shown) > 8 else "")
