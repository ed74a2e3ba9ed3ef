"""The linear-Gaussian model of rows: what `PCA` and `FactorAnalysis` share.

    x = Wz + μ + ε,   z ~ Normal(0, I),   ε ~ Normal(0, Ψ),   Ψ diagonal;   so x ~ Normal(μ, WWᵀ + Ψ)

With M = I + WᵀΨ⁻¹W of size k × k only, and m = M⁻¹WᵀΨ⁻¹(x − μ):

    z | x ~ Normal(m, M⁻¹)
    −2 log p(x) = d log 2π + log |Ψ| + log |M| + ‖Ψ^−½(x − μ − Wm)‖² + ‖m‖²

A missing value drops its row of W, μ and Ψ; rows that miss the same columns share one M.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from torch import Tensor
from torch.distributions import MultivariateNormal

from ...core.draws import count_of, form_of, in_form
from ...core.errors import DataError
from ...core.random import spread
from ...core.validation import as_rows, as_weights
from ...inference.latent.latent import LatentFit, Params
from ..averaged import Averaged

__all__ = ["Block", "Inferred", "LinearGaussian", "LinearGaussianModel", "blocks", "has_missing", "patterns", "signed"]

ROWS = 1024
"""Rows handled at once: a pass over X needs no second X, and its steps meet in the cache."""


class Block(NamedTuple):
    """Rows, 0 where a value is missing, and the patterns of what they have: `masks` are 1 where a value is known."""

    values: Tensor  # (m, d)
    ones: Tensor  # (m, 1): 1, or what each row is multiplied by
    masks: Tensor  # (b, d)
    owner: Tensor  # (m,): the row of `masks` that each row has
    rows: slice | Tensor  # where they stand in X


class Inferred(NamedTuple):
    """z given the rows of a block: means of rows, covariances of patterns, and −2 log p(x) in two parts."""

    mean: Tensor  # (…, m, k)
    covariance: Tensor  # (…, b, k, k)
    energy: Tensor  # (…, m): ‖Ψ^−½(x − μ − Wm)‖² + ‖m‖²
    log_det: Tensor  # (…, b): log |2π(WWᵀ + Ψ)| of the known columns


@dataclass(frozen=True)
class LinearGaussian:
    """The density of W (…, d, k), μ (…, d) and the diagonal of Ψ (…, d); leading axes are models side by side.

    >>> plane = LinearGaussian(torch.tensor([[1.0], [2.0]]).double(), torch.zeros(2).double(), torch.ones(2).double())
    >>> plane.covariance()
    tensor([[2., 2.],
            [2., 5.]], dtype=torch.float64)
    >>> x = torch.tensor([[1.0, 0.0], [1.0, torch.nan]]).double()
    >>> direct = MultivariateNormal(plane.mean, plane.covariance()).log_prob(x[:1])
    >>> torch.allclose(plane.log_prob(x)[:1], direct)
    True
    """

    loadings: Tensor
    mean: Tensor
    noise: Tensor

    def covariance(self) -> Tensor:
        """WWᵀ + Ψ."""
        return self.loadings @ self.loadings.mT + torch.diag_embed(self.noise)

    def infer(self, block: Block) -> Inferred:
        """Everything about z that a block of rows tells."""
        weighted = self.loadings / self.noise.unsqueeze(-1)  # Ψ⁻¹W
        known = block.masks if len(block.masks) == 1 else block.masks[block.owner]
        factor = torch.linalg.cholesky(self._precision(block.masks, weighted))
        covariance = torch.cholesky_inverse(factor)
        centred = known * (block.values - block.ones * self.mean.unsqueeze(-2))
        pull = centred @ weighted
        if len(block.masks) == 1:
            mean = pull @ covariance[..., 0, :, :]
        else:
            mean = (covariance[..., block.owner, :, :] @ pull.unsqueeze(-1)).squeeze(-1)
        rest = known * (centred - mean @ self.loadings.mT)
        energy = (rest.square() / self.noise.unsqueeze(-2)).sum(-1) + mean.square().sum(-1)
        log_noise = (2 * math.pi * self.noise).log() @ block.masks.mT
        log_det = log_noise + 2 * factor.diagonal(dim1=-2, dim2=-1).log().sum(-1)
        return Inferred(mean, covariance, energy, log_det)

    def log_prob(self, x: Tensor) -> Tensor:
        """log p of the known values of each row; of a row without any, 0."""
        found = torch.empty(len(x), dtype=torch.float64)
        flat = bool((self.noise == 0).any())
        for block in blocks(x):
            if flat:
                found[block.rows] = self._dense_log_prob(block)
            else:
                given = self.infer(block)
                found[block.rows] = -0.5 * (given.energy + given.log_det[block.owner])
        return found

    def posterior(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Means (n, k) of z | x, and the lower factor of its covariance: (k, k), or (n, k, k) if values are missing."""
        size = self.loadings.shape[-1]
        mean = torch.empty(len(x), size, dtype=torch.float64)
        varies = has_missing(x)
        root = torch.empty(*((len(x),) if varies else ()), size, size, dtype=torch.float64)
        for block in blocks(x):
            given = self.infer(block)
            mean[block.rows] = given.mean
            factors = torch.linalg.cholesky(given.covariance)
            if varies:
                root[block.rows] = factors[block.owner]
            else:
                root = factors[0]
        return mean, root

    def impute(self, x: Tensor) -> Tensor:
        """x in float64, with missing values at their expectation given the known ones."""
        found = x.double().clone()
        flat = bool((self.noise == 0).any())
        for block in blocks(x) if has_missing(x) else ():
            guess = self._dense_impute(block) if flat else self.mean + self.infer(block).mean @ self.loadings.mT
            rows = found[block.rows]
            found[block.rows] = torch.where(rows.isnan(), guess, rows)
        return found

    def sample(self, n: int, seed: int) -> Tensor:
        """n new rows."""
        return self.draw(n, seed)[0]

    def draw(self, n: int, seed: int) -> tuple[Tensor, Tensor]:
        """n new rows (n, d), and their latent codes (n, k)."""
        generator = torch.Generator().manual_seed(seed)
        d, k = self.loadings.shape
        z = torch.randn(n, k, generator=generator, dtype=torch.float64)
        noise = torch.randn(n, d, generator=generator, dtype=torch.float64)
        return z @ self.loadings.mT + self.mean + noise * self.noise.sqrt(), z

    def fill(self, x: Tensor, seed: int) -> tuple[Tensor, Tensor]:
        """x with missing values drawn given the known ones: what a new row is moved by, where x differs from it.

        Also the latent code of the new rows, and their copy that misses what x misses (Matheron's rule).
        """
        new, code = self.draw(len(x), seed)
        missing = x.isnan()
        partial = torch.where(missing, torch.nan, new)
        moved = torch.where(missing, new + self.impute(x) - self.impute(partial), x.double())
        if bool((self.noise == 0).any()):
            return moved, code.new_full(code.shape, torch.nan)  # z is a point that `posterior` refuses too
        return moved, code + self.posterior(x)[0] - self.posterior(partial)[0]

    # --- parts ----------------------------------------------------------------------------------------------------
    def _precision(self, masks: Tensor, weighted: Tensor) -> Tensor:
        """M of each pattern: (…, b, k, k)."""
        size = self.loadings.shape[-1]
        if len(masks) == 1:
            products = (weighted.mT @ (masks[0].unsqueeze(-1) * self.loadings)).unsqueeze(-3)
        else:
            products = (masks @ self._squares).unflatten(-1, (size, size))
        return products + torch.eye(size, dtype=products.dtype)

    @cached_property
    def _squares(self) -> Tensor:
        """wwᵀ/ψ of each column: (…, d, k²)."""
        return (self.loadings.unsqueeze(-1) * (self.loadings / self.noise.unsqueeze(-1)).unsqueeze(-2)).flatten(-2)

    def _dense_log_prob(self, block: Block) -> Tensor:
        """Without noise Ψ⁻¹ does not exist, but the covariance is regular if W has d columns of full rank."""
        d, k = self.loadings.shape
        found = torch.empty(len(block.values), dtype=torch.float64)
        for chosen, known in _by_pattern(block):
            root, failed = torch.linalg.cholesky_ex(self.covariance()[known][:, known])
            if k < d or failed:
                raise DataError(
                    f"The density does not exist: {k} components explain all variance of {d} columns, so the rows lie "
                    "in a subspace; take fewer n_components."
                )
            centred = block.values[chosen][:, known] - self.mean[known]
            spread = torch.linalg.solve_triangular(root, centred.mT, upper=False).square().sum(0)
            log_det = 2 * root.diagonal().log().sum() + len(known) * math.log(2 * math.pi)
            found[chosen] = -0.5 * (spread + log_det)
        return found

    def _dense_impute(self, block: Block) -> Tensor:
        guess = torch.empty_like(block.values)
        for chosen, known in _by_pattern(block):
            own = self.loadings[known]
            centred = block.values[chosen][:, known] - self.mean[known]
            inverse = torch.linalg.pinv(own @ own.mT, hermitian=True)
            guess[chosen] = self.mean + centred @ inverse @ own @ self.loadings.mT
        return guess


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
            rows, code = density.draw(count, seed)
        else:
            given = self._rows(condition)
            if len(given) != 1:
                raise DataError(f"condition has {len(given)} rows; it is one row, with NaN for what is to be drawn.")
            rows, code = density.fill(given.expand(count, -1), seed)
        found = in_form(rows.numpy(), self.form_, getattr(self, "feature_names_in_", None))
        return (found, code.numpy()) if return_hidden else found

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


