"""What goes on from the past: which engine a forecaster has, how it is fitted, and how a file brings it back.

naive dynamics, linear networks with normal noise   `Recursion`, in closed form
exponential smoothing                               `Smoother`, a state space
a horizon                                           `Direct`, all steps at once
anything else                                       `Simulation`, by drawn paths
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ...core.errors import DataError, LikelyWarning, ModelFileError, SpecError
from ...core.quiet import quiet
from ...core.spec import as_spec
from ...inference.linear.exact import Exact
from ...inference.predictor import is_linear
from ...likelihoods import Likelihood
from ...networks import as_network
from ...priors import Flat, Prior
from ...priors import Normal as NormalPrior
from ..supervised.regressor import Regressor
from .direct import Direct, surprise_correlation
from .dynamics import Dynamics
from .recursion import Recursion, recursion_of
from .simulation import Simulation
from .smoothing import ExponentialSmoothing, Smoother, fit_smoothing
from .windows import Rows

__all__ = [
    "as_dynamics",
    "engine_of",
    "fit_dynamics",
    "fit_network",
    "regressor_for",
    "restore_parts",
    "state_of_parts",
]

LARGE = 2_000_000
"""Numbers of a posterior covariance beyond which "auto" keeps the most probable parameters alone."""

Parts = dict[str, Any]
"""What an engine learned: "regressor", "correlation" of a direct one, or "numbers" of dynamics."""


def as_dynamics(network: Any) -> Dynamics | None:
    """The dynamics, if that is what the argument says.

    >>> as_dynamics("naive()"), as_dynamics("linear()")
    (Naive(), None)
    """
    if isinstance(network, str):
        try:
            return Dynamics.parse(network)
        except SpecError:
            return None
    return network if isinstance(network, Dynamics) else None


def regressor_for(model: Any, width: tuple[int, ...]) -> Regressor:
    """The regressor of windows that a forecaster's arguments describe."""
    network, likelihood = as_network(model.network), as_spec(model.likelihood, Likelihood, "likelihood")
    prior, inference = as_spec(model.prior, Prior, "prior"), model.inference
    if likelihood.event_dim or not likelihood.numeric:
        raise SpecError(
            f"likelihood={likelihood!r}: a forecast needs a likelihood of single numbers, such as Normal()."
        )
    if isinstance(inference, str) and inference == "auto" and likelihood.least_squares:
        closed = isinstance(prior, Flat | NormalPrior) and is_linear(network.build(width, 1))
        small = int(np.prod(width)) ** 2 * (model.horizon or 1) <= LARGE
        inference = Exact("full") if closed and small else inference
    return Regressor(likelihood, network, prior, inference, model.random_state, model.device, model.verbose)


def fit_network(model: Any, rows: Rows, weight: np.ndarray | None) -> Parts:
    """Learn the network of the windows."""
    if len(rows.x) < 2:
        raise DataError(
            f"The series leaves {len(rows.x)} windows to learn from, too short for its lags and gaps; "
            "use fewer lags or a longer series."
        )
    regressor = regressor_for(model, rows.x.shape[1:])
    with quiet(LikelyWarning, "y is "):  # a constant series has been told of, by its name
        regressor.fit(rows.x, rows.y, None if weight is None else weight[rows.owner])
    parts: Parts = {"regressor": regressor}
    if model.horizon:
        parts["correlation"] = surprise_correlation(regressor, rows)
    return parts


def fit_dynamics(spec: Dynamics, values: list[np.ndarray], season: int, weight: np.ndarray) -> Parts:
    """Learn the few numbers of classical dynamics: drift and σ, or fractions and σ."""
    if isinstance(spec, ExponentialSmoothing):
        smoother = fit_smoothing(spec, values, season, weight)
        return {"numbers": np.append(smoother.fractions, smoother.scale)}
    (lag,) = spec.lags(season)
    moves = [own[lag:] - own[:-lag] for own in values]
    times = np.concatenate([np.full(len(own), own_weight) for own, own_weight in zip(moves, weight, strict=True)])
    every = np.concatenate(moves)
    times, every = times[~np.isnan(every)], every[~np.isnan(every)]
    if len(every) < 2 or not times.sum():
        raise DataError(
            f"The series is too short: {spec!r} needs two or more values that lie {lag} steps apart; "
            "use another network, or a shorter season."
        )
    drift = float(np.average(every, weights=times)) if spec.drift else 0.0
    free = max(times.sum() - spec.drift, 1.0)
    scale = float(np.sqrt((times * (every - drift) ** 2).sum() / free))
    return {"numbers": np.array([drift, max(scale, 1e-9)])}


