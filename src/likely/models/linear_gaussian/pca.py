"""Principal components as a probabilistic model: the maximum likelihood of a plane with equal noise around it.

    x = Wz + μ + ε,   z ~ Normal(0, I),   ε ~ Normal(0, σ²I)

With Σ (x − μ)(x − μ)ᵀ / n = UΛUᵀ the best parameters are known (Tipping and Bishop, 1999):

    μ = mean of x,   W = U_k (Λ_k − σ²I)^½,   σ² = mean of the d − k eigenvalues that are left out

A linear autoencoder with k hidden units ends at the same plane.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import torch
from torch import Tensor

from ...core import distributed
from ...core.declared import AMOUNT, FIT, FORM, HISTORY, NOT_NEGATIVE, Array, Arrays, Values
from ...core.errors import DataError, SpecError
from ...core.interrupt import EIGEN, interruptible
from ...core.spec import as_spec
from ...core.validation import as_weights
from ...inference import Inference
from ...inference.latent.density import fit_latent
from ...inference.latent.em import EM
from ...inference.latent.latent import LatentFit, Params
from ..averaged import INFO
from .base import LinearGaussianModel, signed
from .blocks import ROWS
from .density import LinearGaussian
from .em import LinearGaussianEM

__all__ = ["PCA"]

FLOOR = 1e-10
"""The least noise variance in EM, as a fraction of the mean variance of a column."""


class PCA(LinearGaussianModel):
    """The `n_components` directions of greatest variance, and the density of rows that they give.

    `n_components` is an integer, a fraction of the variance between 0 and 1, or None for all. `transform` gives the
    classic scores Uᵀ(x − μ), divided by their standard deviations with `whiten`; `posterior` the distribution of z.
    Without missing values the fit is in closed form; with some (NaN) it is by EM (`inference`), and scores are their
    expectations.

    Learned, as in scikit-learn: `components_` = Uᵀ, `mean_`, `explained_variance_` (of the scores, divisor n − 1),
    `explained_variance_ratio_`, `singular_values_`, `n_components_`. The density's parameters are those of maximum
    likelihood (divisor n): `loadings_` = W (d, k) and `noise_variance_` = σ². With EM also `history_`, `n_iter_`,
    `converged_`, `log_likelihood_`. Weights count as repeats.

    >>> X = np.array([[0.0, 0.1], [1.0, 1.9], [2.0, 4.1], [3.0, 5.9]])
    >>> model = PCA(n_components=1).fit(X)
    >>> model.components_.round(2)
    array([[0.45, 0.89]])
    >>> bool(np.abs(model.inverse_transform(model.transform(X)) - X).max() < 0.1)
    True
    >>> model.posterior(X).mean.shape, model.log_prob([[1.0, np.nan]]).shape
    (torch.Size([4, 1]), (1,))
    """

    _arrays: ClassVar[Arrays] = {
        "components_": Array("K D"),
        "mean_": Array("D"),
        "explained_variance_": Array("K", NOT_NEGATIVE),
        "explained_variance_ratio_": Array("K", NOT_NEGATIVE),
        "singular_values_": Array("K", NOT_NEGATIVE),
        "loadings_": Array("D K"),
        "history_": HISTORY,
    }
    _values: ClassVar[Values] = {"noise_variance_": AMOUNT, **FIT, **INFO, "form_": FORM}
    history_: np.ndarray | None

    def __init__(
        self,
        n_components: int | float | None = None,
        whiten: bool = False,
        inference: Any = EM(max_iter=1000, tol=1e-8),  # noqa: B008 (a spec is a value)
        prior: Any = "auto",
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.n_components = n_components
        self.whiten = whiten
        self.inference = inference
        self.prior = prior
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the plane. Nothing of the size of X is made."""
        self._forget()
        inference = as_spec(self.inference, Inference, "inference")
        x = self._rows(X, reset=True)
        most = min(x.shape)
        _check_components(self.n_components, most, x.shape)
        weight = as_weights(sample_weight, x)
        tall = x.shape[0] >= x.shape[1]
        closed = None
        if "expectations" in inference.needs:  # EM would end at the closed form, where there is one
            closed = _tall(x, weight) if tall else _wide(x, weight, self.n_components)
        if closed is not None:
            self._keep(closed, _chosen(self.n_components, closed.values, most))
            return self
        moments, fitted = self._by_em(x, weight, inference, _chosen(self.n_components, None, most))
        size = _chosen(self.n_components, moments.values, most)
        if isinstance(self.n_components, float):
            moments, fitted = self._by_em(x, weight, inference, size)
        self._keep(moments, size)
        self.history_, self.n_iter_, self.converged_ = fitted.trace.numpy(), fitted.n_iter, fitted.converged
        self.log_likelihood_ = float(fitted.trace[-1])
        return self

    def transform(self, X: Any) -> np.ndarray:
        """The scores of each row along the components: (n, k)."""
        x = self._rows(X)
        answer = np.empty((len(x), len(self.components_)))
        shift = _shift(self.mean_, self.explained_variance_[:1])
        offset = self.components_ @ (self.mean_ - shift)
        unknown = np.zeros(len(x), dtype=bool)
        for rows, moved in _moved(x, shift, slice(0, len(x))):
            scores = np.matmul(moved, self.components_.T, out=answer[rows])
            scores -= offset
            np.isnan(scores[:, 0], out=unknown[rows])
        gone = np.flatnonzero(unknown)
        for few in np.array_split(gone, len(gone) // ROWS + 1) if len(gone) else ():
            filled = self._density().impute(x[torch.from_numpy(few)]).numpy()
            answer[few] = (filled - self.mean_) @ self.components_.T
        return answer / self._deviations() if self.whiten else answer

    def inverse_transform(self, Z: Any) -> np.ndarray:
        """The points of the plane that have these scores: (n, d)."""
        self._check_fitted()
        scores = np.asarray(Z, dtype=np.float64)
        if scores.ndim != 2 or scores.shape[1] != len(self.components_):
            raise DataError(f"Z has shape {scores.shape}; it must have {len(self.components_)} scores a row.")
        scores = scores * self._deviations() if self.whiten else scores
        return scores @ self.components_ + self.mean_

    def _dimensions(self) -> dict[str, Any]:
        fixed = {"K": self.n_components} if isinstance(self.n_components, int) else {}
        return super()._dimensions() | fixed

    @property
    def n_components_(self) -> int:
        """How many components were kept."""
        return len(self.components_)

    _n_features_out = n_components_

    def _deviations(self) -> np.ndarray:
        """Standard deviations of the scores; 1 for those that do not vary."""
        deviation = np.sqrt(self.explained_variance_)
        return np.where(deviation > 0, deviation, 1.0)

    def _point(self) -> Params:
        density = self._density()
        columns = max(1, min(density.loadings.shape[1], len(density.mean) - 1))
        return {"loadings": density.loadings[:, :columns], "mean": density.mean, "noise": density.noise}

    def _density(self) -> LinearGaussian:
        self._check_fitted()
        noise = torch.full((len(self.mean_),), self.noise_variance_, dtype=torch.float64)
        return LinearGaussian(torch.from_numpy(self.loadings_), torch.from_numpy(self.mean_), noise)

    def _by_em(self, x: Tensor, weight: Tensor | None, inference: Inference, size: int) -> tuple[_Moments, LatentFit]:
        """Mean and covariance of rows with missing values; d − 1 factors and noise are any covariance there is."""
        factors = max(1, min(size, x.shape[1] - 1))
        latent = LinearGaussianEM(x, weight, factors, isotropic=True, floor=FLOOR)
        options = {"name": "PCA", "random_state": self.random_state, "verbose": bool(self.verbose)}
        fitted = fit_latent(inference, latent, self.prior, **options)
        self._keep_members(fitted, latent.restored)
        model = latent.restored(fitted.params)
        values, vectors = np.linalg.eigh(model.covariance().numpy())
        return _Moments(model.mean.numpy(), values[::-1], vectors[:, ::-1], latent.count), fitted

    def _keep(self, moments: _Moments, size: int) -> None:
        mean, values, vectors, total = moments
        values = np.where(values > len(values) * np.finfo(float).eps * max(values[0], 0.0), values, 0.0)
        columns, variance = len(mean), values.sum()
        kept, left = values[:size], values[size:].sum()
        self.noise_variance_ = float(left / (columns - size)) if size < columns else 0.0
        self.mean_, self.components_ = (
            mean,
            np.ascontiguousarray(signed(vectors[:, :size].T)),
        )  # as a file gives it back
        lengths = np.sqrt(np.maximum(kept - self.noise_variance_, 0.0))
        self.loadings_ = np.ascontiguousarray(self.components_.T * lengths)
        self.explained_variance_ = kept * (total / (total - 1) if total > 1 else 1.0)
        self.explained_variance_ratio_ = kept / variance if variance > 0 else np.zeros(size)
        self.singular_values_ = np.sqrt(kept * total)
        self.history_ = None


class _Moments(NamedTuple):
    """Mean, eigenvalues (falling) and eigenvectors (d, r) of the covariance with divisor n, and n = Σ w."""

    mean: np.ndarray
    values: np.ndarray
    vectors: np.ndarray
    total: float


def _tall(x: Tensor, weight: Tensor | None) -> _Moments | None:
    """Rows ≥ columns: eigenvectors of the covariance (d, d), which each process sums over its rows.

    None if values are missing: NaN comes out, which spares a look at each value before.
    """
    d = x.shape[1]
    first = x[:ROWS].double().nan_to_num(nan=0.0).numpy()
    shift = _shift(first.mean(0), first.var(0))
    gram, sums = np.zeros((d, d)), np.zeros(d + 1)
    for rows, moved in _moved(x, shift, distributed.shard(len(x))):
        own = np.ones(len(moved)) if weight is None else weight[rows].numpy()
        sums[:d] += own @ moved
        sums[d] += own.sum()
        scaled = moved if weight is None else moved * np.sqrt(own)[:, None]
        gram += scaled.T @ scaled  # NumPy makes half of a symmetric product only
    distributed.sum_(torch.from_numpy(gram), torch.from_numpy(sums))
    if np.isnan(sums).any():
        return None
    total = float(sums[d])
    mean = sums[:d] / total
    values, vectors = interruptible(EIGEN * d**3, np.linalg.eigh, gram / total - np.outer(mean, mean))
    return _Moments(shift + mean, values[::-1], vectors[:, ::-1], total)


def _wide(x: Tensor, weight: Tensor | None, asked: Any) -> _Moments | None:
    """Fewer rows than columns: XXᵀ (n, n) has the same eigenvalues, and Xᵀ turns its vectors to those asked for."""
    n, d = x.shape
    own = np.ones(n) if weight is None else weight.numpy()
    total, root = float(own.sum()), np.sqrt(own)[:, None]
    parts = [slice(start, start + ROWS) for start in range(0, d, ROWS)]
    mean = np.concatenate([own @ x[:, part].double().numpy() / total for part in parts])
    if np.isnan(mean).any():
        return None
    products = np.zeros((n, n))
    for part in parts:
        centred = root * (x[:, part].numpy() - mean[part])
        products += centred @ centred.T
    values, left = interruptible(EIGEN * n**3, np.linalg.eigh, products / total)
    values, left = values[::-1], left[:, ::-1][:, : _chosen(asked, values[::-1], n)]
    right = np.concatenate([(root * (x[:, part].numpy() - mean[part])).T @ left for part in parts])
    return _Moments(
        mean, values, np.linalg.qr(right)[0], total
    )  # by QR, directions without variance are orthogonal too


def _shift(mean: np.ndarray, variance: np.ndarray) -> np.ndarray:
    """What to subtract before sums are made: the mean where it is far from 0, since large offsets cost digits."""
    far = np.abs(mean).max() > 10 * np.sqrt(variance.min())
    return mean if far else np.zeros_like(mean)


def _moved(x: Tensor, shift: np.ndarray, part: slice) -> Iterator[tuple[slice, np.ndarray]]:
    """Rows minus `shift`, some at a time, in one place that stays in the cache. They are to be read only."""
    place = np.empty((ROWS, len(shift)))
    for start in range(part.start, part.stop, ROWS):
        rows = slice(start, min(start + ROWS, part.stop))
        values = x[rows].numpy()
        if values.dtype != np.float64 or shift.any():
            values = np.subtract(values, shift, out=place[: rows.stop - rows.start])
        yield rows, values


def _check_components(n_components: Any, most: int, shape: Any) -> None:
    if n_components is None or (isinstance(n_components, float) and 0 < n_components < 1):
        return
    if not isinstance(n_components, int | np.integer) or isinstance(n_components, bool) or n_components < 1:
        raise SpecError(
            f"PCA(n_components={n_components!r}): n_components must be a positive integer, a fraction of the variance "
            "between 0 and 1, or None."
        )
    if n_components > most:
        raise DataError(
            f"n_components={n_components} is more than X of shape {tuple(shape)} has: take at most min(n, d) = {most}."
        )


def _chosen(asked: Any, values: np.ndarray | None, most: int) -> int:
    """How many components: all, as many as asked for, or as many as hold more than the fraction asked for."""
    if asked is None or (values is None and isinstance(asked, float)):
        return most
    if values is None or not isinstance(asked, float):
        return int(asked)
    held = np.cumsum(np.maximum(values[:most], 0.0))
    return min(int(np.searchsorted(held / held[-1], asked, side="right")) + 1, most) if held[-1] > 0 else 1