def has_missing(x: Tensor) -> bool:
    """Whether some value is NaN (X has no infinity: its door is `as_rows`)."""
    return x.is_floating_point() and bool(x.sum().isnan())


def patterns(x: Tensor) -> tuple[Tensor, Tensor]:
    """The different patterns of known values (P, d), 1 where known, and the pattern of each row (n,).

    >>> patterns(torch.tensor([[1.0, 2.0], [torch.nan, 2.0], [3.0, 4.0]]))
    (tensor([[1., 1.], [0., 1.]], dtype=torch.float64), tensor([0, 1, 0]))
    """
    packed = np.concatenate([np.packbits(part.isnan().numpy(), axis=1) for part in x.split(ROWS)])
    kinds, owner = np.unique(packed, axis=0, return_inverse=True)
    missing = np.unpackbits(kinds, axis=1, count=x.shape[1])
    return torch.from_numpy(1.0 - missing), torch.from_numpy(owner.reshape(-1).astype(np.int64))


def blocks(x: Tensor) -> Iterator[Block]:
    """All rows, a block at a time; rows with missing values are taken in the order of their patterns."""
    one = torch.ones(1, 1, dtype=torch.float64)
    if not has_missing(x):
        masks = torch.ones(1, x.shape[1], dtype=torch.float64)
        for start in range(0, len(x), ROWS):
            values = x[start : start + ROWS].double()
            yield Block(values, one, masks, torch.zeros(len(values), dtype=torch.int64), slice(start, start + ROWS))
        return
    masks, owner = patterns(x)
    for rows in torch.argsort(owner, stable=True).split(ROWS):
        first, last = int(owner[rows[0]]), int(owner[rows[-1]])
        yield Block(x[rows].double().nan_to_num(nan=0.0), one, masks[first : last + 1], owner[rows] - first, rows)


def signed(directions: np.ndarray) -> np.ndarray:
    """Rows with their signs chosen: the entry of the largest size is positive, as in scikit-learn.

    >>> signed(np.array([[0.6, -0.8], [0.8, 0.6]])).tolist()
    [[-0.6, 0.8], [0.8, 0.6]]
    """
    largest = np.abs(directions).argmax(1)
    sign = np.sign(directions[np.arange(len(directions)), largest])
    return directions * np.where(sign == 0, 1.0, sign)[:, None]


def _by_pattern(block: Block) -> Iterator[tuple[Tensor, Tensor]]:
    """Of each pattern, the rows of the block that have it, and its known columns."""
    for number, pattern in enumerate(block.masks):
        yield (block.owner == number).nonzero()[:, 0], pattern.nonzero()[:, 0]
