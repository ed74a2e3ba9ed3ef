"""All marginals of the alarm network (37 variables) under random evidence on 5 of them, against pyAgrum and pgmpy.

Each side is prepared once and then asked. All hold the same numbers: pgmpy reads the file that `to_bif` writes, and
pyAgrum, which reads BIF in single precision, is handed the tables. pgmpy is asked for one variable after another by
variable elimination in its default (greedy) order, which is faster here than min-fill; its belief propagation takes
minutes to calibrate this network.
"""

from __future__ import annotations

import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from likely import BayesianNetwork

from .datasets import FOLDER
from .timing import Result, compare, interleave, show

__all__ = ["run"]

QUERIES, FEW = 50, 4
"""Queries for pyAgrum, and for pgmpy, which takes a tenth of a second and more for each."""

Answers = list[dict[str, list[float]]]


def run(repeats: int = 5) -> list[Result]:
    import pyagrum
    from pgmpy.inference import VariableElimination
    from pgmpy.readwrite import BIFReader

    model = BayesianNetwork.from_bif(FOLDER / "alarm.bif")
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        file = str(Path(folder) / "alarm.bif")
        model.to_bif(file)
        agrum = pyagrum.loadBN(file)
        fill(agrum, model)
        eliminate = VariableElimination(BIFReader(file).get_model())
    lazy = pyagrum.LazyPropagation(agrum)
    queries = evidence(model)

    def likely_marginals(asked: list[dict[str, str]]) -> Answers:
        return [{name: list(states.values()) for name, states in model.marginals(known).items()} for known in asked]

    def agrum_marginals() -> Answers:
        answers = []
        for known in queries:
            lazy.setEvidence(known)
            lazy.makeInference()
            answers.append({name: lazy.posterior(name).tolist() for name in model.names_})
        return answers

    def pgmpy_marginals() -> Answers:
        answers = []
        for known in queries[:FEW]:
            free = [name for name in model.names_ if name not in known]
            factors = {n: eliminate.query([n], evidence=known, show_progress=False) for n in free}
            order = {n: [factor.state_names[n].index(s) for s in model.states_[n]] for n, factor in factors.items()}
            answers.append({name: factor.values[order[name]].tolist() for name, factor in factors.items()})
        return answers

    def quality(mine: Answers, other: Answers) -> tuple[str, bool]:
        apart = max(
            float(np.abs(np.subtract(ours[name], values)).max())
            for ours, theirs in zip(mine, other, strict=True)
            for name, values in theirs.items()
        )
        return f"alarm: {len(other)} queries, marginals {apart:.1e} apart", apart <= 1e-8

    many = interleave({"likely": lambda: likely_marginals(queries), "pyAgrum": agrum_marginals}, repeats)
    few = interleave({"likely": lambda: likely_marginals(queries[:FEW]), "pgmpy": pgmpy_marginals}, min(repeats, 3))
    return [
        *compare("bayesian_network", many, quality, {"pyAgrum": 3.0}),
        *compare("bayesian_network", few, quality, {"pgmpy": 1 / 20}),
    ]


def fill(agrum: Any, model: BayesianNetwork) -> None:
    """Hand pyAgrum every row of every table, by the names of the states."""
    for name, table in model.tables_.items():
        parents = [edge[0] for edge in model.edges_ if isinstance(edge, list) and edge[1] == name]
        order = [model.states_[name].index(state) for state in agrum.variable(name).labels()]
        for row in np.ndindex(table.shape[:-1]):
            known = {parent: model.states_[parent][state] for parent, state in zip(parents, row, strict=True)}
            if known:
                agrum.cpt(name)[known] = table[row][order].tolist()
            else:
                agrum.cpt(name).fillWith(table[order].tolist())


def evidence(model: BayesianNetwork) -> list[dict[str, str]]:
    """Random states of 5 random variables, without the combinations that cannot be."""
    rng = np.random.default_rng(0)
    possible: list[dict[str, str]] = []
    while len(possible) < QUERIES:
        names = [model.names_[place] for place in rng.choice(len(model.names_), 5, replace=False)]
        known = {name: model.states_[name][rng.integers(len(model.states_[name]))] for name in names}
        if model.evidence_log_prob(known) > -np.inf:
            possible.append(known)
    return possible


if __name__ == "__main__":
    show(run())
