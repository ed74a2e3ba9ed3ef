"""How sure the coefficients of a fitted linear model are, as a `Summary`.

    se² = diag A⁻¹ of the observed information, or diag A⁻¹BA⁻¹ (robust; `inference/linear/information.py`)

For a Bayesian model: the mean, the standard deviation and the quantiles of the posterior of each coefficient.
"""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import torch
from scipy import stats
from torch import Tensor

from ...core.errors import DataError, LikelyWarning, ModelFileError, SpecError
from ...core.validation import check_level
from ...inference import Conditional, GaussianPosterior, Posterior, Problem
from ...inference.dataset import Dataset
from ...inference.linear.design import Design, Regression
from ...inference.linear.information import Information, information, meat, pseudo_inverse
from ...likelihoods.offset import _WithOffset
from ...likelihoods.ordinal import cut_points
from ...priors import Flat
from .constants import constants_of
from .fit_measures import deviance_of, dispersion_of
from .summary import Summary
from .texts import prior_of

__all__ = ["Columns", "recorded", "summarise"]

ERRORS = ("model", "quasi", "HC0", "HC1", "HC2", "HC3", "cluster")
DRAWS = 4_000
"""Parameter vectors that tell the quantiles of a posterior which is not a set of draws."""
WORK = 1 << 25
"""Rows × parameters² up to which a fit also finds standard errors: some milliseconds."""