def engine_of(model: Any, encode: Callable[[np.ndarray], np.ndarray]) -> Any:
    """The engine of a fitted forecaster."""
    parts, dynamics = model.parts_, as_dynamics(model.network)
    if isinstance(dynamics, ExponentialSmoothing):
        numbers, period = parts["numbers"], model.season_ if dynamics.season else 1
        return Smoother(dynamics.trend != "none", period, numbers[:4], float(numbers[4]))
    if dynamics is not None:
        drift, scale = parts["numbers"]
        one = np.ones(1)
        return Recursion(model.lags_, one[:, None], np.empty((1, 0)), drift * one, scale * one, one)
    regressor = parts["regressor"]
    if model.horizon:
        return Direct(regressor, model.lags_, model.sequence_, parts["correlation"])
    if regressor.plan_.linear and regressor.likelihood_.least_squares and not model.sequence_:
        return recursion_of(regressor, model.lags_, model.seed_)
    return Simulation(regressor, model.lags_, model.sequence_, encode)


# --- files ------------------------------------------------------------------------------------------------------------
def state_of_parts(parts: Parts) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """What an engine learned, as plain data and tensors."""
    learned: dict[str, Any] = {}
    tensors = {name: torch.from_numpy(value) for name, value in parts.items() if isinstance(value, np.ndarray)}
    if "regressor" in parts:
        learned["regressor"], inner = parts["regressor"]._state()
        tensors |= {f"regressor.{name}": value for name, value in inner.items()}
    return learned, tensors


def restore_parts(
    model: Any, learned: Mapping[str, Any], tensors: Mapping[str, Tensor], width: tuple[int, ...]
) -> Parts:
    """The inverse of `state_of_parts`, checked against the arguments of the model."""
    dynamics = as_dynamics(model.network)
    if dynamics is not None:
        numbers = tensors["numbers"].numpy()
        size = 5 if isinstance(dynamics, ExponentialSmoothing) else 2
        if (
            numbers.shape != (size,)
            or numbers.dtype != np.float64
            or not np.isfinite(numbers).all()
            or numbers[-1] <= 0
        ):
            raise ModelFileError(f"The file does not fit its own specs: {dynamics!r} needs {size} finite numbers.")
        if size == 5 and not ((numbers[:4] >= 0) & (numbers[:4] <= 1)).all():
            raise ModelFileError("The file does not fit its own specs: fractions lie between 0 and 1.")
        return {"numbers": numbers}
    regressor = regressor_for(model, width)
    inner = {name.removeprefix("regressor."): value for name, value in tensors.items() if name.startswith("regressor.")}
    regressor._restore(learned["regressor"], inner)
    positions = (model.horizon,) if model.horizon else ()
    if regressor.in_shape_ != width or regressor.positions_ != positions:
        raise ModelFileError("The file does not fit its own specs: its windows are not those of its network.")
    parts: Parts = {"regressor": regressor}
    if model.horizon:
        correlation = tensors["correlation"].numpy()
        shape = (model.horizon, model.horizon)
        if correlation.shape != shape or correlation.dtype != np.float64 or not np.isfinite(correlation).all():
            raise ModelFileError(f"The file does not fit its own specs: correlation must be {shape} finite numbers.")
        if np.abs(correlation - correlation.T).max() > 1e-9 or np.linalg.eigvalsh(correlation).min() < -1e-6:
            raise ModelFileError("The file does not fit its own specs: correlation is not one.")
        parts["correlation"] = correlation
    return parts
