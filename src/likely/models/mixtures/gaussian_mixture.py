"""Gaussian mixture: K clouds of points, each with a mean and a covariance.

    p(x) = Σₖ πₖ N(x; μₖ, Σₖ)

A component that shrinks to a point would make the likelihood infinite: `floor` bounds its eigenvalues from below.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, distributions

from ...core.declared import (
    COUNTS,
    COVARIANCE,
    FIT,
    FORM,
    HISTORY,
    POSITIVE,
    SIMPLEX,
    TABLE,
    Array,
    Arrays,
    Range,
    Values,
)
from ...core.errors import DataError, SpecError
from ...core.spec import require
from ...inference import EM, Inference
from ...inference.latent.latent import Params
from ..averaged import INFO
from ..emissions.gaussian import GaussianEmission
from ..emissions.gaussian_density import Covariance
from ..emissions.starts import Init
from .components import Components
from .finite_mixture import _FiniteMixture, listed, require_number

__all__ = ["GaussianMixture"]


class GaussianMixture(_FiniteMixture):
    """GaussianMixture(n_components=1, covariance="full"): also "tied", "diag" and "spherical".

    `floor` is the least eigenvalue of a covariance, in units of the columns' variances; components that it holds up are
    listed in `floored_`. Missing values (NaN) are marginalised. `means_init` (K, d) gives the first means; otherwise
    `init` makes first guesses, and `EM(starts=5)` keeps the best of five.

    >>> X = [[0.0, 0.1], [0.2, 0.0], [0.1, 0.3], [5.0, 5.1], [5.2, 5.0], [5.1, 5.3]]
    >>> model = GaussianMixture(2, covariance="spherical", random_state=0).fit(X)
    >>> sorted(model.means_.round(2).tolist())
    [[0.1, 0.13], [5.1, 5.13]]
    >>> model.weights_.round(3)
    array([0.5, 0.5])
    """

    _arrays: ClassVar[Arrays] = {
        "weights_": Array("K", SIMPLEX),
        "means_": Array("K D"),
        "covariances_": Array("K D D", COVARIANCE),
        "history_": HISTORY,
    }
    _values: ClassVar[Values] = {**FIT, **INFO, "floored_": COUNTS, "reseeded_": TABLE, "form_": FORM}

    def __init__(
        self,
        n_components: int = 1,
        covariance: Covariance = "full",
        floor: float = 1e-6,
        inference: Inference | str = EM(),  # noqa: B008 (specs are frozen values)
        init: Init = "k-means++",
        means_init: Any = None,
        prior: Any = "auto",
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.n_components = n_components
        self.covariance = covariance
        self.floor = floor
        self.inference = inference
        self.init = init
        self.means_init = means_init
        self.prior = prior
        self.random_state = random_state
        self.verbose = verbose

    # --- answers ------------------------------------------------------------------------------------------------
    @property
    def precisions_(self) -> np.ndarray:
        """The inverses of the covariances, in the same shape."""
        self._check_fitted()
        return np.linalg.inv(self.covariances_) if self._matrix else 1 / self.covariances_

    @property
    def distributions_(self) -> list[distributions.MultivariateNormal]:
        """The distribution of each component."""
        mean, covariance = torch.from_numpy(self.means_), self._covariance_matrices()
        pairs = zip(mean, covariance, strict=True)
        return [distributions.MultivariateNormal(m, covariance_matrix=c, validate_args=False) for m, c in pairs]

    def distribution(self) -> distributions.MixtureSameFamily:
        """The fitted p(x) as a torch distribution."""
        covariance = self._covariance_matrices()
        weights = distributions.Categorical(torch.from_numpy(self.weights_))
        components = distributions.MultivariateNormal(torch.from_numpy(self.means_), covariance, validate_args=False)
        return distributions.MixtureSameFamily(weights, components)

    # --- what makes it a mixture of Gaussians -------------------------------------------------------------------
    def _emission(self, x: Tensor, names: Sequence[str] | None = None) -> GaussianEmission:
        return GaussianEmission(x.shape[1], self.covariance, self.floor)

    def _bound(self, x: Tensor, weight: Tensor | None) -> Components:
        emission = self._emission(x)
        if self.means_init is None:
            return Components(emission, x, weight, self.n_components, self.init)
        try:
            means = torch.as_tensor(np.asarray(self.means_init, dtype=np.float64))
        except (TypeError, ValueError) as error:
            raise SpecError(f"GaussianMixture(means_init=…): it must be an array of numbers ({error}).") from error
        if means.shape != (self.n_components, x.shape[1]) or not bool(means.isfinite().all()):
            raise DataError(
                f"means_init has shape {tuple(means.shape)}; it must be finite numbers of shape "
                f"({self.n_components}, {x.shape[1]}): a mean for each component."
            )
        return _FromMeans(emission, x, weight, means)

    def _fitted(self) -> tuple[GaussianEmission, Params]:
        emission = GaussianEmission(self.n_features_in_, self.covariance, self.floor)
        covariance = torch.from_numpy(self.covariances_)
        if self.covariance == "tied":
            covariance = covariance.unsqueeze(0)
        elif self.covariance == "spherical":
            covariance = covariance.unsqueeze(-1)
        params = {"mean": torch.from_numpy(self.means_), "covariance": covariance}
        weights = {"weights": torch.from_numpy(self.weights_).unsqueeze(0)}
        return emission, emission.complete({name: value.unsqueeze(0) for name, value in params.items()}) | weights

    def _declared_arrays(self) -> Arrays:
        shapes = {"tied": Array("D D", COVARIANCE), "diag": Array("K D", POSITIVE), "spherical": Array("K", POSITIVE)}
        return {**self._arrays, "covariances_": shapes.get(self.covariance, self._arrays["covariances_"])}

    def _point(self) -> Params:
        _, params = self._fitted()
        return {name: params[name][0] for name in ("weights", "mean", "covariance")}

    def _draw_ranges(self) -> dict[str, Range]:
        return {"weights": SIMPLEX, "covariance": COVARIANCE if self._matrix else POSITIVE}

    def _keep(self, model: Components, params: Params) -> None:
        self.means_ = params["mean"][0].numpy()
        covariance = params["covariance"][0].numpy()
        shapes = {"tied": covariance[0], "spherical": covariance[..., 0]}
        self.covariances_ = shapes.get(self.covariance, covariance)
        floored = params["floored"][0].expand(self.n_components)
        self.floored_ = floored.nonzero().ravel().tolist()
        if self.floored_:
            self._report(
                f"floor={self.floor:g} holds up {listed(self.floored_)}: the variance in some direction has fallen to "
                f"{self.floor:g} of the columns' variances. Fewer components, a simpler covariance or fewer columns "
                "may do; a lower floor lets it shrink further."
            )

    def _check_arguments(self) -> None:
        super()._check_arguments()
        kinds = ("full", "tied", "diag", "spherical")
        require(self.covariance in kinds, self, "covariance", '"full", "tied", "diag" or "spherical"')
        require_number(self, "floor")

    @property
    def _matrix(self) -> bool:
        return self.covariance in ("full", "tied")

    def _covariance_matrices(self) -> Tensor:
        """Σ of each component: (K, d, d)."""
        self._check_fitted()
        covariance, d = torch.from_numpy(self.covariances_), self.n_features_in_
        if self.covariance == "spherical":
            covariance = covariance.unsqueeze(-1).expand(-1, d)
        full = covariance if self._matrix else torch.diag_embed(covariance)
        return full.expand(self.n_components, d, d)

    def _describe(self) -> dict[str, Any]:
        description = super()._describe()
        if self.means_init is not None:  # an array would count as code
            description["params"]["means_init"] = np.asarray(self.means_init, dtype=float).tolist()
        return description


class _FromMeans(Components):
    """A mixture whose first means are given; first weights and covariances are those of the rows nearest to each."""

    def __init__(self, emission: GaussianEmission, x: Tensor, weight: Tensor | None, means: Tensor) -> None:
        super().__init__(emission, x, weight, len(means), "k-means++")
        self.gaussian, self.means = emission, means

    def start(self, seeds: list[int]) -> Params:
        params = super().start(seeds)
        mean = self.means.expand_as(params["mean"]).clone()
        return {**params, **self.gaussian.complete({**params, "mean": mean})}

    def _first(self, seed: int) -> tuple[np.ndarray, Tensor]:
        chosen = self._sample(seed)
        centre, unit = self.gaussian.centre, self.gaussian.variance.sqrt()  # weighted: a weight is so many rows
        rows = ((self.x[torch.from_numpy(chosen)].double() - centre) / unit).nan_to_num(nan=0.0)
        nearest = torch.cdist(rows, (self.means - centre) / unit).argmin(1)
        weight = torch.nn.functional.one_hot(nearest, self.components).double()
        return chosen, weight if self.weight is None else weight * self.weight[chosen].unsqueeze(-1)