class Columns(NamedTuple):
    """What the columns of X are called, and the unit that each is measured in: x = raw / unit."""

    names: list[str]
    units: np.ndarray


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
    """The table of a fitted model; see `Supervised.summary`. Estimates are told in the units of the raw `columns`."""
    beside = {"offset": offset, "exposure": exposure}
    told = _summary(model, X, y, sample_weight, errors, clusters, level, beside)
    if columns is None:
        return told
    constants = _constants(model)
    unit = np.append(columns.units, np.ones(len(constants)))
    names = [*columns.names, *constants]
    unit = np.tile(unit, len(told.terms) // len(unit))
    heads = [term.rpartition(": ")[0] for term in told.terms]  # of a class, an output or a number of η
    terms = [f"{head}: {names[i % len(names)]}" if head else names[i % len(names)] for i, head in enumerate(heads)]
    scaled = {name: getattr(told, name) / unit for name in ("estimate", "standard_error", "lower", "upper")}
    return replace(told, terms=tuple(terms), **scaled)


def _summary(
    model: Any,
    X: Any,
    y: Any,
    sample_weight: Any,
    errors: str,
    clusters: Any,
    level: float,
    beside: Mapping[str, Any],
) -> Summary:
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
        return _of_posterior(model, posterior, float(level))
    _check_prior(model)
    if (X is None) != (y is None):
        raise DataError("summary() needs both X and y, the rows that the model was fitted on, or neither.")
    if X is not None:
        data = model._encode(model.likelihood_, X, y, sample_weight, torch.float64, posterior.weights.device, **beside)
        return _of_rows(model, data, errors, clusters, float(level))
    if errors != "model" or clusters is not None:
        raise DataError(f"errors={errors!r} is found from the rows of the fit: summary(X, y, errors={errors!r}).")
    known = posterior.info.get("summary")
    if known is None:
        raise DataError("The fit was too large to find standard errors on its way; ask summary(X, y) with its rows.")
    return _table(model, _errors_of(known, len(_terms(model))), known["df"], known["facts"], "model", float(level))


def _errors_of(known: Any, terms: int) -> np.ndarray:
    """Standard errors from a file, which may hold anything."""
    values = known.get("standard_error") if isinstance(known, dict) else None
    sound = isinstance(values, list) and all(value is None or type(value) in (int, float) for value in values)
    plain = isinstance(known, dict) and isinstance(known.get("facts"), dict)
    numbers = plain and all(type(value) in (int, float) for value in known["facts"].values())
    if (
        not sound
        or not numbers
        or len(values or ()) != terms
        or type(known.get("df", 0)) not in (int, float, type(None))
    ):
        raise ModelFileError("The file does not fit its own specs: its standard errors are not those of its terms.")
    return np.array([math.nan if value is None else float(value) for value in values or ()])


def recorded(model: Any, problem: Problem, posterior: Posterior) -> dict[str, Any] | None:
    """What `summary()` tells without the rows, for `posterior.info`; None where it is not known, or not cheap."""
    module, prior = posterior.module, problem.prior
    if (
        not model.plan_.linear
        or not posterior.single
        or prior != Flat()
        or not isinstance(problem.objective, Conditional)
    ):
        return None
    parameters = sum(value[0].numel() for value in posterior.parameters.values())
    if len(problem.data) * parameters**2 > WORK or not problem.data.plain:
        return None
    design = Design(problem, module, module.linear)  # type: ignore[arg-type]
    told = _told(model, design)
    errors = [value if math.isfinite(value) else None for value in np.concatenate(told.errors).tolist()]
    return {"standard_error": errors, "df": told.df if math.isfinite(told.df) else None, "facts": told.facts}


@dataclass(frozen=True)
class _Told:
    errors: list[np.ndarray]
    df: float
    facts: dict[str, float]
    design: Design
    parts: list[Information]


def _told(model: Any, design: Design, errors: str = "model", clusters: Tensor | None = None) -> _Told:
    """Standard errors of the terms of each regression."""
    likelihood, found, parts, df = design.problem.likelihood, [], [], math.inf
    least_squares = likelihood.least_squares and likelihood.known_scale() is None
    counted = 0
    for output in range(design.outputs):
        regression = design.regression(output)
        part = information(regression, likelihood)
        covariance, null = pseudo_inverse(part.matrix)
        rank = len(part.matrix) - null.shape[1]
        if least_squares:  # of the coefficients alone: where nothing is left over, the rows say nothing of σ either
            own = len(part.matrix) - design.shared
            rank = own - pseudo_inverse(part.matrix[:own, :own])[1].shape[1]
        free = part.total - rank
        if errors not in ("model", "quasi"):
            covariance = _sandwich(regression, likelihood, covariance, errors, clusters, part.total, free)
        elif least_squares:  # σ² by its unbiased estimate, as in every table of a regression
            covariance = covariance * (part.total / free if free > 0 else math.nan)
            df = float(free) if free > 0 else math.inf
        found.append(_errors(model, design, output, covariance, null))
        parts.append(part)
        counted += rank
    log_likelihood, total = sum(part.log_likelihood for part in parts), parts[0].total
    facts = {
        "rows": total,
        "log_likelihood": log_likelihood,
        "aic": 2 * counted - 2 * log_likelihood,
        "bic": counted * math.log(total) - 2 * log_likelihood,
    }
    return _Told(found, df, facts, design, parts)


def _sandwich(
    regression: Regression, likelihood: Any, bread: Tensor, errors: str, clusters: Tensor | None, n: float, free: float
) -> Tensor:
    if errors == "cluster":
        assert clusters is not None
        groups = int(clusters.max()) + 1
        factor = groups / (groups - 1) * (n - 1) / free
        return factor * bread @ meat(regression, likelihood, bread, "HC0", clusters) @ bread
    factor = n / free if errors == "HC1" else 1.0
    return factor * bread @ meat(regression, likelihood, bread, errors, None) @ bread  # type: ignore[arg-type]


def _of_rows(model: Any, data: Dataset, errors: str, clusters: Any, level: float) -> Summary:
    posterior, likelihood = model.posterior_, model.likelihood_
    paired = isinstance(data.y, Tensor) and data.y.ndim > 1 + len(data.positions) + likelihood.event_dim
    family = _WithOffset(likelihood) if paired else likelihood
    problem = Problem(lambda seed: posterior.module, Conditional(family), Flat(), data, seed=0)
    module = posterior.module_of(0).double()
    design = Design(problem, module, module.linear)
    groups = _groups(clusters, len(data)) if errors == "cluster" or clusters is not None else None
    if errors == "quasi" and (design.shared or likelihood.least_squares or likelihood.labels):
        raise SpecError(
            'errors="quasi" multiplies the variance of a family without a scale of its own, such as Poisson or '
            f'Binomial; {likelihood!r} has one, or has labels. Use errors="model", or "HC1" for robust ones.'
        )
    told = _told(model, design, "cluster" if groups is not None else errors, groups)
    for part in told.parts:
        _check_gradient(part)
    facts = dict(told.facts)
    facts["deviance"] = sum(deviance_of(design.regression(k), likelihood) for k in range(design.outputs))
    facts["dispersion"] = dispersion_of(design.regression(0), likelihood, len(told.errors[0]))
    used = "cluster" if groups is not None else errors
    scale = math.sqrt(facts["dispersion"]) if used == "quasi" else 1.0
    return _table(
        model, scale * np.concatenate(told.errors), told.df if errors == "model" else math.inf, facts, used, level
    )


def _groups(clusters: Any, rows: int) -> Tensor:
    if clusters is None:
        raise DataError('errors="cluster" needs clusters=, a label for each row.')
    _, index = np.unique(np.asarray(clusters), return_inverse=True)
    if index.shape != (rows,):
        raise DataError(f"clusters has {index.size} labels; X has {rows} rows.")
    if index.max() < 1:
        raise DataError("clusters has one label only; robust errors need several groups.")
    return torch.from_numpy(index)


def _check_prior(model: Any) -> None:
    prior = prior_of(model, None)
    if prior != Flat():
        raise SpecError(
            f"prior={prior!r} pulls the coefficients towards 0, so the errors of this estimate are not known. Fit with "
            "prior=Flat() for standard errors, or with inference=Exact('full'), Laplace() or NUTS() for a posterior."
        )


def _check_gradient(part: Information) -> None:
    """The rows must be those of the fit: there the gradient is 0, in units of what the rows tell."""
    inverse, _ = pseudo_inverse(part.matrix)
    steps = float(part.gradient @ inverse @ part.gradient)
    if steps > 1e-3 * len(part.gradient):
        warnings.warn(
            f"The log-likelihood of these rows is not at its maximum (a Newton step would gain {steps / 2:.3g} nats): "
            "standard errors hold for the rows and weights that the model was fitted on, to convergence.",
            LikelyWarning,
            stacklevel=4,
        )


# --- terms ------------------------------------------------------------------------------------------------------------
def _names(model: Any) -> list[str]:
    """A name for each column of the design, and then for what is not of a column."""
    width = model.posterior_.parameters["network.weight"].shape[-1]
    names = list(getattr(model, "feature_names_in_", [f"x{i}" for i in range(width)]))
    return [str(name) for name in names] + _constants(model)


def _constants(model: Any) -> list[str]:
    """What is not of a column: the intercept, or the cut points between labels in order."""
    if model.likelihood_.ordered:
        return [f"{low} | {high}" for low, high in itertools.pairwise(model.classes_)]
    return ["intercept"] * ("network.bias" in model.posterior_.parameters)


def _is_softmax(model: Any, own: int) -> bool:
    return bool(model.likelihood_.labels) and own > 1


def _terms(model: Any) -> list[str]:
    """Terms in the order of estimates: for each output, for each number of η (against the first class), each column."""
    weight = model.posterior_.parameters["network.weight"]
    outputs = math.prod(model.plan_.positions)
    own = weight.shape[1] // outputs
    if _is_softmax(model, own):
        heads = [f"{model.classes_[k]}: " for k in range(1, own)]
    else:
        heads = [""] if own == 1 else [f"η{k + 1}: " for k in range(own)]
    places = [""] if outputs == 1 else [f"y{k}: " for k in range(outputs)]
    return [place + head + name for place in places for head in heads for name in _names(model)]


def _estimates(model: Any, parameters: Mapping[str, Tensor]) -> Tensor:
    """(members, terms) from stacked weights (members, outputs · own, d) and biases (members, outputs · own)."""
    weight, bias = parameters["network.weight"].double(), parameters.get("network.bias")
    outputs = math.prod(model.plan_.positions)
    softmax = _is_softmax(model, weight.shape[1] // outputs)
    whole = weight if bias is None else torch.cat([weight, bias.double().unsqueeze(-1)], -1)
    whole = whole.unflatten(-2, (outputs, -1))
    if model.likelihood_.ordered:  # one number of η, whose intercept is part of the cut points
        cuts = cut_points(parameters["shared"].double()).reshape(len(whole), outputs, 1, -1)
        cuts = cuts if bias is None else cuts - whole[..., -1:]
        whole = torch.cat([whole[..., : weight.shape[-1]], cuts], -1)
    if softmax:
        whole = whole[..., 1:, :] - whole[..., :1, :]
    return whole.flatten(-3)


def _errors(model: Any, design: Design, output: int, covariance: Tensor, null: Tensor) -> np.ndarray:
    """Standard errors of the terms of one regression; NaN where the rows do not determine a term."""
    own = design.layer.out_features // design.outputs
    width = design.layer.in_features + int(design.layer.bias is not None)
    contrast = torch.eye(own * width, len(covariance), dtype=covariance.dtype)
    if _is_softmax(model, own):
        contrast = (contrast.unflatten(0, (own, width))[1:] - contrast.unflatten(0, (own, width))[:1]).flatten(0, 1)
    if model.likelihood_.ordered:
        contrast = _of_cuts(contrast[: design.layer.in_features], design, output)
    variance = ((contrast @ covariance) * contrast).sum(-1).clamp_min(0)
    if null.shape[1]:
        moved = (contrast @ null).abs().amax(-1) > 1e-6 * null.abs().amax()
        variance = torch.where(moved, math.nan, variance)
    return variance.sqrt().numpy()


def _of_cuts(columns: Tensor, design: Design, output: int) -> Tensor:
    """Derivatives of the coefficients and of the cut points, less the intercept, in all parameters."""
    assert design.module.shared is not None
    constants = design.module.shared.detach().view(-1, design.shared)[output].double()
    inner = torch.func.jacrev(cut_points)(constants)
    cuts = columns.new_zeros(len(inner), columns.shape[1])
    cuts[:, -design.shared :] = inner
    if design.layer.bias is not None:
        cuts[:, design.layer.in_features] = -1.0
    return torch.cat([columns, cuts])


def _table(
    model: Any, errors: np.ndarray, df: float | None, facts: Mapping[str, Any], kind: str, level: float
) -> Summary:
    df = math.inf if df is None else df
    parameters = model.posterior_.parameters
    estimate = _estimates(model, parameters)[0].cpu().numpy()
    with np.errstate(divide="ignore", invalid="ignore"):
        statistic = estimate / errors
    reference = stats.norm if math.isinf(df) else stats.t(df)
    reach = reference.ppf(0.5 + level / 2) * errors
    p_value = 2 * reference.sf(np.abs(statistic))
    bounds = estimate - reach, estimate + reach
    beside = _beside(model, model.posterior_)
    return Summary(
        tuple(_terms(model)), estimate, errors, *bounds, statistic, p_value, level, kind, df, dict(facts), beside
    )


def _beside(model: Any, posterior: Posterior) -> dict[str, float]:
    """Learned constants that are not among the terms."""
    return {} if model.likelihood_.ordered else constants_of(model, posterior)


def _of_posterior(model: Any, posterior: Posterior, level: float) -> Summary:
    """Mean, standard deviation and central interval of each coefficient."""
    if not isinstance(posterior, GaussianPosterior) and hasattr(posterior, "draw"):
        posterior = posterior.draw(DRAWS, torch.Generator().manual_seed(0))
    parameters, terms = posterior.parameters, tuple(_terms(model))
    draws = _estimates(model, parameters).cpu().numpy()
    if isinstance(posterior, GaussianPosterior):
        scale = posterior.covariance.diagonal(dim1=-2, dim2=-1).clamp_min(0).sqrt().flatten().numpy()
        df = posterior.degrees.repeat_interleave(len(scale) // len(posterior.degrees)).numpy()
        reach = scale * stats.t(df).ppf(0.5 + level / 2)
        spread = scale * np.sqrt(np.where(df > 2, df / np.maximum(df - 2, 1e-12), np.inf))
        spread = np.where(np.isinf(df), scale, spread)
        lower, upper, mean = draws[0] - reach, draws[0] + reach, draws[0]
    else:
        weights = posterior.weights.double().numpy()
        mean = weights @ draws
        spread = np.sqrt(weights @ (draws - mean) ** 2)
        lower, upper = (_quantile(draws, weights, p) for p in (0.5 - level / 2, 0.5 + level / 2))
    facts = {"log_evidence": value} if (value := posterior.info.get("log_evidence")) is not None else {}
    constants = _beside(model, posterior)
    return Summary(terms, mean, spread, lower, upper, None, None, level, "posterior", facts=facts, constants=constants)


def _quantile(draws: np.ndarray, weights: np.ndarray, p: float) -> np.ndarray:
    if np.allclose(weights, weights[0]):
        return np.quantile(draws, p, axis=0)
    return np.quantile(draws, p, axis=0, weights=np.broadcast_to(weights[:, None], draws.shape), method="inverted_cdf")
