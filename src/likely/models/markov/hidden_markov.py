"""HiddenMarkov: a sequence whose steps come from K states that nobody sees, each state following from the one before.

    p(x) = Σ_z p(z₁) Πₜ p(zₜ | zₜ₋₁) Πₜ p(xₜ | zₜ)

Found by Baum–Welch, which is EM: the estimate of each state is the likelihood's own, from steps weighted by γₜ(k).
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
import torch
from torch import Tensor

from ...core import distributed
from ...core.declared import COUNTS, FIT, HISTORY, SIMPLEX, TABLE, Array, Arrays, Range, Values
from ...core.errors import DataError, LikelyWarning, SpecError
from ...core.spec import require
from ...core.validation import as_weights
from ...data.sequences import read_sequences
from ...inference import EM, Inference
from ...inference.latent.density import fit_latent
from ...inference.latent.latent import Params
from ...likelihoods import Normal
from ..averaged import INFO
from ..emissions import Columns, Emission
from ..emissions.mixture import describe, rebuild
from ..emissions.starts import Init
from .baum_welch import BaumWelch
from .emission import columns_of_size, emission_of
from .states import _HiddenStates
from .transitions import Transitions, allowed_transitions, long_run

__all__ = ["HiddenMarkov"]

UNVISITED = 1e-6
"""A state that all steps together spend less than this in is not visited."""


class HiddenMarkov(_HiddenStates):
    """HiddenMarkov(likelihood=Normal(), n_states=2, transitions="full"): X is a sequence, or a list of any lengths.

    A sequence is (T, d), or (T,) for single numbers; NaN is a missing value, and a step may be missing altogether. Rows
    that hold several sequences one after the other come with their `lengths`. `likelihood` is one for all columns, a
    list with one for each, a `Product`, or an unfitted mixture that each state then has its own of. `transitions` says
    which are allowed: "full", "left-right" (from the first state to itself or any later one), "cyclic" (to itself or
    the next), or a K × K array of what is. `transition_prior` counts for each allowed transition in advance.

    >>> from likely.likelihoods import Poisson
    >>> model = HiddenMarkov(Poisson(), n_states=2, random_state=0).fit([1, 0, 2, 1, 20, 22, 18, 21, 19, 1, 2, 0])
    >>> (model.predict([0, 1, 25, 19]) == model.predict([1])).tolist()
    [True, True, False, False]
    >>> sorted(np.exp(model.eta_).round(1).ravel().tolist())
    [1.0, 20.0]
    """

    log_prob_kind_: ClassVar[str] = "exact"
    _arrays: ClassVar[Arrays] = {
        "initial_": Array("K", SIMPLEX),
        "transition_": Array("K K", SIMPLEX),
        "history_": HISTORY,
    }
    _values: ClassVar[Values] = {"emission_": TABLE, **FIT, **INFO, "unvisited_": COUNTS}

    def __init__(
        self,
        likelihood: Any = Normal(),  # noqa: B008 (specs are frozen values)
        n_states: int = 2,
        transitions: Transitions = "full",
        inference: Inference | str = EM(),  # noqa: B008
        init: Init = "k-means++",
        smoothing: float = 1e-6,
        transition_prior: float = 0.0,
        prior: Any = "auto",
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.likelihood = likelihood
        self.n_states = n_states
        self.transitions = transitions
        self.inference = inference
        self.init = init
        self.smoothing = smoothing
        self.transition_prior = transition_prior
        self.prior = prior
        self.random_state = random_state
        self.verbose = verbose

    # --- fit ----------------------------------------------------------------------------------------------------
    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        lengths: Any = None,
        sample_weight: Any = None,
        start: HiddenMarkov | None = None,
    ) -> Self:
        """Learn states and transitions from one sequence or several; y is ignored.

        `sample_weight` has one number for each sequence. A fitted model as `start` is where EM begins.
        """
        self._forget()
        allowed, first = self._check_arguments()
        data = read_sequences(self, X, lengths, reset=True)
        given = as_weights(sample_weight, torch.empty(len(data)))
        weight = np.ones(len(data)) if given is None else given.numpy()
        self._check_columns(data.values)
        names = getattr(self, "feature_names_in_", None)
        if start is None:
            emission = emission_of(self.likelihood, data.values, names, self.smoothing)
        else:
            emission = start._same(self, data.values)
        begin = None if start is None else start._params()
        chain = BaumWelch(
            *(emission, data, weight, allowed, first),
            prior=self.transition_prior,
            init=self.init,
            ordered=isinstance(self.transitions, str) and self.transitions == "left-right",
            begin=begin,
        )
        options = {"name": "HiddenMarkov", "random_state": self.random_state, "verbose": self.verbose}
        fit = fit_latent(self.inference, chain, self.prior, **options)
        self._keep(emission, fit.params)
        self._keep_draws(fit)
        self.history_, self.n_iter_, self.converged_ = fit.trace.numpy(), fit.n_iter, fit.converged
        statistics = chain.at(fit.params)
        self.log_likelihood_ = float(statistics["chain.log_prob"])
        visits = statistics["chain.first"] + statistics["chain.pairs"].sum(0)  # Σₜ γₜ
        self.unvisited_ = torch.nonzero(visits < UNVISITED).ravel().tolist()
        if self.unvisited_ and distributed.rank() == 0:
            states = ("state " if len(self.unvisited_) == 1 else "states ") + ", ".join(map(str, self.unvisited_))
            warnings.warn(
                f"HiddenMarkov: no step of the data is spent in {states}, which therefore kept its last transitions; "
                "fewer states may do, or EM(starts=…) with more first guesses.",
                LikelyWarning,
                stacklevel=2,
            )
        return self

    @classmethod
    def from_parameters(cls, likelihood: Any, initial: Any, transition: Any, eta: Any, **arguments: Any) -> Self:
        """A model whose parameters are known: `eta` (K, size) holds the likelihood's numbers η for each state.

        >>> coins = HiddenMarkov.from_parameters(Normal(1.0), [0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]], [[-3.0], [3.0]])
        >>> coins.predict([-2.5, -3.1, -0.1, 3.3, 2.9])
        array([0, 0, 0, 1, 1])
        """
        rows = [np.asarray(given, dtype=np.float64) for given in (initial, transition, eta)]
        states = len(rows[0])
        if rows[0].ndim != 1 or rows[1].shape != (states, states) or rows[2].ndim != 2 or len(rows[2]) != states:
            shapes = ", ".join(str(row.shape) for row in rows)
            raise DataError(f"initial, transition and eta must be (K,), (K, K) and (K, size); found {shapes}.")
        for name, row in (("initial", rows[0]), ("transition", rows[1])):
            if (row < 0).any() or not np.allclose(row.sum(-1), 1.0, rtol=0, atol=1e-8):
                raise DataError(f"{name} must hold probabilities that sum to 1; found {row.tolist()}.")
        model = cls(likelihood, n_states=states, **arguments)
        model._check_arguments()
        columns = columns_of_size(likelihood, rows[2].shape[1], model.smoothing)
        model.n_features_in_ = columns.parts[-1].columns.stop
        names = {"chain.initial": rows[0], "chain.transition": rows[1], "eta": rows[2]}
        model._keep(columns, {name: torch.from_numpy(value.copy()) for name, value in names.items()})
        model.history_, model.n_iter_, model.converged_, model.unvisited_ = np.empty(0), 0, True, []
        return model

    # --- answers ------------------------------------------------------------------------------------------------
    def log_prob(self, X: Any, lengths: Any = None) -> np.ndarray:
        """log p(x) of each sequence, (n,); −∞ for one that no path of states can give."""
        log_prob, log_weights = self._log_prob_by_member(self._sequences(X, lengths))
        return (log_prob + log_weights).logsumexp(-1).numpy()

    def score(self, X: Any, y: Any = None, lengths: Any = None, sample_weight: Any = None) -> float:
        """The mean of log p(x) over the sequences."""
        log_prob = self.log_prob(X, lengths)
        weight = as_weights(sample_weight, log_prob)
        return float(np.average(log_prob, weights=None if weight is None else weight.numpy()))

    @property
    def emission_parameters_(self) -> dict[str, np.ndarray]:
        """The emission's parameters by name, each with one row for each state (for mixtures also each component)."""
        self._check_fitted()
        return dict(self._learned_emission)

    @property
    def eta_(self) -> np.ndarray:
        """The likelihoods' numbers η of each state: (K, size), or (K, M, size) for mixtures of M components."""
        eta = self.emission_parameters_["eta"]
        mixing = self.emission_parameters_.get("mixing")
        return eta if mixing is None else eta.reshape(*mixing.shape, -1)

    @property
    def stationary_(self) -> np.ndarray:
        """The fraction of steps that the chain spends in each state in the long run, from its initial states on."""
        self._check_fitted()
        return long_run(self.initial_, self.transition_)

    @property
    def n_parameters_(self) -> int:
        """How many free parameters the model has."""
        self._check_fitted()
        allowed, first = self._check_arguments()
        chain = int(first.sum()) - 1 + int(allowed.sum()) - self.n_states
        return chain + rebuild(self.emission_).free(self.n_states)

    def aic(self, X: Any, lengths: Any = None) -> float:
        """Akaike's criterion, −2 log p(X) + 2·parameters; less is better."""
        return -2 * float(self.log_prob(X, lengths).sum()) + 2 * self.n_parameters_

    def bic(self, X: Any, lengths: Any = None) -> float:
        """The Bayesian criterion, −2 log p(X) + log(steps)·parameters; less is better."""
        data, log_prob, _, _ = self._filtered(X, lengths)
        return -2 * float(log_prob.sum()) + math.log(len(data.values)) * self.n_parameters_

    # --- helpers ------------------------------------------------------------------------------------------------
    def _point(self) -> Params:
        return {name: value for name, value in self._params().items() if name not in ("whiten", "floored")}

    def _draw_ranges(self) -> dict[str, Range]:
        emission = rebuild(self.emission_)
        declared = {**emission.arrays(), **(emission.inner.arrays() if hasattr(emission, "inner") else {})}
        ranges = {name: array.range for name, array in declared.items() if name in self._point()}
        return {"chain.initial": SIMPLEX, "chain.transition": SIMPLEX, **ranges}

    def _same(self, model: HiddenMarkov, x: Tensor) -> Emission:
        """The emission of this fitted model, for another that starts from it."""
        self._check_fitted()
        if self.n_states != model.n_states or self.n_features_in_ != x.shape[1]:
            raise SpecError(
                f"start has {self.n_states} states of {self.n_features_in_} columns, but n_states={model.n_states} and "
                f"X has {x.shape[1]} columns."
            )
        emission = rebuild(self.emission_)
        if isinstance(emission, Columns):
            emission.smoothing = model.smoothing
        emission.check(x)
        return emission

    def _params(self) -> Params:
        chain = {"chain.initial": self.initial_, "chain.transition": self.transition_}
        return {**{name: torch.from_numpy(v) for name, v in chain.items()}, **self._emission_params()}

    def _keep(self, emission: Emission, params: Mapping[str, Tensor]) -> None:
        self.initial_, self.transition_ = params["chain.initial"].numpy(), params["chain.transition"].numpy()
        self.emission_ = describe(emission)
        own = {name: value.numpy() for name, value in params.items() if not name.startswith("chain.")}
        self._learned_emission: dict[str, np.ndarray] = own

    def _check_arguments(self) -> tuple[np.ndarray, np.ndarray]:
        """Which transitions are allowed (K, K), and in which states a sequence may start (K,)."""
        whole = isinstance(self.n_states, int | np.integer) and not isinstance(self.n_states, bool)
        require(whole and self.n_states >= 1, self, "n_states", "a positive integer")
        require(self.init in ("k-means++", "random"), self, "init", '"k-means++" or "random"')
        for name in ("smoothing", "transition_prior"):
            value = getattr(self, name)
            number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
            require(number and 0 <= value < math.inf, self, name, "0 or a positive number")
        return allowed_transitions(self.transitions, int(self.n_states))

    def _check_columns(self, x: Tensor) -> None:
        gone = x.isnan().all(0)
        if bool(gone.any()):
            column = int(gone.nonzero()[0])
            name = getattr(self, "feature_names_in_", range(x.shape[1]))[column]
            raise DataError(f"column {name!r} of X has no value: all its steps are NaN; leave it out.")

    # --- files --------------------------------------------------------------------------------------------------
    def _describe(self) -> dict[str, Any]:
        described = super()._describe()
        if isinstance(self.transitions, np.ndarray):
            described["params"]["transitions"] = self.transitions.astype(int).tolist()
        return described

    def _state(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        values, tensors = super()._state()
        emission = {f"emission.{name}": value.contiguous() for name, value in self._emission_params().items()}
        return values, {**tensors, **emission}

    def _restore(self, learned: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
        own = {name: value for name, value in tensors.items() if name.startswith("emission.")}
        self._learned_emission = {name.removeprefix("emission."): value.numpy() for name, value in own.items()}
        super()._restore(learned, {name: value for name, value in tensors.items() if name not in own})
        rebuild(self.emission_).check_params(self._emission_params(), self.n_states, self.n_features_in_)

    def _dimensions(self) -> dict[str, Any]:
        return super()._dimensions() | {"K": self.n_states}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags
