"""From latent functions to targets: the likelihood averaged over a normal of its numbers, by fixed points.

    p(y | x) = ∫ p(y | f, φ) Normal(f | μ, Σ) df ≈ Σⱼ wⱼ p(y | μ + Σ½ zⱼ, φ)

One number: equally spaced z, whose error falls faster than any power. Two: Gauss–Hermite points in both. More: Sobol
points turned normal, with their mirror images.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import torch
from scipy.special import ndtri
from scipy.stats import qmc
from torch import Tensor
from torch.distributions import Distribution

from ....inference.posterior import average
from ....likelihoods import Likelihood
from ....probability.blocks import Blocks

__all__ = ["points", "predictive"]

BLOCK = 2_048
"""Rows beyond which not all nodes of their integrals are held at once: a question makes those of so many rows."""


def predictive(likelihood: Likelihood, mean: Tensor, covariance: Tensor, shared: Tensor) -> Distribution:
    """p(y | x) of each row, from the means (m, k) and covariances (m, k, k) of its latent numbers.

    >>> from likely.likelihoods import Bernoulli
    >>> zero, wide = torch.zeros(1, 1, dtype=torch.float64), torch.full((1, 1, 1), 9.0, dtype=torch.float64)
    >>> predictive(Bernoulli(), zero + 2.0, wide, zero[0, :0]).probs.round(decimals=4)
    tensor([0.7174], dtype=torch.float64)
    """
    if len(mean) > BLOCK and not likelihood.labels and not likelihood.event_dim:
        return Blocks(lambda rows: predictive(likelihood, mean[rows], covariance[rows], shared), len(mean), BLOCK)
    where, weights = (torch.from_numpy(part) for part in points(mean.shape[1]))
    latent = mean + torch.einsum("mcd,jd->jmc", _Root.apply(covariance), where)
    eta = torch.cat([latent, shared.expand(*latent.shape[:2], -1)], -1) if len(shared) else latent
    return average(likelihood, eta, weights)


@cache
def points(numbers: int) -> tuple[np.ndarray, np.ndarray]:
    """z (j, k) and their weights, which sum to 1.

    >>> where, weights = points(1)
    >>> bool(abs(weights @ where[:, 0] ** 4 - 3) < 1e-9)
    True
    """
    if numbers == 1:
        grid = np.linspace(-7.5, 7.5, 121)
        density = np.exp(-0.5 * grid**2)
        return grid[:, None], density / density.sum()
    if numbers == 2:
        grid, weight = np.polynomial.hermite_e.hermegauss(20)
        weight = weight / weight.sum()
        pairs = np.stack(np.meshgrid(grid, grid, indexing="ij"), -1).reshape(-1, 2)
        return pairs, np.outer(weight, weight).reshape(-1)
    uniform = qmc.Sobol(numbers, scramble=False).random(512)
    half = ndtri((uniform + 0.5 / 512) / (1 + 1 / 512))  # inside (0, 1), whose ends Sobol points may touch
    both = np.concatenate([half, -half])
    root = np.linalg.cholesky(both.T @ both / len(both))
    both = np.linalg.solve(root, both.T).T  # so that second moments are exact
    return both, np.full(len(both), 1 / len(both))


class _Root(torch.autograd.Function):
    """Σ½ of each row; Σ may be singular.

    Its change solves S dS + dS S = dΣ, in the basis of eigenvectors dSᵢⱼ = dΣᵢⱼ / (sᵢ + sⱼ): also where eigenvalues are
    alike, as those of classes that a row knows nothing of, and 0 where both are 0.
    """

    @staticmethod
    def forward(ctx: Any, covariance: Tensor) -> Tensor:  # type: ignore[override]
        if covariance.shape[-1] == 1:
            values, vectors = covariance[..., 0], torch.ones_like(covariance)
        else:
            values, vectors = torch.linalg.eigh(0.5 * (covariance + covariance.mT))
        roots = values.clamp_min(0.0).sqrt()
        ctx.save_for_backward(roots, vectors)
        return (vectors * roots.unsqueeze(-2)) @ vectors.mT

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:  # type: ignore[override]
        roots, vectors = ctx.saved_tensors
        sums = roots.unsqueeze(-1) + roots.unsqueeze(-2)
        inner = vectors.mT @ gradient @ vectors
        return vectors @ torch.where(sums > 0, inner / torch.where(sums > 0, sums, 1.0), 0.0) @ vectors.mT
