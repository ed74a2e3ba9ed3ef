"""Bayesian network: a joint distribution of discrete variables that factorises over a directed acyclic graph.

    p(x₁, …, xₙ) = ∏ᵢ p(xᵢ | parents of xᵢ)

Tables are counted, or found by EM where values are missing. Every question is answered exactly, by absorption in a
clique tree that is built once.
"""

from __future__ import annotations

import math
import os
from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
import torch
from torch.distributions import Categorical

from ...core.declared import FIT, HISTORY, LIST, NOT_NEGATIVE, TABLE, TEXTS, Array, Arrays, Values
from ...core.draws import count_of
from ...core.errors import DataError, ModelFileError, SpecError
from ...core.learned import Learned
from ...core.spec import as_spec
from ...core.validation import as_weights
from ...inference import EM, Inference
from ...inference.latent.density import fit_latent
from ...inference.objective import Objective, refuse
from .bif import read_bif, write_bif
from .columns import FORMS, as_table, column_names, find_states, form_of_columns, read_columns
from .dag import Dag
from .em import NetworkEM, log_power
from .evidence_questions import REMEDY, EvidenceQuestions, listed
from .exact import ExactInference
from .graph_questions import GraphQuestions
from .labels import Evidence, Labels, Soft, check_states
from .learning import learn_dag
from .structure import Structure
from .tables import Tables

__all__ = ["BayesianNetwork"]

BLOCK = 65536
"""Rows that are asked about at a time, so that memory does not grow with states times rows."""


class _Counts(Objective):
    """What tables are learned from."""

    offers = frozenset({"expectations"})
    name = "BayesianNetwork"


