"""What a model with a linear network tells of its coefficients."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted

from ...inference import Posterior
from ...likelihoods import Likelihood, Target
from .coefficients import summarise
from .constants import constants_of
from .summary import Summary
from .terms import Columns

__all__ = ["LinearReports"]


class LinearReports:
    """`coef_`, `intercept_` and `summary()` of an estimator whose network may be linear; `constants_` of any."""

    posterior_: Posterior
    likelihood_: Likelihood
    target_: Target
    plan_: Any
    raw_columns_: Columns | None = None
    """The columns behind X, where a table made them."""

    @property
    def constants_(self) -> dict[str, float]:
        """What the likelihood learned that does not depend on x, averaged over the posterior.

        The scale of a Normal, the dispersion of counts, degrees of freedom, the probability of extra zeros, the cut
        points of an Ordinal.
        """
        check_is_fitted(self)
        return constants_of(self, self.posterior_)

    @property
    def coef_(self) -> np.ndarray:
        """The weights of a linear network, averaged over the posterior: (features,), or (k, features) for k numbers."""
        return self._linear_part("weight")

    @property
    def intercept_(self) -> np.ndarray:
        """The biases of a linear network, averaged over the posterior."""
        return self._linear_part("bias")

    def _linear_part(self, name: str) -> np.ndarray:
        parameters = self.posterior_.parameters if hasattr(self, "posterior_") else {}
        if not parameters or not self.plan_.linear:
            raise AttributeError(f"{type(self).__name__} has coefficients once it is fitted with a linear network.")
        stored = parameters.get(f"network.{name}")
        weight = parameters["network.weight"]
        value = weight.new_zeros(weight.shape[:2]) if stored is None else stored  # no bias: 0
        mean = torch.tensordot(self.posterior_.weights.to(value), value, 1)
        return (mean[0] if len(mean) == 1 and not self.likelihood_.labels else mean).cpu().numpy()

    def summary(
        self,
        X: Any = None,
        y: Any = None,
        sample_weight: Any = None,
        *,
        errors: str = "model",
        clusters: Any = None,
        level: float = 0.95,
        offset: Any = None,
        exposure: Any = None,
    ) -> Summary:
        """The table of a linear model: estimates, standard errors, tests and intervals, or posterior quantiles.

        Parameters
        ----------
        X, y, sample_weight, offset, exposure : the rows of the fit, or X is its `likely.formula`; needed where there
            are many, for robust `errors`, and for deviance and dispersion. Weights are frequencies: a row of weight 2
            counts as two, in the standard errors and in the number of rows too.
        errors : "model", by the observed information; "HC0", "HC1", "HC2", "HC3", which hold where the noise is uneven;
            "quasi" for counts that vary more than a Poisson's, times the square root of the dispersion.
        clusters : a label for each row, (n,): rows of one label may depend on each other.
        level : the probability of the intervals.

        Returns
        -------
        A `Summary`: `print` it, or `to_frame()`, `to_latex()`.

        Coefficients of several classes are told against the first class. AIC and BIC count coefficients and learned
        constants, but not the σ of a Normal. Networks that are not linear have no such table, nor has an estimate
        under a prior, one that training left short of the maximum, a likelihood without curvature (`Laplace`), or a set
        of fits that is no posterior (`Ensemble`).
        """
        check_is_fitted(self)
        return summarise(self, X, y, sample_weight, errors, clusters, level, offset=offset, exposure=exposure)
