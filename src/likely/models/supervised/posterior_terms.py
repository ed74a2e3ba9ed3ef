"""The terms of a linear model under a posterior: mean, standard deviation and central interval of each.

Of draws θₛ by their weights; of a normal posterior (Student's t where σ was learned) in closed form.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from scipy import stats

from ...core.spec import as_spec
from ...inference import GaussianPosterior, Inference, Posterior
from .constants import constants_of
from .summary import Summary
from .terms import Columns, estimates, raw_map, terms_of
from .texts import is_auto

__all__ = ["constants_beside", "is_bayesian", "of_posterior"]

DRAWS = 4_000
"""Parameter vectors that tell the quantiles of a posterior which is not a set of draws."""


def is_bayesian(model: Any, posterior: Posterior) -> bool:
    """Whether its parameter vectors are p(θ | data), or an approximation of it: not those of an ensemble, say."""
    if isinstance(posterior, GaussianPosterior):
        return True
    return not is_auto(model.inference) and as_spec(model.inference, Inference, "inference").integrates


def constants_beside(model: Any, posterior: Posterior) -> dict[str, float]:
    """Learned constants that are not among the terms."""
    return {} if model.likelihood_.ordered else constants_of(model, posterior)


def of_posterior(model: Any, posterior: Posterior, level: float, columns: Columns | None = None) -> Summary:
    """Mean, standard deviation and central interval of each term."""
    if not isinstance(posterior, GaussianPosterior) and hasattr(posterior, "draw"):
        posterior = posterior.draw(DRAWS, torch.Generator().manual_seed(0))
    draws = estimates(model, posterior.parameters, columns).cpu().numpy()
    if isinstance(posterior, GaussianPosterior):
        to_raw = raw_map(model, columns)
        covariance = to_raw @ posterior.covariance.double().cpu() @ to_raw.T
        scale = covariance.diagonal(dim1=-2, dim2=-1).clamp_min(0).sqrt().flatten().numpy()
        df = posterior.degrees.repeat_interleave(len(scale) // len(posterior.degrees)).cpu().numpy()
        reach = scale * stats.t(df).ppf(0.5 + level / 2)
        spread = scale * np.sqrt(np.where(df > 2, 1 / np.maximum(1 - 2 / df, 1e-12), np.inf))
        spread = np.where(np.isinf(df), scale, spread)
        lower, upper, mean = draws[0] - reach, draws[0] + reach, draws[0]
    else:
        weights = posterior.weights.double().cpu().numpy()
        mean = weights @ draws
        spread = np.sqrt(weights @ (draws - mean) ** 2)
        lower, upper = (_quantile(draws, weights, p) for p in (0.5 - level / 2, 0.5 + level / 2))
    facts = {"log_evidence": value} if (value := posterior.info.get("log_evidence")) is not None else {}
    terms, beside = terms_of(model, columns), constants_beside(model, posterior)
    return Summary(terms, mean, spread, lower, upper, None, None, level, "posterior", facts=facts, constants=beside)


def _quantile(draws: np.ndarray, weights: np.ndarray, p: float) -> np.ndarray:
    if np.allclose(weights, weights[0]):
        return np.quantile(draws, p, axis=0)
    return np.quantile(draws, p, axis=0, weights=np.broadcast_to(weights[:, None], draws.shape), method="inverted_cdf")
