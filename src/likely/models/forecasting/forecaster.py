"""Forecaster: the future of a series given its past.

p(y_{t+1}, y_{t+2}, … | y_1 … y_t) = likelihood( network( last values ) ),   step by step or all steps at once
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any, Self

import numpy as np
import torch
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted
from torch import Tensor
from torch.distributions import Distribution, constraints

from ...core.draws import count_of
from ...core.errors import DataError, LikelyWarning, SpecError
from ...core.estimator import Estimator
from ...core.random import seed_of
from ...core.spec import as_spec, is_integer
from ...core.threads import threads_for
from ...core.validation import as_weights, check_level
from ...likelihoods import Likelihood, Normal
from ...networks import Linear, as_network
from ...priors import Flat
from ...probability.quantiles import quantile
from .backtest import LEVELS, Backtest
from .engines import as_dynamics, engine_of, fit_dynamics, fit_network
from .files import restore, state_of
from .orders import choose_lags, choose_season
from .places import Places, frame_of, places_of, units_of
from .scale import Scale, choose_transform, mapped, remade
from .series import Columns, Series, read_series
from .windows import Rows, filled, training_rows

__all__ = ["Forecaster"]

SMALL = 1
"""What windows of a few numbers cost: more threads would wait for each other. Networks count their own work."""


class Forecaster(Estimator):
    """The distribution of what follows a series, by any likelihood and network over its past.

    `series` is (T,) or (T, channels), a list of such of any lengths, or a table with a `date` column; NaN is a gap.
    Channels are forecast by one model, each from its own past. Series of a list have units of their own.

    `lags` are past values as columns (a number, a list, or "auto": by AICc), `context` is their number for a network
    that reads a sequence, such as LSTM. Without `horizon` the model goes step by step, in closed form where it is
    linear and normal, else by drawn paths; with `horizon` it answers for so many steps at once. `season` is "auto"
    (from dates, or else from the autocorrelation), a number of steps, or None. `transform` is "auto" (logarithms of
    what is above 0, roots of what is not negative), "none", "log" or "sqrt". `covariates` are columns that are known
    ahead of time, or "calendar" for the cycles of dates. In a table, `target` names what to forecast (all columns of
    numbers, if None) and `series` the column that tells several series apart.

    `network` may be classical dynamics instead: `Naive()`, `SeasonalNaive()`, `ExponentialSmoothing()`.

    >>> months = np.arange(60)
    >>> series = 100 + months + 10 * np.sin(2 * np.pi * months / 12) + np.random.default_rng(0).normal(size=60)
    >>> model = Forecaster(season=12).fit(series)
    >>> model.predict(3).shape, model.sample(5, steps=3).shape
    ((3,), (5, 3))
    >>> lower, upper = model.predict_interval(3, level=0.8)
    >>> bool((lower < upper).all())
    True
    """

    log_prob_kind_ = "exact"
    series_: Series

    def __init__(
        self,
        likelihood: Any = Normal(),  # noqa: B008 (a frozen value)
        network: Any = Linear(),  # noqa: B008
        lags: Any = "auto",
        context: int | None = None,
        horizon: int | None = None,
        season: Any = "auto",
        transform: str = "auto",
        covariates: Any = None,
        prior: Any = Flat(),  # noqa: B008
        inference: Any = "auto",
        date: str | None = None,
        target: Any = None,
        series: str | None = None,
        random_state: Any = None,
        device: Any = "auto",
        verbose: bool = False,
    ) -> None:
        self.likelihood = likelihood
        self.network = network
        self.lags = lags
        self.context = context
        self.horizon = horizon
        self.season = season
        self.transform = transform
        self.covariates = covariates
        self.prior = prior
        self.inference = inference
        self.date = date
        self.target = target
        self.series = series
        self.random_state = random_state
        self.device = device
        self.verbose = verbose

    # --- fitting ------------------------------------------------------------------------------------------------
    def fit(self, series: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn from one series or several; `sample_weight` has a number for each. y is ignored."""
        self.__dict__.pop("parts_", None)
        data = read_series(series, self._columns())
        weight = as_weights(sample_weight, data.values)
        with threads_for(SMALL):
            return self._fit(data, None if weight is None else weight.numpy())

    def _fit(self, data: Series, weight: np.ndarray | None) -> Self:
        for name in ("context", "horizon"):
            if getattr(self, name) is not None and not is_integer(getattr(self, name)):
                raise SpecError(f"{name}={getattr(self, name)!r}: {name} must be a positive integer or None.")
        likelihood = as_spec(self.likelihood, Likelihood, "likelihood")
        dynamics = as_dynamics(self.network)
        every = np.concatenate([values.ravel() for values in data.values])
        self.real_ = likelihood.support is constraints.real
        self.transform_ = choose_transform(self.transform, every, self.real_)
        if not self.real_:
            likelihood.check(torch.from_numpy(every[~np.isnan(every)]))
        self.series_, self.seed_ = data, seed_of(self.random_state)
        self.n_features_in_, self.cycles_ = len(data.channels), data.cycles
        bent = [Scale(self.transform_).forward(values) for values in data.values]
        self.location_, self.scale_ = units_of(np.concatenate(bent))
        self._warn_of_constants(bent)
        counted = [i for i in range(len(data)) if weight is None or weight[i]]
        self.season_ = 1
        whole = [filled(z) for z in self._columns_of(data, counted)]
        self.season_ = choose_season(self.season, data.calendar.season, whole)
        self.sequence_ = dynamics is None and (self.context is not None or as_network(self.network).any_length)
        if dynamics is not None:
            self.lags_ = dynamics.lags(self.season_)
            self._refuse_covariates(data, repr(dynamics))
            times = np.repeat(np.ones(len(data)) if weight is None else weight, len(data.channels))
            self.parts_ = fit_dynamics(dynamics, self._columns_of(data), self.season_, times)
            return self
        asked = self.lags if self.context is None else self.context
        self.lags_ = choose_lags(asked, self.season_, whole, self.horizon)
        if self.sequence_:
            self.lags_ = tuple(range(1, max(self.lags_) + 1))
            if self.horizon:
                self._refuse_covariates(data, "a sequence with a horizon")
        counted_times = None if weight is None else np.repeat(weight, len(data.channels))
        self.parts_ = fit_network(self, self._rows(data), counted_times)
        return self

    def _refuse_covariates(self, data: Series, what: str) -> None:
        if data.known[0].shape[1]:
            raise SpecError(f"covariates={self.covariates!r}: {what} has no place for covariates; leave them out.")

    def _warn_of_constants(self, bent: list[np.ndarray]) -> None:
        for i, values in enumerate(bent):
            still = np.nanmax(values, 0) == np.nanmin(values, 0)
            if still.any():
                name = f"Series {self.series_.names[i]!r}" if len(bent) > 1 else "The series"
                warnings.warn(
                    f"{name} is constant in channel {self.series_.channels[int(still.argmax())]!r}: its forecast is "
                    "that constant, with next to no width.",
                    LikelyWarning,
                    stacklevel=4,
                )

    def _columns(self) -> Columns:
        return Columns(self.date, self.target, self.series, self.covariates)

    # --- units ---------------------------------------------------------------------------------------------------
    def _scale(self, data: Series, row: int, channel: int, end: int | None = None) -> Scale:
        """The scale of one channel: that of the fit, or its own where series come as a list."""
        if not data.listed:
            return Scale(self.transform_, self.location_[channel], self.scale_[channel])
        location, scale = units_of(Scale(self.transform_).forward(data.values[row][:end, channel : channel + 1]))
        return Scale(self.transform_, location[0], scale[0])

    def _columns_of(self, data: Series, rows: Any = None) -> list[np.ndarray]:
        """Every channel of every series in units of the model, (T,)."""
        rows = range(len(data)) if rows is None else rows
        channels = range(len(data.channels))
        return [self._scale(data, row, c).forward(data.values[row][:, c]) for row in rows for c in channels]

    def _rows(self, data: Series) -> Rows:
        values = self._columns_of(data)
        whole = [filled(z, self.season_) for z in values]
        known = [own for own in data.known for _ in data.channels]
        raw = [own[:, c] for own in data.values for c in range(len(data.channels))]
        targets = None if self.real_ else raw
        return training_rows(values, whole, known, self.lags_, self.horizon, self.sequence_, targets)

    # --- questions ----------------------------------------------------------------------------------------------
    def predict(self, steps: int = 1, series: Any = None, future: Any = None) -> np.ndarray:
        """The mean of each of the next steps, (steps,), (steps, channels) or (series, steps, …).

        They follow the series of the fit, or `series`. `future` gives covariates of these steps, one row for each.
        """
        return np.ascontiguousarray(self.predict_dist(steps, series, future).mean.numpy())

    def predict_dist(self, steps: int = 1, series: Any = None, future: Any = None) -> Distribution:
        """The distribution of each of the next steps, a torch distribution of the batch shape of `predict`."""
        data, places = self._asked(steps, series, future)
        return self._shaped(data, self._ahead(places, places.shape))

    def predict_interval(
        self, steps: int = 1, level: float = 0.9, series: Any = None, future: Any = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """The central interval that holds each step with probability `level`: arrays (lower, upper)."""
        check_level(level)
        distribution = self.predict_dist(steps, series, future)
        lower, upper = _quantiles(distribution, np.array([(1 - level) / 2, (1 + level) / 2]))
        return lower, upper

    def sample(
        self, n: int = 1, condition: Any = None, random_state: Any = None, *, steps: int = 1, future: Any = None
    ) -> np.ndarray:
        """n paths of the next steps together: (n, steps), (n, steps, channels) or (n, series, steps, …).

        They follow the series of the fit, or the one given as `condition`.
        """
        check_is_fitted(self)
        count = count_of(n)
        data, places = self._asked(steps, condition, future)
        with threads_for(SMALL):
            drawn = self._engine(places).paths(places.past, places.total, count, self._seed(random_state))
        drawn = np.take_along_axis(drawn, np.broadcast_to(places.which, (count, *places.which.shape)), 2)
        drawn = places.back(drawn) if self.real_ else drawn
        split = drawn.reshape(count, len(data), len(data.channels), steps).swapaxes(2, 3)
        return np.ascontiguousarray(data.shaped(split))

    def predict_frame(self, steps: int = 1, level: float = 0.9, series: Any = None, future: Any = None) -> Any:
        """A table of the next steps: date, series, and mean, lower and upper end of each target."""
        data, _ = self._asked(steps, series, future)
        mean = self.predict(steps, series, future)
        lower, upper = self.predict_interval(steps, level, series, future)
        whole = (len(data), steps, len(data.channels))
        return frame_of(data, self._columns(), *(part.reshape(whole) for part in (mean, lower, upper)))

    def log_prob(self, series: Any) -> np.ndarray:
        """log p(series | its first values) of each series, (n,): of each step given those before it; gaps count 0."""
        check_is_fitted(self)
        data = self._read(series)
        channels, answer = len(data.channels), np.zeros(len(data))
        with threads_for(SMALL):
            steps = self._step_log_prob(data)
        for i in range(len(data) * channels):
            row, channel = divmod(i, channels)
            values = data.values[row][:, channel]
            slope = self._scale(data, row, channel).log_slope(np.where(np.isnan(values), 1.0, values))
            counted = ~np.isnan(steps[i]) & ~np.isnan(values)
            answer[row] += (steps[i] + (slope if self.real_ else 0.0))[counted].sum()
        return answer

    def _step_log_prob(self, data: Series) -> list[np.ndarray]:
        """log p of each step of each channel of each series, in units of the model; NaN where there is none."""
        values, parts = self._columns_of(data), self.parts_
        if "regressor" not in parts:
            engine = engine_of(self, lambda own: own)
            if hasattr(engine, "step_log_prob"):
                return [engine.step_log_prob(own) for own in values]
            (lag,), out = self.lags_, [np.full(len(own), np.nan) for own in values]
            for own, log_prob in zip(values, out, strict=True):
                if len(own) > lag:
                    away = (own[lag:] - own[:-lag] - engine.bias[0]) / engine.scale[0]
                    log_prob[lag:] = -0.5 * away**2 - np.log(engine.scale[0] * np.sqrt(2 * np.pi))
            return out
        rows, out = self._rows(data), [np.full(len(own), np.nan) for own in values]
        if len(rows.x):
            regressor = parts["regressor"]
            first = rows.y[:, 0] if self.horizon else rows.y
            if self.horizon:
                x = torch.from_numpy(rows.x).to(regressor.posterior_.dtype)
                whole = regressor.posterior_.predictive(regressor.likelihood_, x)
                nearest = remade(whole, lambda value: value[:, 0].double())
                log_prob = nearest.log_prob(torch.from_numpy(np.where(np.isnan(first), 0.0, first))).numpy()
            else:
                log_prob = regressor.log_prob(rows.x, first)
            for owner in range(len(values)):
                own = (rows.owner == owner) & ~np.isnan(first)
                out[owner][rows.at[own]] = log_prob[own]
        return out

    def score(self, series: Any, y: Any = None, sample_weight: Any = None) -> float:
        """The mean of log p over the series."""
        log_prob = self.log_prob(series)
        weight = as_weights(sample_weight, log_prob)
        return float(np.average(log_prob, weights=None if weight is None else weight.numpy()))

    def backtest(self, series: Any = None, origins: Any = 3, steps: int = 1, *, refit: bool = False) -> Backtest:
        """Forecasts from earlier origins beside what came.

        `origins` are numbers of rows known, or how many origins, `steps` apart, before the end. The fitted model
        answers for all of them in one pass; with `refit`, it is fitted anew to the rows before each origin.
        """
        check_is_fitted(self)
        data = self._read(series)
        shortest = int(data.lengths.min())
        count_of(steps, "steps")
        if is_integer(origins):
            ends = [shortest - steps * k for k in range(int(origins), 0, -1)]
        else:
            ends = [int(end) for end in np.atleast_1d(origins)]
        if not ends or min(ends) < 1 or max(ends) >= shortest:
            raise DataError(
                f"origins={origins!r}: an origin needs rows before and after it, and a series has {shortest}."
            )
        if refit:
            distributions = [self._refitted(data, end, steps) for end in ends]
            mean = np.stack([own.mean.numpy() for own in distributions])
            quantiles = np.stack([_quantiles(own) for own in distributions], 1)
        else:
            places = places_of(self, data, ends, steps, None, known=True)
            distribution = self._shaped(data, self._ahead(places, places.shape), len(ends))
            mean = distribution.mean.numpy()
            quantiles = _quantiles(distribution)
        padded = [np.pad(own, ((0, steps), (0, 0)), constant_values=np.nan) for own in data.values]
        actual = np.stack([np.stack([own[end : end + steps] for own in padded]) for end in ends])
        return Backtest(np.array(ends), data.shaped(actual), mean, quantiles)

    def _refitted(self, data: Series, end: int, steps: int) -> Distribution:
        """The forecast of a model that was fitted to the rows before an origin alone."""
        own = clone(self)._fit(data.cut(end), None)
        places = places_of(own, data, [end], steps, None, known=True)
        return own._shaped(data, own._ahead(places, places.shape))

    # --- inside -------------------------------------------------------------------------------------------------
    def _read(self, series: Any) -> Series:
        if series is None:
            return self.series_
        data = read_series(series, self._columns())
        if len(data.channels) != len(self.series_.channels):
            raise DataError(
                f"series has {len(data.channels)} channels; the model was fitted on {len(self.series_.channels)}."
            )
        if not self.real_:
            every = np.concatenate([values.ravel() for values in data.values])
            as_spec(self.likelihood, Likelihood, "likelihood").check(torch.from_numpy(every[~np.isnan(every)]))
        choose_transform(self.transform_, np.concatenate([values.ravel() for values in data.values]), self.real_)
        return data

    def _asked(self, steps: Any, series: Any, future: Any) -> tuple[Series, Places]:
        check_is_fitted(self)
        if not isinstance(steps, int | np.integer) or isinstance(steps, bool) or steps < 1:
            raise DataError(f"steps={steps!r}: how many steps ahead must be an integer above 0.")
        data = self._read(series)
        return data, places_of(self, data, None, int(steps), future)

    def _engine(self, places: Places) -> Any:
        return engine_of(self, places.encode)

    def _ahead(self, places: Places, shape: tuple[int, ...]) -> Distribution:
        """The distributions at these places, (places, series, channels, steps), on the scale of the data."""
        with threads_for(SMALL):
            distribution = self._engine(places).ahead(places.past, places.total, self.seed_)
        rows, index = torch.arange(len(places.which))[:, None], torch.from_numpy(places.which)
        near = remade(distribution, lambda value: value[rows, index])
        if self.real_:
            near = mapped(
                near, Scale(self.transform_, torch.from_numpy(places.location), torch.from_numpy(places.scale))
            )
        return remade(near, lambda value: value.reshape(*shape, *value.shape[2:]))  # type: ignore[no-any-return]

    def _shaped(self, data: Series, distribution: Distribution, places: int = 0) -> Distribution:
        """Batch (places, series, channels, steps) as the series have it: with places only where there are several."""

        def change(value: Tensor) -> Tensor:
            value = value.movedim(2, 3)
            value = value[:, :, :, 0] if data.flat else value
            value = value if data.listed else value[:, 0]
            return value if places else value[0]

        return remade(distribution, change)  # type: ignore[no-any-return]

    def __sklearn_is_fitted__(self) -> bool:
        return "parts_" in self.__dict__

    def _state(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        return state_of(self)

    def _restore(self, learned: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
        restore(self, learned, tensors)


def _quantiles(distribution: Distribution, levels: np.ndarray = LEVELS) -> np.ndarray:
    """All of them at once, (levels, …)."""
    p = torch.from_numpy(levels).reshape(-1, *[1] * len(distribution.batch_shape))
    return quantile(distribution, p).numpy()
