"""Factor analysis: a few hidden factors make columns covary; what is left of each column is noise of its own.

    x = Wz + μ + ε,   z ~ Normal(0, I),   ε ~ Normal(0, diag ψ₁ … ψ_d),   so   Cov(x) = WWᵀ + Ψ

W is known up to a rotation of z. It is turned so that WᵀΨ⁻¹W is diagonal and falls, or to the varimax position.
"""

from __future__ import annotations

import warnings
from itertools import combinations
from typing import Any, ClassVar, Literal, Self

import numpy as np
import torch

from ...core.declared import FIT, FORM, HISTORY, POSITIVE, Array, Arrays, Values
from ...core.errors import DataError, LikelyWarning, SpecError
from ...core.spec import as_spec
from ...core.validation import as_weights
from ...inference.latent.density import fit_latent
from ...inference.latent.em import EM
from ...inference.latent.latent import Params
from ...inference.problem import Inference
from ..averaged import INFO
from .base import LinearGaussianModel, signed
from .density import LinearGaussian
from .em import LinearGaussianEM
from .profile import best_noise, loadings_of

__all__ = ["FactorAnalysis", "varimax"]

ROTATIONS = (None, "varimax")


class FactorAnalysis(LinearGaussianModel):
    """`n_components` factors, one noise variance for each column; found by EM, missing values (NaN) marginalised.

    `transform` gives the posterior mean of z, `posterior` its distribution. Where no value is missing, the
    end is that of L-BFGS on the noise alone, from several starts. A column whose noise wants to vanish (a Heywood case)
    is held at `floor` times its variance, with a warning.

    Learned: `components_` = Wᵀ (k, d), `noise_variance_` (d,), `mean_`, and of the fit `history_` (the log-likelihood
    at each step; it never falls), `log_likelihood_`, `n_iter_`, `converged_`.

    >>> random = np.random.default_rng(0)
    >>> z = random.normal(size=(500, 1))
    >>> X = z * [1.0, -2.0, 0.5, 1.5] + random.normal(size=(500, 4)) * [0.5, 1.0, 0.5, 1.0]
    >>> model = FactorAnalysis(n_components=1).fit(X)
    >>> bool(np.abs(model.components_ - [[-1.0, 2.0, -0.5, -1.5]]).max() < 0.1)
    True
    >>> model.posterior(X[:1]).batch_shape, model.transform([[1.0, np.nan, np.nan, np.nan]]).shape
    (torch.Size([1]), (1, 1))
    """

    _arrays: ClassVar[Arrays] = {
        "components_": Array("K D"),
        "noise_variance_": Array("D", POSITIVE),
        "mean_": Array("D"),
        "history_": HISTORY,
    }
    _values: ClassVar[Values] = {**FIT, **INFO, "form_": FORM}

    def __init__(
        self,
        n_components: int = 1,
        inference: Any = EM(max_iter=1000),  # noqa: B008 (a spec is a value)
        rotation: Literal["varimax"] | None = None,
        floor: float = 1e-3,
        prior: Any = "auto",
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.n_components = n_components
        self.inference = inference
        self.rotation = rotation
        self.floor = floor
        self.prior = prior
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find W, μ and Ψ of greatest likelihood."""
        self._forget()
        self._check_arguments()
        x = self._rows(X, reset=True)
        if self.n_components > x.shape[1]:
            raise DataError(
                f"n_components={self.n_components} is more than the {x.shape[1]} feature(s) of X; take fewer."
            )
        latent = LinearGaussianEM(
            x, as_weights(sample_weight, x), int(self.n_components), isotropic=False, floor=self.floor
        )
        options = {"name": "FactorAnalysis", "random_state": self.random_state, "verbose": bool(self.verbose)}
        fitted = fit_latent(self.inference, latent, self.prior, **options)
        params, self.history_ = fitted.params, fitted.trace.numpy()
        by_likelihood = as_spec(self.inference, Inference, "inference").needs == {"expectations"}
        if by_likelihood and latent.complete and fitted.converged and self.n_components < x.shape[1]:
            params, self.history_ = self._finished(latent, params)
        self._report(params["noise"].numpy())
        model = latent.restored(params)
        self._keep_members(fitted, latent.restored)
        self.noise_variance_, self.mean_ = model.noise.numpy(), model.mean.numpy()
        self.n_iter_, self.converged_ = fitted.n_iter, fitted.converged
        self.log_likelihood_ = float(latent.expect({name: value[None] for name, value in params.items()})[1])
        loadings = _diagonal(model.loadings.numpy(), self.noise_variance_)
        loadings = varimax(loadings) if self.rotation == "varimax" else loadings
        self.components_ = np.ascontiguousarray(signed(loadings.T))
        return self

    def transform(self, X: Any) -> np.ndarray:
        """The posterior mean of the factors of each row: (n, k)."""
        x = self._rows(X)
        return self._density().posterior(x)[0].numpy()

    def _dimensions(self) -> dict[str, Any]:
        return super()._dimensions() | {"K": self.n_components}

    def _point(self) -> Params:
        density = self._density()
        return {"loadings": density.loadings, "mean": density.mean, "noise": density.noise}

    def _density(self) -> LinearGaussian:
        self._check_fitted()
        return LinearGaussian(*map(torch.from_numpy, (self.components_.T, self.mean_, self.noise_variance_)))

    def _check_arguments(self) -> None:
        if not isinstance(self.n_components, int | np.integer) or self.n_components < 1:
            raise SpecError(
                f"FactorAnalysis(n_components={self.n_components!r}): n_components must be a positive integer."
            )
        if self.rotation not in ROTATIONS:
            raise SpecError(f'FactorAnalysis(rotation={self.rotation!r}): rotation must be None or "varimax".')
        if not (isinstance(self.floor, int | float) and 0 < self.floor < 1):
            raise SpecError(f"FactorAnalysis(floor={self.floor!r}): floor must be a number between 0 and 1.")

    def _finished(self, latent: LinearGaussianEM, params: Params) -> tuple[Params, np.ndarray]:
        """The top of the likelihood where no value is missing; EM creeps towards it where noise nearly vanishes."""
        covariance, factors = latent.correlation().numpy(), int(self.n_components)
        if np.diag(covariance).min() < 0.5:  # a constant column, which has no variance to scale by
            return params, self.history_
        noise = best_noise(covariance, factors, params["noise"].numpy(), self.floor)
        top = params | {
            "noise": torch.from_numpy(noise),
            "loadings": torch.from_numpy(loadings_of(covariance, factors, noise)),
            "mean": torch.zeros_like(params["mean"]),
        }
        log_likelihood = float(latent.expect({name: value.unsqueeze(0) for name, value in top.items()})[1])
        last = self.history_[-1]
        higher = log_likelihood > last - 1e-12 * abs(last)  # where EM ended there too, it is the more exact end
        return top if higher else params, np.append(self.history_, max(log_likelihood, last))

    def _report(self, noise: np.ndarray) -> None:
        """Say which columns are held at the floor."""
        held = np.flatnonzero(noise <= self.floor * (1 + 1e-9))
        if len(held):
            names = getattr(self, "feature_names_in_", None)
            shown = ", ".join(str(column if names is None else names[column]) for column in held[:5])
            warnings.warn(
                f"The noise of column {shown}{' …' if len(held) > 5 else ''} would vanish (a Heywood case) and is held "
                f"at floor={self.floor:g} of its variance; take fewer n_components, or raise floor.",
                LikelyWarning,
                stacklevel=3,
            )

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)


def varimax(loadings: np.ndarray, max_iter: int = 200, tol: float = 1e-10) -> np.ndarray:
    """Loadings (d, k) turned so that the squares in each column vary most: few large ones, many near 0.

    max over rotations R of Σ_j Var_i( (WR)²_ij ), two columns at a time: the best angle of a plane is known (Kaiser).

    >>> varimax(np.array([[1.0, 1.0], [2.0, 2.0], [1.0, -1.0]])).round(3) + 0.0      # each row now has one factor
    array([[ 1.414,  0.   ],
           [ 2.828,  0.   ],
           [ 0.   , -1.414]])
    """
    turned = np.array(loadings, dtype=np.float64)
    for _ in range(max_iter):
        largest = 0.0
        for first, second in combinations(range(turned.shape[1]), 2):
            point = turned[:, first] + 1j * turned[:, second]
            square = point**2
            angle = np.angle((square**2).mean() - square.mean() ** 2) / 4
            point = point * np.exp(-1j * angle)
            turned[:, first], turned[:, second] = point.real, point.imag
            largest = max(largest, abs(angle))
        if largest < tol:
            break
    return turned


def _diagonal(loadings: np.ndarray, noise: np.ndarray) -> np.ndarray:
    """W turned so that WᵀΨ⁻¹W is diagonal, largest first: then components are those of scikit-learn, up to signs."""
    _, _, right = np.linalg.svd(loadings / np.sqrt(noise)[:, None], full_matrices=False)
    return loadings @ right.T
