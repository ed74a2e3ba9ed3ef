"""The linear-Gaussian model of rows: what `PCA` and `FactorAnalysis` share.

x = Wz + μ + ε,   z ~ Normal(0, I),   ε ~ Normal(0, Ψ),   Ψ diagonal;   so x ~ Normal(μ, WWᵀ + Ψ)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
import torch
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from torch import Tensor
from torch.distributions import MultivariateNormal

from ...core.draws import count_of, form_of, in_form
from ...core.errors import DataError
from ...core.random import spread
from ...core.threads import threads_for
from ...core.validation import as_rows, as_weights
from ...inference.latent.latent import LatentFit, Params
from ..averaged import Averaged
from .blocks import ROWS, blocks
from .density import LinearGaussian

__all__ = ["LinearGaussianModel", "signed"]


class LinearGaussianModel(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Averaged):
    """What a fitted linear-Gaussian model answers. A subclass gives its density in `_density`."""

    log_prob_kind_: ClassVar[str] = "exact"
    random_state: Any
    form_: str

    def _density(self) -> LinearGaussian:
        raise NotImplementedError(f"{type(self).__name__} must give its density")

    def log_prob(self, X: Any) -> np.ndarray:
        """log p(x) of each row; missing values are marginalised."""
        x, draws = self._rows(X), self._draws()
        if draws is None:
            return self._density().log_prob(x).numpy()
        members, log_weights = draws
        models = LinearGaussian(members["loadings"], members["mean"], members["noise"])
        value = torch.empty(len(x), dtype=torch.float64)
        with threads_for(min(len(x), ROWS) * models.loadings.numel()):
            for block in blocks(x):
                given = models.infer(block)
                log_prob = -0.5 * (given.energy + given.log_det[..., block.owner])  # (S, m)
                value[block.rows] = (log_prob + log_weights.unsqueeze(-1)).logsumexp(0)
        return value.numpy()

    def _keep_members(self, fit: LatentFit, restored: Callable[[Params], LinearGaussian]) -> None:
        """Draws of W, μ and Ψ in the units of the data."""
        if fit.members is not None:
            model = restored(fit.members)
            fit.members |= {"loadings": model.loadings, "mean": model.mean, "noise": model.noise}
        self._keep_draws(fit)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """The mean of log p(x), in nats per row."""
        log_prob = self.log_prob(X)
        weight = as_weights(sample_weight, torch.from_numpy(log_prob))
        return float(np.average(log_prob, weights=None if weight is None else weight.numpy()))

    def posterior(self, X: Any) -> MultivariateNormal:
        """The distribution of the latent code z of each row, given its known values."""
        x, density = self._rows(X), self._density()
        if bool((density.noise == 0).any()):
            raise DataError(
                f"The noise variance is 0: the components explain all variance, so that z is a point and has no "
                f"density; use transform, or take fewer n_components than {density.loadings.shape[1]}."
            )
        mean, root = density.posterior(x)
        return MultivariateNormal(mean, scale_tril=root)

    def impute(self, X: Any, draws: int | None = None, random_state: Any = None) -> Any:
        """X with each missing value at its mean given the known values of its row; a frame in, a frame out.

        With `draws`, so many draws of it instead: (draws, n, d).
        """
        x, density = self._rows(X), self._density()
        if draws is None:
            return in_form(density.impute(x).numpy(), form_of(X), getattr(self, "feature_names_in_", None))
        seeds = spread(self._seed(random_state), count_of(draws, "draws"))
        return np.stack([density.fill(x, seed)[0].numpy() for seed in seeds])

    def sample(
        self, n: int = 1, condition: Any = None, random_state: Any = None, *, return_hidden: bool = False
    ) -> Any:
        """n new rows (n, d), a frame if the model was fitted to one; with `return_hidden` also their codes z (n, k).

        `condition` is one row with NaN for what is to be drawn given its other values.
        """
        self._check_fitted()
        count, seed, density = count_of(n), self._seed(random_state), self._density()
        if condition is None:
            chosen, draws = self._members_of(count, seed), self._draws()
            if chosen is not None and draws is not None:  # a plane of its own for each row
                density = LinearGaussian(*(draws[0][name][chosen] for name in ("loadings", "mean", "noise")))
            rows, code = density.draw(count, seed)
        else:
            given = self._rows(condition)
            if len(given) != 1:
                raise DataError(f"condition has {len(given)} rows; it is one row, with NaN for what is to be drawn.")
            rows, code = density.fill(given.expand(count, -1), seed)
        drawn = in_form(rows.numpy(), self.form_, getattr(self, "feature_names_in_", None))
        return (drawn, code.numpy()) if return_hidden else drawn

    def get_covariance(self) -> np.ndarray:
        """The covariance WWᵀ + Ψ of the rows."""
        self._check_fitted()
        return self._density().covariance().numpy()

    def _rows(self, X: Any, *, reset: bool = False) -> Tensor:
        if not reset:
            self._check_fitted()
        rows = as_rows(self, X, reset=reset, missing=True)
        if reset:
            self.form_ = form_of(X)
        name = type(self).__name__
        if rows.ndim != 2:
            raise DataError(f"X has shape {tuple(rows.shape)}; {name} needs one vector for each row: (n, d).")
        if reset and len(rows) < 2:
            raise DataError(f"X has 1 sample; {name} needs at least 2 to see how they vary.")
        return rows

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


def signed(directions: np.ndarray) -> np.ndarray:
    """Rows with their signs chosen: the entry of the largest size is positive, as in scikit-learn.

    >>> signed(np.array([[0.6, -0.8], [0.8, 0.6]])).tolist()
    [[-0.6, 0.8], [0.8, 0.6]]
    """
    largest = np.abs(directions).argmax(1)
    sign = np.sign(directions[np.arange(len(directions)), largest])
    return directions * np.where(sign == 0, 1.0, sign)[:, None]
