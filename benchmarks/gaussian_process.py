"""Gaussian-process regression of 2,000 rows with 5 columns: the evidence maximised from one start, against peers.

The model is the same for all: mean 0, a variance times an RBF kernel with one length scale, and noise, all learned, in
float64. GPyTorch takes Cholesky factors, as it does by itself for so few rows, and trains by Adam as its documentation
does (100 steps of 0.1), or by L-BFGS.
"""

from __future__ import annotations

import math
import warnings

import gpytorch
import numpy as np
import torch
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF as PeerRBF
from sklearn.gaussian_process.kernels import ConstantKernel, WhiteKernel

from likely.kernels import RBF
from likely.likelihoods import Normal
from likely.models.kernel.gaussian_process import GaussianProcess

from .timing import Result, compare, interleave, show

__all__ = ["run"]

ROWS, COLUMNS = 2_000, 5


def run(repeats: int = 3) -> list[Result]:
    x, y = _data()
    noise = 0.1 * float(y.var())  # where Likely starts by itself

    def likely_fit() -> float:
        model = GaussianProcess(1.0 * RBF(1.0), Normal(), mean="zero", starts=1, random_state=0).fit(x, y)
        return model.log_evidence_

    def sklearn_fit() -> float:
        kernel = ConstantKernel(1.0) * PeerRBF(1.0) + WhiteKernel(noise)
        model = GaussianProcessRegressor(kernel, alpha=1e-10).fit(x, y)
        return float(model.log_marginal_likelihood_value_)

    def quality(mine: float, other: float) -> tuple[str, bool]:
        return f"made data: log evidence {mine:.4f}, of the peer {other:.4f}", mine >= other - 1e-3

    calls = {
        "likely": likely_fit,
        "scikit-learn GaussianProcessRegressor": sklearn_fit,
        "GPyTorch ExactGP, 100 steps of Adam": lambda: _gpytorch(x, y, noise, "adam"),
        "GPyTorch ExactGP, L-BFGS": lambda: _gpytorch(x, y, noise, "lbfgs"),
    }
    targets = {
        "scikit-learn GaussianProcessRegressor": 1 / 3,
        "GPyTorch ExactGP, 100 steps of Adam": 1.0,
        "GPyTorch ExactGP, L-BFGS": 1.0,
    }
    return compare("gaussian_process", interleave(calls, repeats, warm_up=0), quality, targets)


def _data() -> tuple[np.ndarray, np.ndarray]:
    """Waves along random directions, and noise of 0.2."""
    random = np.random.default_rng(0)
    x = random.normal(size=(ROWS, COLUMNS))
    directions = random.normal(size=(COLUMNS, 2))
    y = np.sin(x @ directions[:, 0]) + 0.5 * np.cos(x @ directions[:, 1]) * x[:, 0] + 0.2 * random.normal(size=ROWS)
    return x, y


class _ExactGP(gpytorch.models.ExactGP):
    def __init__(self, x: torch.Tensor, y: torch.Tensor, likelihood: gpytorch.likelihoods.GaussianLikelihood) -> None:
        super().__init__(x, y, likelihood)
        self.mean_module = gpytorch.means.ZeroMean()
        self.covar_module = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel())

    def forward(self, x: torch.Tensor) -> gpytorch.distributions.MultivariateNormal:
        return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))


def _gpytorch(x: np.ndarray, y: np.ndarray, noise: float, method: str) -> float:
    rows, targets = torch.from_numpy(x), torch.from_numpy(y)
    likelihood = gpytorch.likelihoods.GaussianLikelihood().double()
    model = _ExactGP(rows, targets, likelihood).double()
    likelihood.noise, model.covar_module.outputscale, model.covar_module.base_kernel.lengthscale = noise, 1.0, 1.0
    objective = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)
    model.train()
    likelihood.train()
    if method == "adam":
        optimizer: torch.optim.Optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
        steps = 100
    else:
        optimizer = torch.optim.LBFGS(
            model.parameters(), max_iter=50, line_search_fn="strong_wolfe", tolerance_change=1e-9 / len(y)
        )
        steps = 1

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        loss = -objective(model(rows), targets)
        loss.backward()
        return loss

    settings = gpytorch.settings
    with warnings.catch_warnings(), settings.fast_computations(False, False, False), settings.max_cholesky_size(10**6):
        warnings.simplefilter("ignore")
        for _ in range(steps):
            optimizer.step(closure)
        with torch.no_grad():
            return -float(closure_value(objective, model, rows, targets)) * len(y)


def closure_value(objective: torch.nn.Module, model: _ExactGP, rows: torch.Tensor, targets: torch.Tensor) -> float:
    """The mean negative log evidence a row, at the numbers that the model has now."""
    value = -float(objective(model(rows), targets))
    return value if math.isfinite(value) else math.inf


if __name__ == "__main__":
    show(run())
