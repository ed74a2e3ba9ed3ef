"""The linear-Gaussian model of rows: what `PCA` and `FactorAnalysis` share.

x = Wz + μ + ε,   z ~ Normal(0, I),   ε ~ Normal(0, Ψ),   Ψ diagonal;   so x ~ Normal(μ, WWᵀ + Ψ)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import numpy as np
import torch
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from torch import Tensor
from torch.distributions import MultivariateNormal

from ...core.declared import POSITIVE, Range
from ...core.draws import count_of, form_of, in_form
from ...core.errors import DataError, ModelFileError
from ...core.random import spread
from ...core.threads import threads_for
from ...core.validation import as_rows, as_weights
from ...inference.latent.latent import LatentFit, Params
from ..averaged import Averaged, by_member, weights_given
from .blocks import ROWS, Block, blocks, has_missing
from .density import Inferred, LinearGaussian

__all__ = ["LinearGaussianModel", "signed"]

MOST = 1 << 21
"""Numbers in one array over rows, draws and columns."""


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
        value = torch.empty(len(x), dtype=torch.float64)
        for block, given in _inferred(_planes(draws[0]), x):
            value[block.rows] = (_log_prob(block, given) + draws[1]).logsumexp(-1)
        return value.numpy()

    def _keep_members(self, fit: LatentFit, restored: Callable[[Params], LinearGaussian]) -> None:
        """Draws of W, μ and Ψ in the units of the data."""
        if fit.members is not None:
            model = restored(fit.members)
            fit.members |= {"loadings": model.loadings, "mean": model.mean, "noise": model.noise}
        self._keep_draws(fit)

    def _draw_ranges(self) -> dict[str, Range]:
        return {"noise": POSITIVE}

    def _check_learned(self) -> None:
        super()._check_learned()
        density = self._density()
        if bool((density.noise == 0).any()):  # a plane, which has no density
            return
        try:
            sound = bool(density.log_prob(density.mean.unsqueeze(0)).isfinite().all())
        except torch.linalg.LinAlgError:  # type: ignore[attr-defined]
            sound = False
        if not sound:
            raise ModelFileError(
                f"{type(self).__name__}'s loadings and noise in this file are so far apart in size that the covariance "
                "of the rows has no finite determinant."
            )

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
        x = self._rows(X)
        if draws is None:
            return in_form(self._expected(x).numpy(), form_of(X), getattr(self, "feature_names_in_", None))
        return self._completed(x, count_of(draws, "draws"), self._seed(random_state))[0].numpy()

    def _expected(self, x: Tensor) -> Tensor:
        """x with missing values at E[missing | seen], over all draws."""
        draws = self._draws()
        if draws is None:
            return self._density().impute(x)
        filled, planes = x.double().clone(), _planes(draws[0])
        for block, given in _inferred(planes, x) if has_missing(x) else ():
            guess = planes.mean.unsqueeze(-2) + given.mean @ planes.loadings.mT  # (S, m, d)
            average = torch.einsum("ms,smd->md", weights_given(_log_prob(block, given), draws[1]), guess)
            rows = filled[block.rows]
            filled[block.rows] = torch.where(rows.isnan(), average, rows)
        return filled

    def _completed(self, x: Tensor, count: int, seed: int) -> tuple[Tensor, Tensor]:
        """x with missing values drawn, (count, n, d), each row by a draw of the parameters; and the codes (…, k)."""
        density, draws = self._density(), self._draws()
        rows = x.new_empty(count, *x.shape, dtype=torch.float64)
        codes = rows.new_empty(count, len(x), density.loadings.shape[-1])
        weights = torch.ones(len(x), 1)
        if draws is not None:
            weights = torch.empty(len(x), len(draws[1]), dtype=torch.float64)
            for block, given in _inferred(_planes(draws[0]), x):
                weights[block.rows] = weights_given(_log_prob(block, given), draws[1])
        seeds = spread(seed, 4 + weights.shape[1])[4:]
        for member, times, chosen in by_member(weights, count, seed):
            plane = density if draws is None else _planes({name: value[member] for name, value in draws[0].items()})
            rows[times, chosen], codes[times, chosen] = plane.fill(x[chosen], seeds[member])
        return rows, codes

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
            rows, code = (part[:, 0] for part in self._completed(given, count, seed))
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


def _planes(params: Params) -> LinearGaussian:
    """The model of one draw, or those of all draws side by side."""
    return LinearGaussian(params["loadings"], params["mean"], params["noise"])


def _inferred(planes: LinearGaussian, x: Tensor) -> Iterator[tuple[Block, Inferred]]:
    """Blocks of rows with all that the planes of all draws say of them: smaller blocks where there are more draws."""
    draws, d, k = planes.loadings.shape
    for block in blocks(x, min(ROWS, max(1, MOST // (draws * max(d, k * k))))):
        with threads_for(len(block.values) * planes.loadings.numel()):
            given = planes.infer(block)
        yield block, given


def _log_prob(block: Block, given: Inferred) -> Tensor:
    """log p(seen | θₛ) of each row, (m, S)."""
    return -0.5 * (given.energy + given.log_det[..., block.owner]).mT


def signed(directions: np.ndarray) -> np.ndarray:
    """Rows with their signs chosen: the entry of the largest size is positive, as in scikit-learn.

    >>> signed(np.array([[0.6, -0.8], [0.8, 0.6]])).tolist()
    [[-0.6, 0.8], [0.8, 0.6]]
    """
    largest = np.abs(directions).argmax(1)
    sign = np.sign(directions[np.arange(len(directions)), largest])
    return directions * np.where(sign == 0, 1.0, sign)[:, None]
