"""Standard errors of the terms of a linear model at its maximum, and how well it fits.

    se² = diag C A⁻¹ Cᵀ of the observed information A, or diag C A⁻¹BA⁻¹ Cᵀ (robust; `inference/linear/information.py`)

AIC and BIC count what the columns can tell apart, rank [X, 1] for each number of η, and the learned constants.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ...core.errors import DataError, SpecError
from ...inference.linear.design import Design, Regression
from ...inference.linear.information import Information, information, meat, pseudo_inverse
from .terms import Columns, contrast_of, is_softmax

__all__ = ["Found", "found_by", "gain_of", "groups_of"]


@dataclass(frozen=True)
class Found:
    """What the rows say of the terms, over all outputs."""

    errors: np.ndarray
    raw_errors: np.ndarray | None
    """In units of the raw columns, where a table made X."""
    df: float
    facts: dict[str, float]
    coefficients: int
    """Of the first output, without those that others determine."""
    gain: float
    """What a Newton step would add to the log-likelihood: 0 at its maximum."""


def found_by(
    model: Any,
    design: Design,
    errors: str = "model",
    clusters: Tensor | None = None,
    columns: Columns | None = None,
) -> Found:
    """Standard errors of all terms at the parameters that the design has; `columns` those of a table."""
    likelihood, df = design.problem.likelihood, math.inf
    least_squares = likelihood.least_squares and likelihood.known_scale() is None
    of_outputs: list[np.ndarray] = []
    raw: list[np.ndarray] = []
    counts, parts = [], []
    for output in range(design.outputs):
        regression = design.regression(output)
        part = information(regression, likelihood)
        _check_curvature(model, design, part)
        covariance, null = pseudo_inverse(part.matrix)
        coefficients = _coefficients(model, regression)
        counted = coefficients + (0 if least_squares else design.shared)
        free = part.total - counted
        if errors not in ("model", "quasi"):
            covariance = _sandwich(regression, likelihood, covariance, errors, clusters, part.total, free)
        elif least_squares:  # σ² by its unbiased estimate, as in every table of a regression
            covariance = covariance * (part.total / free if free > 0 else math.nan)
            df = float(free) if free > 0 else math.inf
        of_outputs.append(_errors(contrast_of(model, design, output), covariance, null))
        if columns is not None:
            raw.append(_errors(contrast_of(model, design, output, columns), covariance, null))
        parts.append(part)
        counts.append((coefficients, counted))
    log_likelihood, total = sum(part.log_likelihood for part in parts), parts[0].total
    number = sum(counted for _, counted in counts)
    facts = {
        "rows": total,
        "log_likelihood": log_likelihood,
        "aic": 2 * number - 2 * log_likelihood,
        "bic": number * math.log(total) - 2 * log_likelihood,
    }
    in_raw = np.concatenate(raw) if raw else None
    return Found(np.concatenate(of_outputs), in_raw, df, facts, counts[0][0], max(map(gain_of, parts)))


def gain_of(part: Information) -> float:
    """½ gᵀA⁻¹g: what a Newton step would add to the log-likelihood.

    >>> one = torch.ones(1, dtype=torch.float64)
    >>> gain_of(Information(4 * one[None], 2 * one, 0.0, 1.0))
    0.5
    """
    inverse, _ = pseudo_inverse(part.matrix)
    return 0.5 * float(part.gradient @ inverse @ part.gradient)


def groups_of(clusters: Any, rows: int) -> Tensor:
    """The number of each row's cluster, from 0."""
    if clusters is None:
        raise DataError('errors="cluster" needs clusters=, a label for each row.')
    labels = clusters.to_list() if hasattr(clusters, "to_list") else list(np.asarray(clusters, dtype=object))
    gap = next((row for row, label in enumerate(labels) if _is_gap(label)), None)
    if gap is not None:
        raise DataError(
            f"clusters has no label at row {gap} (found {labels[gap]!r}): every row belongs to a cluster. Leave such "
            "rows out of the fit, or give each a label of its own."
        )
    if len(labels) != rows:
        raise DataError(f"clusters has {len(labels)} labels; X has {rows} rows.")
    try:
        numbers: dict[Any, int] = {}
        index = [numbers.setdefault(label, len(numbers)) for label in labels]
    except TypeError as error:
        raise DataError("clusters must be one label for each row, such as a text or an integer.") from error
    if len(numbers) < 2:
        raise DataError("clusters has one label only; robust errors need several groups.")
    return torch.tensor(index)


def _is_gap(label: Any) -> bool:
    """None, NaN, or what a frame has in the place of a missing value."""
    return (
        label is None
        or type(label).__name__ in ("NAType", "NaTType")
        or bool(isinstance(label, float) and label != label)
    )


def _coefficients(model: Any, regression: Regression) -> int:
    """How many coefficients the columns can tell apart, whatever their values: rank [X, 1] for each number of η.

    Of several classes one is the reference, and the cut points of an ordinal model take the place of its intercept.
    """
    ordered, own = model.likelihood_.ordered, regression.design.layer.out_features // regression.design.outputs
    gram: Any = 0.0
    for x, _, weight in regression.blocks():
        rows = x.double()
        rows = torch.cat([rows, torch.ones_like(rows[:, :1])], 1) if regression.bias or ordered else rows
        gram = gram + rows.T @ (rows if weight is None else rows * weight.double().unsqueeze(-1))
    rank = len(gram) - pseudo_inverse(gram)[1].shape[1] - int(ordered)
    return rank * (own - int(is_softmax(model, own)))


def _check_curvature(model: Any, design: Design, part: Information) -> None:
    """A log-likelihood made of straight lines has no curvature, so that its information says nothing."""
    if bool(part.matrix.diagonal()[: design.parameters - design.shared].any()):
        return
    raise SpecError(
        f"summary() has no standard errors for {model.likelihood_!r}: the log-likelihood has no curvature in the "
        "coefficients, so the observed information, which the errors come from, is 0. The estimates are coef_ and "
        "intercept_; for their errors fit to resampled rows (bootstrap)."
    )


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


def _errors(contrast: Tensor, covariance: Tensor, null: Tensor) -> np.ndarray:
    """Standard errors of the terms of one regression; NaN where the rows do not determine a term."""
    variance = ((contrast @ covariance) * contrast).sum(-1).clamp_min(0)
    if null.shape[1]:
        moved = (contrast @ null).abs().amax(-1) > 1e-6 * null.abs().amax() * contrast.abs().amax(-1)
        variance = torch.where(moved, math.nan, variance)
    return variance.sqrt().numpy()
