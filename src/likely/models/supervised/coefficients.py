"""How sure the coefficients of a fitted linear model are, as a `Summary`: from its rows, its file or its posterior.

At a maximum of the likelihood: standard errors, intervals and tests (`standard_errors.py`). For a Bayesian model: the
mean, the standard deviation and the quantiles of the posterior of each coefficient (`posterior_terms.py`).
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from scipy import stats

from ...core.errors import DataError, LikelyError, LikelyWarning, ModelFileError, SpecError
from ...core.validation import check_level
from ...inference import Conditional, Posterior, Problem
from ...inference.dataset import Dataset
from ...inference.linear.design import Design
from ...likelihoods.offset import _WithOffset
from ...priors import Flat
from .fit_measures import measures_of
from .formulas import unpacked
from .posterior_terms import constants_beside, is_bayesian, of_posterior
from .standard_errors import Found, found_by, groups_of
from .summary import Summary
from .terms import Columns, estimates, raw_columns, terms_of
from .texts import prior_of

__all__ = ["kept_summary", "recorded", "summarise"]

ERRORS = ("model", "quasi", "HC0", "HC1", "HC2", "HC3", "cluster")
WORK = 1 << 25
"""Rows × parameters² up to which a fit also finds standard errors: some milliseconds."""
TERMS = 1_000
"""Up to which a file holds the table, for who reads it without building the model."""
AT_MAXIMUM = 5e-4
"""What a Newton step may still add to the log-likelihood, per parameter, where standard errors are told."""
MISSING = "The fit was too large to find standard errors on its way; ask summary(X, y) with its rows."


def summarise(
    model: Any,
    X: Any,
    y: Any,
    sample_weight: Any,
    errors: str,
    clusters: Any,
    level: float,
    columns: Columns | None = None,
    *,
    offset: Any = None,
    exposure: Any = None,
) -> Summary:
    """The table of a fitted model; see `Supervised.summary`. Terms are told in the units of the raw `columns`."""
    check_level(level)
    if errors not in ERRORS:
        raise SpecError(f"errors={errors!r} is not known; use one of {', '.join(map(repr, ERRORS))}.")
    if not model.plan_.linear:
        raise SpecError(
            f"summary() tells of the coefficients of a linear model; network={model.network!r} has none whose standard "
            "errors are known. Ask sklearn.inspection.permutation_importance which columns matter."
        )
    posterior = model.posterior_
    if not posterior.single:
        _check_bayesian(model, posterior)
        return of_posterior(model, posterior, float(level), columns)
    _check_prior(model)
    X, y, sample_weight, offset, exposure, clusters = unpacked(X, y, sample_weight, offset, exposure, clusters)
    if (X is None) != (y is None):
        raise DataError("summary() needs both X and y, the rows that the model was fitted on, or neither.")
    if X is not None:
        beside = {"offset": offset, "exposure": exposure}
        data = model._encode(model.likelihood_, X, y, sample_weight, torch.float64, posterior.weights.device, **beside)
        return _of_rows(model, data, errors, clusters, float(level), columns)
    if errors != "model" or clusters is not None:
        raise DataError(f"errors={errors!r} is found from the rows of the fit: summary(X, y, errors={errors!r}).")
    known = posterior.info.get("summary")
    if known is None:
        raise DataError(MISSING)
    if isinstance(known, dict) and "reason" in known:
        raise SpecError(str(known["reason"]))
    told = _errors_of(known, "standard_error" if columns is None else "raw_standard_error", terms_of(model, columns))
    return _table(model, told, known["df"], known["facts"], "model", float(level), columns)


def kept_summary(model: Any) -> dict[str, Any] | None:
    """What `summary()` tells without the rows, as plain data for a file; None where it tells nothing, or very much."""
    if not model.plan_.linear or len(terms_of(model)) > TERMS:
        return None
    try:
        return summarise(model, None, None, None, "model", None, 0.95, raw_columns(model)).to_json()
    except LikelyError:
        return None


def recorded(model: Any, problem: Problem, data: Dataset, posterior: Posterior, *, solved: bool) -> dict[str, Any]:
    """What `summary()` tells without the rows, as an entry of `posterior.info`; {} where it is not known, or not cheap.

    `data` are the rows of the fit in double precision. Unless the method `solved` for the maximum, the gradient says
    whether training came to it.
    """
    if not posterior.single or not isinstance(problem.objective, Conditional) or problem.prior != Flat():
        return {}
    parameters = sum(value[0].numel() for value in posterior.parameters.values())
    if len(data) * parameters**2 > WORK:
        return {}
    module = posterior.module_of(0).double()
    design = Design(problem.with_(data=data), module, module.linear)  # type: ignore[arg-type]
    try:
        estimates = found_by(model, design, columns=raw_columns(model))
    except SpecError as error:
        return {"summary": {"reason": str(error)}}
    if not solved and estimates.gain > AT_MAXIMUM * parameters:
        return {"summary": {"reason": _stopped(model, estimates.gain)}}
    told = {"standard_error": _plain(estimates.errors), "df": estimates.df if math.isfinite(estimates.df) else None}
    raw = {} if estimates.raw_errors is None else {"raw_standard_error": _plain(estimates.raw_errors)}
    return {"summary": told | raw | {"facts": estimates.facts}}


def _of_rows(model: Any, data: Dataset, errors: str, clusters: Any, level: float, columns: Columns | None) -> Summary:
    posterior, likelihood = model.posterior_, model.likelihood_
    paired = (
        data.y.ndim > 1 + len(data.positions) + likelihood.event_dim if data.plain and data.y is not None else False
    )
    family = _WithOffset(likelihood) if paired else likelihood
    problem = Problem(lambda seed: posterior.module, Conditional(family), Flat(), data, seed=0)
    module = posterior.module_of(0).double()
    design = Design(problem, module, module.linear)
    used = "cluster" if clusters is not None else errors
    groups = groups_of(clusters, len(data)) if used == "cluster" else None
    if errors == "quasi":
        _check_quasi(likelihood, design)
    estimates = found_by(model, design, used, groups, columns)
    _warn_of_gradient(estimates, design)
    measures = measures_of(design, likelihood, estimates.coefficients)
    scale = math.sqrt(measures["dispersion"]) if used == "quasi" else 1.0
    told = scale * (estimates.errors if estimates.raw_errors is None else estimates.raw_errors)
    df = estimates.df if used == "model" else math.inf
    return _table(model, told, df, estimates.facts | measures, used, level, columns)


def _table(
    model: Any,
    errors: np.ndarray,
    df: float | None,
    facts: Mapping[str, Any],
    kind: str,
    level: float,
    columns: Columns | None,
) -> Summary:
    df = math.inf if df is None else df
    estimate = estimates(model, model.posterior_.parameters, columns)[0].cpu().numpy()
    with np.errstate(divide="ignore", invalid="ignore"):
        statistic = estimate / errors
    reference = stats.norm if math.isinf(df) else stats.t(df)
    reach = reference.ppf(0.5 + level / 2) * errors
    p_value = 2 * reference.sf(np.abs(statistic))
    bounds = estimate - reach, estimate + reach
    beside = constants_beside(model, model.posterior_)
    terms = terms_of(model, columns)
    return Summary(terms, estimate, errors, *bounds, statistic, p_value, level, kind, df, dict(facts), beside)


def _plain(errors: np.ndarray) -> list[float | None]:
    return [value if math.isfinite(value) else None for value in errors.tolist()]


def _errors_of(known: Any, name: str, terms: tuple[str, ...]) -> np.ndarray:
    """Standard errors from a file, which may hold anything."""
    values = known.get(name) if isinstance(known, dict) else None
    if values is None and isinstance(known, dict) and "standard_error" in known:
        raise DataError("The model has no standard errors in the units of its columns; ask summary(frame) for them.")
    sound = isinstance(values, list) and all(value is None or type(value) in (int, float) for value in values)
    plain = isinstance(known, dict) and isinstance(known.get("facts"), dict)
    numbers = plain and all(type(value) in (int, float) for value in known["facts"].values())
    degrees = isinstance(known, dict) and type(known.get("df", "")) in (int, float, type(None))
    if not sound or not numbers or not degrees or len(values or ()) != len(terms):
        raise ModelFileError("The file does not fit its own specs: its standard errors are not those of its terms.")
    return np.array([math.nan if value is None else float(value) for value in values or ()])


# --- where there is no table -----------------------------------------------------------------------------------------
def _check_bayesian(model: Any, posterior: Posterior) -> None:
    if not is_bayesian(model, posterior):
        raise SpecError(
            f"inference={model.inference!r} gives several sets of parameters, but not draws from p(θ | data): how far "
            "they lie apart says how fits differ, not how sure the rows make a coefficient. Fit with the default "
            "inference for standard errors, or with Exact('full'), Laplace() or NUTS() for a posterior."
        )


def _check_prior(model: Any) -> None:
    prior = prior_of(model, None)
    if prior != Flat():
        raise SpecError(
            f"prior={prior!r} pulls the coefficients towards 0, so the errors of this estimate are not known. Fit with "
            "prior=Flat() for standard errors, or with inference=Exact('full'), Laplace() or NUTS() for a posterior."
        )


def _check_quasi(likelihood: Any, design: Design) -> None:
    told = f'errors="quasi" is for counts that vary more than a Poisson or a Binomial says; {likelihood!r}'
    if likelihood.labels:
        raise SpecError(f'{told} has labels, whose variance follows from their mean. Use errors="model" or "HC1".')
    if design.shared or likelihood.least_squares or design.layer.out_features > 1:
        raise SpecError(
            f"{told} has a scale of its own, which its standard errors account for. "
            'Use errors="model", or "HC1" for robust ones.'
        )


def _stopped(model: Any, gain: float) -> str:
    return (
        f"inference={model.inference!r} stopped short of the maximum of the log-likelihood (a Newton step would gain "
        f"{gain:.3g} nats), and standard errors hold at the maximum: train longer, or fit with inference=Newton(), "
        "which finds it."
    )


def _warn_of_gradient(told: Found, design: Design) -> None:
    """The rows must be those of the fit: there the gradient is 0, in units of what the rows tell."""
    if told.gain > AT_MAXIMUM * design.parameters:
        warnings.warn(
            f"The log-likelihood of these rows is not at its maximum (a Newton step would gain {told.gain:.3g} nats): "
            "standard errors hold for the rows and weights that the model was fitted on, to convergence.",
            LikelyWarning,
            stacklevel=5,
        )
