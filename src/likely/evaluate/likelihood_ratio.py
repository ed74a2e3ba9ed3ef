"""The likelihood-ratio test: do the terms that a small model leaves out belong in it?

2 (log L_large − log L_small)  ~  χ² with as many degrees of freedom as terms were left out, if they are all 0
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from scipy.stats import chi2

from ..core.errors import DataError, SpecError
from ..models.supervised.summary import Summary
from .result import Result

__all__ = ["LikelihoodRatio", "likelihood_ratio_test"]


@dataclass(frozen=True)
class LikelihoodRatio(Result):
    """The statistic, its degrees of freedom, and how probable one as large is if the small model is right."""

    statistic: float
    df: int
    p_value: float
    left_out: tuple[str, ...]

    def __str__(self) -> str:
        return f"χ² = {self.statistic:.4g} on {self.df} df, p = {self.p_value:.3g}, for {', '.join(self.left_out)}"


def likelihood_ratio_test(small: Any, large: Any) -> LikelihoodRatio:
    """Test a fitted linear model against a larger one that has all its terms, fitted on the same rows.

    Networks, priors and posteriors are refused: their log-likelihood is not at its maximum, which the χ² distribution
    rests on.

    Parameters
    ----------
    small, large : fitted models, or the `summary(X, y)` of fits too large to keep what the test needs.

    Returns
    -------
    A `LikelihoodRatio`: `statistic` 2 (log L₁ − log L₀), `df` the number of terms that the small model lacks, and
    `p_value`.

    See also
    --------
    Regressor.summary : tests of single coefficients. compare : models that are not nested, by rows left out.

    >>> import numpy as np
    >>> from likely import Regressor
    >>> X, y = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 2.0], [3.0, 1.0], [4.0, 0.0]]), [0.1, 0.9, 2.2, 2.8, 4.1]
    >>> print(likelihood_ratio_test(Regressor().fit(X[:, :1], y), Regressor().fit(X, y)))
    χ² = 0.8282 on 1 df, p = 0.363, for x1
    """
    _check_families(small, large)
    first, second = _summary(small, "small"), _summary(large, "large")
    if first.facts["rows"] != second.facts["rows"]:
        raise DataError(
            f"small was fitted on {first.facts['rows']:g} rows and large on {second.facts['rows']:g}; the test "
            "compares fits of the same rows (a formula leaves out rows with a missing value)."
        )
    strange = [term for term in first.terms if term not in second.terms]
    if strange:
        raise DataError(
            f"The models are not nested: small has {strange[0]!r}, which large has not ({', '.join(second.terms)}). "
            "Compare them by AIC, BIC or evaluate.compare instead."
        )
    df = round(_parameters(second) - _parameters(first))
    if df < 1:
        raise DataError(f"large has no more parameters than small ({_parameters(first):g}); there is nothing to test.")
    statistic = 2 * (second.facts["log_likelihood"] - first.facts["log_likelihood"])
    if statistic < -1e-6 * (1 + abs(second.facts["log_likelihood"])):
        raise DataError(
            f"large explains the rows worse than small (log-likelihood {second.facts['log_likelihood']:.6g} against "
            f"{first.facts['log_likelihood']:.6g}), so the models are not nested: are their rows, targets and "
            "weights the same?"
        )
    statistic = max(0.0, statistic)
    left_out = tuple(term for term in second.terms if term not in first.terms)
    return LikelihoodRatio(statistic, df, float(chi2.sf(statistic, df)), left_out)


def _check_families(small: Any, large: Any) -> None:
    """Different families are not nested, or at an edge where the statistic is not χ²."""
    families = [getattr(model, "likelihood_", None) for model in (small, large)]
    if None not in families and families[0] != families[1]:
        raise DataError(
            f"small has likelihood={families[0]!r} and large {families[1]!r}: the test is about terms of one family. "
            "Compare families by AIC, BIC or evaluate.compare."
        )
    offsets = [bool(getattr(model, "offset_", False)) for model in (small, large)]
    if offsets[0] != offsets[1]:
        raise DataError("One of the models was fitted with an offset or an exposure and the other without.")


def _summary(model: Any, name: str) -> Summary:
    if isinstance(model, Summary):
        told = model
    elif hasattr(model, "summary"):
        told = model.summary()
    else:
        raise SpecError(f"{name} must be a fitted Regressor or Classifier; found a {type(model).__name__}.")
    if "log_likelihood" not in told.facts:
        raise SpecError(f"{name} is a posterior, whose evidence speaks for it; a likelihood-ratio test needs maxima.")
    return told


def _parameters(told: Summary) -> float:
    return told.facts["aic"] / 2 + told.facts["log_likelihood"]
