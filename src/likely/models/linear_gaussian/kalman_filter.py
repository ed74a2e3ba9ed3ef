"""Kalman filter: series that are noisy views of a hidden state which moves linearly.

z_{t+1} = A z_t + b + w,  w ~ N(0, Q)        x_t = C z_t + d + v,  v ~ N(0, R)        z_0 ~ N(m, P)
"""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
import torch
from sklearn.base import TransformerMixin

from ...core import distributed
from ...core.declared import COVARIANCE, FINITE, FIT, HISTORY, Array, Arrays, Range, Values
from ...core.draws import count_of
from ...core.errors import DataError, SpecError
from ...core.spec import as_spec
from ...core.validation import as_weights
from ...data.rows import Ragged
from ...data.sequences import read_sequences
from ...inference import Inference
from ...inference.latent.density import fit_latent
from ...inference.latent.em import EM
from ...inference.latent.latent import LatentFit, Params
from ..averaged import INFO, NEGLIGIBLE, Averaged, completed, weights_given
from .kalman.draws import draw_series, expected_rows, filled_rows
from .kalman.em import StateSpace
from .kalman.forecast import (
    Forecast,
    ahead,
    last_state,
    normals,
    pairs,
    seen,
    seen_covariance,
    step_ahead,
)
from .kalman.matrices import count_states, read_learn, read_matrix
from .kalman.recursion import (
    SHAPES,
    Observed,
    System,
    observe,
    run_filter,
)
from .kalman.smoother import Smoothed, run_smoother
from .kalman.structures import local_level, local_trend, seasonal

__all__ = ["KalmanFilter"]


def _range(name: str) -> Range:
    return COVARIANCE if name.endswith("covariance") else FINITE