class BayesianNetwork(GraphQuestions, EvidenceQuestions, Learned):
    """Discrete variables, each with a table of its probabilities given its parents.

    `edges` are pairs (parent, child); a name alone stands for a variable that may have no edge. `smoothing` is the
    pseudo-count of every entry; `equivalent_sample_size` spreads this many rows evenly over each table instead (BDeu).
    `states` lists the states of variables by name; others have those found in the data, sorted. With missing values
    (None, NaN, an absent key) the tables maximise the likelihood of what was seen, found by `inference`; a variable
    that is never seen needs its `states`.

    Without `edges` they are learned: each column of the data is a variable, and `structure` says how its parents are
    found: `HillClimbing()` (also `"auto"`), `ChowLiu()` or `PC()` of `likely.models.bayesian_network`; rows with gaps
    do not count for that.

    Data are pandas or polars frames, dicts of columns, lists of dicts, or arrays with the columns of `names_`.

    >>> rows = [{"rain": "no", "wet": "no"}, {"rain": "no", "wet": "no"}, {"rain": "no", "wet": "yes"},
    ...         {"rain": "yes", "wet": "yes"}]
    >>> model = BayesianNetwork([("rain", "wet")], smoothing=1).fit(rows)
    >>> model.factorisation()
    'p(rain) p(wet | rain)'
    >>> {state: round(p, 3) for state, p in model.marginals({"wet": "yes"})["rain"].items()}
    {'no': 0.545, 'yes': 0.455}
    """

    _arrays: ClassVar[Arrays] = {"probabilities_": Array("*", NOT_NEGATIVE), "history_": HISTORY}
    _values: ClassVar[Values] = {
        "names_": TEXTS,
        "edges_": LIST,
        "states_": TABLE,
        **FIT,
        "form_": FORMS,
        "hidden_": TEXTS,
    }
    log_prob_kind_: ClassVar[str] = "exact"
    takes_tables: ClassVar[bool] = True
    """Frames are asked as they are, text and all."""

    def __init__(
        self,
        edges: Any = None,
        smoothing: float = 0.0,
        states: Mapping[str, Sequence[Any]] | None = None,
        equivalent_sample_size: float | None = None,
        inference: Inference | str = EM(max_iter=1000),  # noqa: B008 (a spec is a value)
        random_state: Any = None,
        verbose: bool = False,
        structure: Structure | str = "auto",
    ) -> None:
        self.edges = edges
        self.smoothing = smoothing
        self.states = states
        self.equivalent_sample_size = equivalent_sample_size
        self.inference = inference
        self.random_state = random_state
        self.verbose = verbose
        self.structure = structure

    # --- making one ---------------------------------------------------------------------------------------------
    @classmethod
    def from_bif(cls, path: str | os.PathLike[str]) -> Self:
        """The network of a BIF file, with its tables: ready to be asked. Its states are text."""
        edges, states, tables = read_bif(path)
        return cls._made(edges, states, dict(zip(states, tables, strict=True)))

    @classmethod
    def from_tables(
        cls, edges: Any, tables: Mapping[str, Any], states: Mapping[str, Sequence[Any]] | None = None
    ) -> Self:
        """The network of given tables. The axes of a table are the parents, as `edges` lists them, then the variable.

        >>> tables = {"rain": [0.8, 0.2], "wet": [[0.9, 0.1], [0.3, 0.7]]}
        >>> BayesianNetwork.from_tables([("rain", "wet")], tables).marginals()["wet"]
        {0: 0.78, 1: 0.22}
        """
        return cls._made(edges, states, tables)

    @classmethod
    def _made(cls, edges: Any, states: Mapping[str, Sequence[Any]] | None, tables: Mapping[str, Any]) -> Self:
        dag = Dag.from_edges(edges)
        for name in tables:
            dag.position(name)
        absent = [name for name in dag.names if name not in tables]
        if absent:
            raise DataError(f"tables has none for {absent[0]!r}; every variable needs one.")
        sizes = {name: np.shape(tables[name])[-1] if np.ndim(tables[name]) else 0 for name in dag.names}
        known = {name: list(range(size)) for name, size in sizes.items()} | check_states(states, dag)
        shapes = Tables(dag, [len(known[name]) for name in dag.names])
        return cls(edges, states=states)._learn(dag, known, shapes.join([tables[name] for name in dag.names]))

    def to_bif(self, path: str | os.PathLike[str]) -> None:
        """Write the network as a BIF file, with every digit; `from_bif` reads it back, with states as text."""
        labels = self._labels
        write_bif(path, labels.dag, labels.states, list(self.tables_.values()))

    def fit(self, X: Any, y: None = None, sample_weight: Any = None) -> Self:
        """Count the tables, or run EM where values are missing; `history_` is log p(seen) + log p(θ) at each step."""
        self._forget()
        self._check_arguments()
        refuse(as_spec(self.inference, Inference, "inference"), _Counts())  # also where there is nothing to infer
        dag = Dag.from_edges(column_names(X) if self.edges is None else self.edges)
        columns = read_columns(X, dag.names)
        states = check_states(self.states, dag)
        for name in dag.names:
            if name not in states and name in columns:
                states[name] = find_states(columns[name])
            if not states.get(name):
                where = "no value in its column of X" if name in columns else "no column in X"
                raise DataError(f"{name!r} has {where}; a variable that is never seen needs states={{{name!r}: […]}}.")
        form, hidden = form_of_columns(X), [name for name in dag.names if name not in columns]
        codes = Labels(dag, states).encode(columns)
        weights = as_weights(sample_weight, torch.from_numpy(codes))
        weight = np.ones(len(codes)) if weights is None else weights.numpy()
        if self.edges is None:
            known = {name: states[name] for name in dag.names}
            dag = learn_dag(self.structure, known, codes, weight, np.random.default_rng(self._seed()))
        tables = Tables(dag, [len(states[name]) for name in dag.names])
        prior = tables.pseudo_counts(self.smoothing, self.equivalent_sample_size)
        if (codes >= 0).all():
            counts = tables.counts(codes, weight)
            vector = tables.normalise(counts + prior)
            trace, steps = np.array([log_power(vector, counts + prior)]), 0
            converged: bool | None = True
        else:
            latent = NetworkEM(tables, codes, weight, prior)
            options = {"name": "BayesianNetwork", "random_state": self.random_state, "verbose": bool(self.verbose)}
            fit = fit_latent(self.inference, latent, "auto", **options)
            vector, trace, steps, converged = fit.params["tables"].numpy(), fit.trace.numpy(), fit.n_iter, fit.converged
            counts = latent.expected_counts(vector)
        tables.warn_of_unseen(counts + prior, [states[name] for name in dag.names])
        self.history_, self.n_iter_, self.converged_ = trace, steps, converged
        self.log_likelihood_ = float(trace[-1]) - log_power(vector, prior)
        return self._learn(dag, states, vector, form, hidden)

    # --- draws --------------------------------------------------------------------------------------------------
    def sample(
        self,
        n: int = 1,
        condition: Evidence | None = None,
        random_state: Any = None,
        *,
        soft: Soft | None = None,
        return_hidden: bool = False,
    ) -> Any:
        """n independent rows in the form of those fitted: ancestral, or exactly from p(x | condition).

        That is a frame, columns {name: states} (also of a network of given tables), a list of dicts or an array.
        Variables that the data never showed are left out, unless `return_hidden`.

        >>> model = BayesianNetwork.from_tables(["coin"], {"coin": [0.5, 0.5]}, states={"coin": ["head", "tail"]})
        >>> model.sample(3, random_state=0)
        {'coin': array(['head', 'head', 'tail'], dtype='<U4')}
        """
        count, labels = count_of(n), self._labels
        random = np.random.default_rng(self._seed(random_state))
        if not condition and not soft:
            codes = self._tables.ancestral(self.probabilities_, count, random)
        else:
            weights, _ = labels.soft(soft)
            log_z, codes = self._inference.sample(labels.evidence(condition), count, random, weights)
            self._check_possible(log_z, condition, soft)
        return as_table(self._columns(codes, [] if return_hidden else self.hidden_), self.form_)

    def _columns(self, codes: np.ndarray, without: Collection[str] = ()) -> dict[str, np.ndarray]:
        named = zip(self._labels.dag.names, self._labels.states, codes.T, strict=True)
        return {name: np.array(states)[column] for name, states, column in named if name not in without}

    # --- questions about rows of data ---------------------------------------------------------------------------
    def log_prob(self, X: Any) -> np.ndarray:
        """log p of each row; what is missing in it is summed out. −∞ for a row that cannot be."""
        codes = self._labels.rows(X)
        complete = (codes >= 0).all(1)
        log_prob = np.empty(len(codes))
        log_prob[complete] = self._tables.log_prob(self.probabilities_, codes[complete])
        if not complete.all():
            log_prob[~complete] = self._inference.log_prob(codes[~complete])
        return log_prob

    def score(self, X: Any, y: None = None, sample_weight: Any = None) -> float:
        """The mean of log p, in nats per row."""
        log_prob = self.log_prob(X)
        weight = as_weights(sample_weight, log_prob)
        return float(np.average(log_prob, weights=None if weight is None else weight.numpy()))

    def posterior(self, X: Any) -> dict[str, Categorical]:
        """p(variable | what is known in the row) of each variable, a torch `Categorical` of batch (rows,)."""
        marginals = self._posterior(self._labels.rows(X))
        return {name: Categorical(torch.from_numpy(p), validate_args=False) for name, p in marginals.items()}

    def impute(self, X: Any, draws: int | None = None, random_state: Any = None) -> Any:
        """X, in its form, with each missing value at its most probable state given the known ones of its row.

        With `draws`, a list of so many tables whose missing values are drawn together from p(missing | known).
        """
        codes = self._labels.rows(X)
        if draws is None:
            best = self._posterior(codes)
            guess = np.stack([best[name].argmax(1) for name in self.names_], 1)
            return as_table(self._columns(np.where(codes < 0, guess, codes), self.hidden_), form_of_columns(X))
        random, count = np.random.default_rng(self._seed(random_state)), count_of(draws, "draws")
        filled = np.repeat(codes[None], count, 0)
        for row in np.flatnonzero((codes < 0).any(1)):
            log_z, drawn = self._inference.sample(codes[row : row + 1], count, random)
            if log_z == -np.inf:
                known = self._labels.decode(codes[row].tolist())
                raise DataError(f"Row {row} of X has probability zero: {listed(known)}.{REMEDY}")
            filled[:, row] = drawn
        return [as_table(self._columns(own, self.hidden_), form_of_columns(X)) for own in filled]

    def predict_proba(self, X: Any, target: str) -> np.ndarray:
        """p(target | the other columns) of each row (rows, states), in the order of `states_[target]`."""
        variable = self._labels.dag.position(target)
        codes = self._labels.rows(X)
        codes[:, variable] = -1
        blocks = [codes[first : first + BLOCK] for first in range(0, len(codes), BLOCK)]
        return np.concatenate([self._posterior(block, BLOCK * place)[target] for place, block in enumerate(blocks)])

    def predict(self, X: Any, target: str) -> np.ndarray:
        """The most probable state of the target in each row, given the other columns."""
        most = self.predict_proba(X, target).argmax(1)
        return np.array(self.states_[target])[most]

    @property
    def tables_(self) -> dict[str, np.ndarray]:
        """The table of each variable: axes are its parents, as the edges list them, and last the variable."""
        self._check_fitted()
        vector = self.probabilities_.view()
        vector.flags.writeable = False  # inference has its own copy, which would not follow
        return dict(zip(self.names_, self._tables.split(vector), strict=True))

    # --- within -------------------------------------------------------------------------------------------------
    def _learn(
        self,
        dag: Dag,
        states: Mapping[str, Sequence[Any]],
        vector: np.ndarray,
        form: str = "columns",
        hidden: Sequence[str] = (),
    ) -> Self:
        self.form_, self.hidden_ = form, list(hidden)
        self.names_ = list(dag.names)
        pairs = [
            [dag.names[parent], name]
            for name, parents in zip(dag.names, dag.parents, strict=True)
            for parent in parents
        ]
        self.edges_ = [*dag.names, *pairs]
        self.states_ = {name: list(states[name]) for name in dag.names}
        self.probabilities_ = vector
        return self

    def _forget(self) -> None:
        super()._forget()
        for name in ("_inference", "_labels", "_tables"):
            self.__dict__.pop(name, None)

    @cached_property
    def _labels(self) -> Labels:
        self._check_fitted()
        return Labels(Dag.from_edges(self.edges_), self.states_)

    @cached_property
    def _tables(self) -> Tables:
        return Tables(self._labels.dag, self._labels.sizes)

    @cached_property
    def _inference(self) -> ExactInference:
        return ExactInference(self._tables, self.probabilities_)

    def _check_learned(self) -> None:
        dag = Dag.from_edges(self.edges_)
        if list(dag.names) != self.names_ or check_states(self.states_, dag).keys() != set(dag.names):
            raise ModelFileError("The file does not fit its own specs: names_, edges_ and states_ disagree.")
        sizes = [len(self.states_[name]) for name in dag.names]
        entries = sum(math.prod(sizes[member] for member in dag.family(v)) for v in range(len(sizes)))
        if entries != len(self.probabilities_):
            raise ModelFileError(
                f"BayesianNetwork's probabilities_ has {len(self.probabilities_)} entries in this file; its tables "
                f"have {entries}."
            )
        tables = Tables(dag, sizes)
        tables.join(tables.split(self.probabilities_))

    def _posterior(self, codes: np.ndarray, first: int = 0) -> dict[str, np.ndarray]:
        marginals, log_z = self._inference.posteriors(codes)
        if (log_z == -np.inf).any():
            row = int((log_z == -np.inf).argmax())
            known = self._labels.decode(codes[row].tolist())
            raise DataError(f"Row {first + row} of X has probability zero: {listed(known)}.{REMEDY}")
        return self._labels.split(marginals)

    def _check_arguments(self) -> None:
        sizes = (("smoothing", self.smoothing), ("equivalent_sample_size", self.equivalent_sample_size or 0.0))
        for argument, value in sizes:
            if not isinstance(value, int | float | np.number) or not 0 <= value < float("inf"):
                raise SpecError(f"BayesianNetwork({argument}={value!r}): {argument} must be a number from 0.")
        if self.smoothing and self.equivalent_sample_size:
            raise SpecError("BayesianNetwork: give smoothing or equivalent_sample_size, not both.")
        if self.edges is not None and self.structure != "auto":
            raise SpecError(
                f"BayesianNetwork(edges=…, structure={self.structure!r}): edges are given or learned; leave out one of "
                "them. Edges that a learned structure must have are its `required`."
            )
