"""From latent functions to targets: the likelihood averaged over a normal of its numbers, by fixed points.

    p(y | x) = ∫ p(y | f, φ) Normal(f | μ, Σ) df ≈ Σⱼ wⱼ p(y | μ + Σ½ zⱼ, φ)

One number: equally spaced z, whose error falls faster than any power. Two: Gauss–Hermite points in both. More: Sobol
points turned normal, with their mirror images.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import torch
from scipy.special import ndtri
from scipy.stats import qmc
from torch import Tensor
from torch.distributions import Distribution

from ....inference.posterior import average
from ....likelihoods import Likelihood
from ....probability.blocks import Blocks
from ....probability.roots import symmetric_root

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
    latent = mean + torch.einsum("mcd,jd->jmc", symmetric_root(covariance), where)
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
