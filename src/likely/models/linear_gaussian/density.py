"""The density of the linear-Gaussian model, by matrices of the size of its latent code.

    x = Wz + μ + ε,   z ~ Normal(0, I),   ε ~ Normal(0, Ψ),   Ψ diagonal;   so x ~ Normal(μ, WWᵀ + Ψ)

With M = I + WᵀΨ⁻¹W of size k × k only, and m = M⁻¹WᵀΨ⁻¹(x − μ):

    z | x ~ Normal(m, M⁻¹)
    −2 log p(x) = d log 2π + log |Ψ| + log |M| + ‖Ψ^−½(x − μ − Wm)‖² + ‖m‖²

A missing value drops its row of W, μ and Ψ; rows that miss the same columns share one M.
"""

from __future__ import annotations

import math
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import torch
from torch import Tensor

from ...core.errors import DataError
from ...core.threads import threads_for
from .blocks import ROWS, Block, blocks, by_pattern, has_missing

__all__ = ["Inferred", "LinearGaussian"]


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
    >>> from torch.distributions import MultivariateNormal
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
        log_prob = torch.empty(len(x), dtype=torch.float64)
        flat = bool((self.noise == 0).any())
        with self._threads(x):
            for block in blocks(x):
                if flat:
                    log_prob[block.rows] = self._dense_log_prob(block)
                else:
                    given = self.infer(block)
                    log_prob[block.rows] = -0.5 * (given.energy + given.log_det[block.owner])
        return log_prob

    def posterior(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Means (n, k) of z | x, and the lower factor of its covariance: (k, k), or (n, k, k) if values are missing."""
        size = self.loadings.shape[-1]
        mean = torch.empty(len(x), size, dtype=torch.float64)
        varies = has_missing(x)
        root = torch.empty(*((len(x),) if varies else ()), size, size, dtype=torch.float64)
        with self._threads(x):
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
        filled = x.double().clone()
        flat = bool((self.noise == 0).any())
        with self._threads(x):
            for block in blocks(x) if has_missing(x) else ():
                guess = self._dense_impute(block) if flat else self.mean + self.infer(block).mean @ self.loadings.mT
                rows = filled[block.rows]
                filled[block.rows] = torch.where(rows.isnan(), guess, rows)
        return filled

    def sample(self, n: int, seed: int) -> Tensor:
        """n new rows."""
        return self.draw(n, seed)[0]

    def draw(self, n: int, seed: int) -> tuple[Tensor, Tensor]:
        """n new rows (n, d), and their latent codes (n, k); of n models side by side, one row each."""
        generator = torch.Generator().manual_seed(seed)
        d, k = self.loadings.shape[-2:]
        z = torch.randn(n, k, generator=generator, dtype=torch.float64)
        noise = torch.randn(n, d, generator=generator, dtype=torch.float64)
        plane = z @ self.loadings.mT if self.loadings.ndim == 2 else (self.loadings @ z.unsqueeze(-1)).squeeze(-1)
        return plane + self.mean + noise * self.noise.sqrt(), z

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
    def _threads(self, x: Tensor) -> AbstractContextManager[int]:
        """As many as the product of a block of rows with the loadings is worth."""
        return threads_for(min(len(x), ROWS) * self.loadings.numel())

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
        log_prob = torch.empty(len(block.values), dtype=torch.float64)
        for chosen, known in by_pattern(block):
            root, failed = torch.linalg.cholesky_ex(self.covariance()[known][:, known])
            if k < d or failed:
                raise DataError(
                    f"The density does not exist: {k} components explain all variance of {d} columns, so the rows lie "
                    "in a subspace; take fewer n_components."
                )
            centred = block.values[chosen][:, known] - self.mean[known]
            spread = torch.linalg.solve_triangular(root, centred.mT, upper=False).square().sum(0)
            log_det = 2 * root.diagonal().log().sum() + len(known) * math.log(2 * math.pi)
            log_prob[chosen] = -0.5 * (spread + log_det)
        return log_prob

    def _dense_impute(self, block: Block) -> Tensor:
        guess = torch.empty_like(block.values)
        for chosen, known in by_pattern(block):
            own = self.loadings[known]
            centred = block.values[chosen][:, known] - self.mean[known]
            inverse = torch.linalg.pinv(own @ own.mT, hermitian=True)
            guess[chosen] = self.mean + centred @ inverse @ own @ self.loadings.mT
        return guess