class KalmanFilter(TransformerMixin, Averaged):
    """A linear-Gaussian state-space model: exact filtering, smoothing and forecasts; EM for what is not known.

    Matrices that are given are kept, the others are learned; `learn` names other ones to learn, and given ones of
    those are where EM begins. A number or a vector will do for a diagonal covariance. `transition_offset` is 0 unless
    named in `learn`, and `observation_offset` is learned along with `observation`. States are known up to a change of
    their basis, unless matrices say what they mean. Where noise covariances are learned for known dynamics, EM begins
    where a descent in their sizes ends; a variance of 0 stays 0, and with covariance="diagonal" only variances
    are learned.

    `initial_covariance="diffuse"` says that nothing is known of the first state: a million times the mean square of
    the data. It costs log p(x) a constant of about 7 for each state, and digits where the data have more than ten.

    X is one series (T, p), series one after the other with their `lengths`, or a list of series. NaN is a missing
    value: a single one, or a whole step. Answers for a list are lists, and for arrays arrays.

    >>> X = np.array([[1.0], [1.2], [np.nan], [1.6], [2.1], [1.9]])
    >>> model = KalmanFilter.local_trend(inference=EM(max_iter=500)).fit(X)
    >>> model.transform(X)[2].round(2)                     # level and slope where nothing was seen
    array([1.43, 0.21])
    >>> model.forecast(X, steps=2).mean.round(1).ravel().tolist()
    [2.3, 2.5]
    """

    _arrays: ClassVar[Arrays] = {
        **{f"{name}_": Array(" ".join(axes), _range(name)) for name, axes in SHAPES.items()},
        "history_": HISTORY,
    }
    _values: ClassVar[Values] = {**FIT, **INFO}
    log_prob_kind_: ClassVar[str] = "exact"

    def __init__(
        self,
        n_states: int | None = None,
        transition: Any = None,
        observation: Any = None,
        transition_covariance: Any = None,
        observation_covariance: Any = None,
        initial_mean: Any = None,
        initial_covariance: Any = None,
        transition_offset: Any = None,
        observation_offset: Any = None,
        covariance: str = "full",
        learn: Any = None,
        inference: Any = EM(),  # noqa: B008 (a spec cannot change)
        prior: Any = "auto",
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.n_states = n_states
        self.transition = transition
        self.observation = observation
        self.transition_covariance = transition_covariance
        self.observation_covariance = observation_covariance
        self.initial_mean = initial_mean
        self.initial_covariance = initial_covariance
        self.transition_offset = transition_offset
        self.observation_offset = observation_offset
        self.covariance = covariance
        self.learn = learn
        self.inference = inference
        self.prior = prior
        self.random_state = random_state
        self.verbose = verbose

    @classmethod
    def local_level(cls, **more: Any) -> Self:
        """A random walk seen through noise; `fit` learns the two variances.

        >>> KalmanFilter.local_level().transition
        ((1.0,),)
        """
        return cls(**local_level() | more)

    @classmethod
    def local_trend(cls, **more: Any) -> Self:
        """A level whose slope is a random walk too; `fit` learns the three variances.

        >>> KalmanFilter.local_trend().transition
        ((1.0, 1.0), (0.0, 1.0))
        """
        return cls(**local_trend() | more)

    @classmethod
    def seasonal(cls, period: int, trend: bool = True, **more: Any) -> Self:
        """A level (with a slope, if `trend`) and a slowly changing pattern of `period` steps; `fit` learns variances.

        >>> len(KalmanFilter.seasonal(12).transition)      # level, slope, and eleven of twelve months that sum to 0
        13
        """
        return cls(**seasonal(period, trend) | more)

    # --- learning -----------------------------------------------------------------------------------------------
    def fit(self, X: Any, y: Any = None, lengths: Any = None, sample_weight: Any = None) -> Self:
        """Learn the matrices that are not known; `sample_weight` has one number for each series. y is ignored."""
        self._forget()
        as_spec(self.inference, Inference, "inference")
        if self.covariance not in ("full", "diagonal"):
            raise SpecError(f'KalmanFilter(covariance={self.covariance!r}): covariance is "full" or "diagonal".')
        _, data = self._series(X, lengths, reset=True)
        weight = as_weights(sample_weight, data.starts[1:])
        if weight is not None and not bool(weight.all()):  # a series without weight is not there
            data = observe(data.rows[weight.nonzero().ravel()])
        model = self._bound(data, None if weight is None else weight.numpy()[weight.numpy() > 0])
        if model.learn:
            options = {"name": "KalmanFilter", "random_state": self.random_state, "verbose": self.verbose}
            fit = fit_latent(self.inference, model, self.prior, **options)
        else:
            params = model.start([0])
            _, value = model.expect(params)
            distributed.sum_(value)
            fit = LatentFit({name: values[0] for name, values in params.items()}, value, value, converged=True)
        for name in System._fields:
            setattr(self, f"{name}_", np.ascontiguousarray(fit.params[name].numpy()))
        self.history_ = fit.trace.numpy()
        self.n_iter_, self.converged_ = fit.n_iter, fit.converged
        self._keep_draws(fit)
        self.log_likelihood_ = float(run_filter(data, self._system()).log_prob.sum())
        return self

    def _bound(self, data: Observed, weight: np.ndarray | None) -> StateSpace:
        arguments = {name: getattr(self, name) for name in System._fields}
        k, p = count_states(self.n_states, arguments), data.x.shape[1]
        scale = _mean_square(data, weight) or 1.0
        given = {name: read_matrix(name, value, k, p, scale) for name, value in arguments.items()}
        learn = read_learn(self.learn, given)
        if any(name.startswith("observation") for name in learn) and (empty := np.isnan(data.x).all(0)).any():
            raise DataError(f"Column {int(empty.argmax())} of X has no value, so that nothing can be learned about it.")
        for name in ("transition_covariance", "observation_covariance"):
            matrix = given[name]
            diagonal = self.covariance == "diagonal" and name in learn
            if diagonal and matrix is not None and np.count_nonzero(matrix) > np.count_nonzero(np.diag(matrix)):
                raise SpecError(f'{name} is not diagonal, so EM cannot begin there with covariance="diagonal".')
        return StateSpace(data, given, learn, k, diagonal=self.covariance == "diagonal", weight=weight)

    # --- answers ------------------------------------------------------------------------------------------------
    def filter(self, X: Any, lengths: Any = None) -> Any:
        """Means (T, k) and covariances (T, k, k) of each state given the observations up to it."""
        sequences, data = self._series(X, lengths)
        filtered = run_filter(data, self._system())
        return pairs(sequences, filtered.means, filtered.gains.filtered[filtered.gains.step])

    def smooth(self, X: Any, lengths: Any = None) -> Any:
        """Means (T, k) and covariances (T, k, k) of each state given all observations of its series."""
        sequences, data = self._series(X, lengths)
        smooth = self._smooth(data)
        return pairs(sequences, smooth.means, smooth.covariance[smooth.row])

    def posterior(self, X: Any, lengths: Any = None) -> Any:
        """The distribution of each state given all observations: a torch normal with batch (T,) and event (k,).

        A state that others determine has a singular covariance: it has moments and samples, but no density.
        """
        sequences, data = self._series(X, lengths)
        smooth = self._smooth(data)
        return normals(sequences, smooth.means, smooth.row, smooth.covariance)

    def transform(self, X: Any, lengths: Any = None) -> Any:
        """The mean of each state given all observations, (T, k)."""
        sequences, data = self._series(X, lengths)
        return sequences.parted(self._smooth(data).means)

    def predict(self, X: Any, lengths: Any = None) -> Any:
        """The mean of each step given the ones before it, (T, p)."""
        sequences, data = self._series(X, lengths)
        system = self._system()
        return sequences.parted(seen(system, run_filter(data, system).predicted))

    def predict_dist(self, X: Any, lengths: Any = None) -> Any:
        """The distribution of each step given the ones before it: a torch normal with batch (T,) and event (p,)."""
        sequences, data = self._series(X, lengths)
        system = self._system()
        filtered = run_filter(data, system)
        spread = seen_covariance(system, filtered.gains.predicted)
        return normals(sequences, seen(system, filtered.predicted), filtered.gains.step, spread)

    def log_prob(self, X: Any, lengths: Any = None) -> np.ndarray:
        """log p(x) of each series, (n,); one series has one."""
        _, data = self._series(X, lengths)
        log_prob, log_weights = self._log_prob_by_member(data)
        return (log_prob + log_weights).logsumexp(-1).numpy()

    def score(self, X: Any, y: Any = None, lengths: Any = None, sample_weight: Any = None) -> float:
        """The mean of log p(x) over the series."""
        log_prob = self.log_prob(X, lengths)
        weight = as_weights(sample_weight, log_prob)
        return float(np.average(log_prob, weights=None if weight is None else weight.numpy()))

    def forecast(self, X: Any, steps: int = 1, level: float = 0.9, lengths: Any = None) -> Any:
        """The distribution of each of the next steps, with its interval: a `Forecast`, or a list for several series."""
        sequences, data = self._series(X, lengths)
        _check_count("steps", steps)
        if not isinstance(level, int | float | np.number) or not 0 < level < 1:
            raise DataError(f"level={level!r}: the probability of the interval must be between 0 and 1, such as 0.9.")
        system = self._system()
        filtered = run_filter(data, system)
        several = [Forecast(ahead(system, filtered, end - 1, steps), float(level)) for end in data.starts[1:]]
        return several[0] if len(several) == 1 and not sequences.listed else several

    def sample(
        self,
        n: int = 1,
        condition: Any = None,
        random_state: Any = None,
        *,
        length: int = 100,
        return_hidden: bool = False,
    ) -> Any:
        """n new series of `length` steps, (n, length, p); with `return_hidden` also their states (n, length, k).

        The last axis is there for single numbers, too: with p = 1 a series is (length, 1), whatever was fitted.

        With a series as `condition`, what may follow it.
        """
        system, shape = self._system(), (count_of(n), count_of(length, "length"))
        mean, covariance = system.initial_mean, system.initial_covariance
        if condition is not None:
            _, data = self._series(condition, None)
            if len(data.rows) > 1:
                raise DataError(f"condition has {len(data.rows)} series; a sample continues one.")
            mean, covariance = step_ahead(system, *last_state(run_filter(data, system), -1))
        seed = self._seed(random_state)
        random, chosen = np.random.default_rng(seed), self._members_of(shape[0], seed)
        if condition is not None or chosen is None:
            rows, states = draw_series(system, mean, covariance, shape, random)
        else:  # a system of its own for each series
            own = [self._member(s) for s in chosen.tolist()]
            starts = [(member, member.initial_mean, member.initial_covariance) for member in own]
            pieces = [draw_series(*start, (1, shape[1]), random) for start in starts]
            rows, states = (np.concatenate(parts) for parts in zip(*pieces, strict=True))
        return (rows, states) if return_hidden else rows

    def impute(self, X: Any, draws: int | None = None, random_state: Any = None, *, lengths: Any = None) -> Any:
        """X with each missing value at its mean given all observations of its series, (T, p).

        With `draws`, so many draws of it instead: (draws, T, p) for each series.
        """
        sequences, data = self._series(X, lengths)
        weights, systems = weights_given(*self._log_prob_by_member(data)), self._systems()
        if draws is None:
            own = weights[data.rows.owner].numpy()  # (T, S)
            counting = np.flatnonzero(own.max(0) > NEGLIGIBLE)
            expected = sum(own[:, s, None] * expected_rows(data, systems[s]) for s in counting)
            return sequences.parted(np.where(np.isnan(data.x), expected, data.x))
        count, seed = count_of(draws, "draws"), self._seed(random_state)
        random = np.random.default_rng(seed)
        several = completed(
            data.rows, weights, count, seed, lambda member, rows: filled_rows(observe(rows), systems[member], random)
        )
        return sequences.parted(several, axis=1)

    def _dimensions(self) -> dict[str, Any]:
        arguments = {name: getattr(self, name) for name in System._fields}
        return {"k": count_states(self.n_states, arguments), "p": self.n_features_in_}

    # --- inside -------------------------------------------------------------------------------------------------
    def _member(self, index: int) -> System:
        """One of the systems that were drawn."""
        assert self.draws_ is not None
        return System(*(np.ascontiguousarray(self.draws_[name][index]) for name in System._fields))

    def _systems(self) -> list[System]:
        """Those of all draws; the one system if there are none."""
        draws = self._draws()
        return [self._system()] if draws is None else [self._member(s) for s in range(len(draws[1]))]

    def _log_prob_by_member(self, data: Observed) -> tuple[torch.Tensor, torch.Tensor]:
        """log p(x | θₛ) of each series, (n, S), and the logarithms of the weights of draws, (S,)."""
        draws = self._draws()
        values = np.stack([run_filter(data, system).log_prob for system in self._systems()], -1)
        return torch.from_numpy(values), torch.zeros(1).double() if draws is None else draws[1]

    def _point(self) -> Params:
        return {name: torch.from_numpy(value) for name, value in self._system()._asdict().items()}

    def _draw_ranges(self) -> dict[str, Range]:
        return {name: _range(name) for name in System._fields}

    def _system(self) -> System:
        self._check_fitted()
        return System(*(getattr(self, f"{name}_") for name in System._fields))

    def _smooth(self, data: Observed) -> Smoothed:
        system = self._system()
        return run_smoother(data, system, run_filter(data, system))

    def _series(self, X: Any, lengths: Any, *, reset: bool = False) -> tuple[Ragged, Observed]:
        if not reset:
            self._check_fitted()
        sequences = read_sequences(self, X, lengths, reset=reset)
        return sequences, observe(sequences)

    def _describe(self) -> dict[str, Any]:
        described = super()._describe()
        for name in (*System._fields, "learn"):
            value = getattr(self, name)
            if hasattr(value, "__array__"):
                described["params"][name] = np.asarray(value).tolist()
            elif isinstance(value, set | frozenset):
                described["params"][name] = sorted(value)
        return described

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


def _mean_square(data: Observed, weight: np.ndarray | None) -> float:
    """Of the numbers that are known, with the weights (n,) of their series; 0 if there are none."""
    times = np.repeat(np.ones(len(data.rows)) if weight is None else weight, np.diff(data.starts))
    count = float(times @ (~np.isnan(data.x)).sum(1))
    return float(times @ np.nansum(data.x**2, 1)) / count if count else 0.0


def _check_count(name: str, value: Any) -> None:
    if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < 1:
        raise DataError(f"{name}={value!r}: it must be a positive integer.")
