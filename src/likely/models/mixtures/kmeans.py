"""k-means: K centres, each the mean of the rows nearest to it. The engine is scikit-learn's.

    min Σᵢ wᵢ ‖xᵢ − c(xᵢ)‖²      by turns: c(x) ← the nearest centre,   centre ← the mean of its rows

These turns are EM for a mixture of equally heavy spherical Gaussians as their variance goes to 0: a responsibility is
then 1 for the nearest centre and 0 for the others.
"""

from __future__ import annotations

import math
import sys
import warnings
from typing import Any, ClassVar, Literal, Self

import numpy as np
import torch
from sklearn import cluster
from sklearn.base import ClusterMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning as FewDistinct
from sklearn.metrics import pairwise_distances_argmin, pairwise_distances_argmin_min
from sklearn.metrics.pairwise import euclidean_distances
from torch import Tensor

from ...core import distributed
from ...core.declared import AMOUNT, COUNT, COUNTS, FLAG, Array, Arrays, Values, maybe
from ...core.draws import Refused
from ...core.errors import ConvergenceWarning, DataError, LikelyWarning
from ...core.learned import Learned
from ...core.plural import counted
from ...core.quiet import quiet
from ...core.random import seed_of
from ...core.spec import require
from ...core.validation import as_rows, as_weights

__all__ = ["KMeans"]


class KMeans(TransformerMixin, ClusterMixin, Learned):
    """KMeans(n_clusters=8, init="k-means++", n_init="auto", max_iter=300, tol=1e-4).

    The best of `n_init` runs is kept ("auto": 1 for k-means++, else 10). A cluster that loses its rows begins again at
    a row far from its centre; clusters that end without rows, because there are fewer distinct rows, are in `empty_`.
    `verbose` says in one line how the fit ended.

    >>> model = KMeans(2, random_state=0).fit([[0.0], [1.0], [10.0], [11.0]])
    >>> sorted(model.cluster_centers_.ravel().tolist()), model.inertia_
    ([0.5, 10.5], 1.0)
    >>> model.predict([[-3.0], [2.0]]) == model.labels_[:2]
    array([ True,  True])
    """

    log_prob = Refused("centres alone are not a density; use GaussianMixture(covariance='spherical').")
    sample = Refused("centres alone are not a density; use GaussianMixture(covariance='spherical').")

    _arrays: ClassVar[Arrays] = {
        "cluster_centers_": Array("K D", dtype=("float64", "float32")),
        "labels_": Array("*", dtype=("int32", "int64"), below="K"),
    }
    _values: ClassVar[Values] = {"inertia_": AMOUNT, "n_iter_": COUNT, "converged_": maybe(FLAG), "empty_": COUNTS}

    def __init__(
        self,
        n_clusters: int = 8,
        init: Literal["k-means++", "random"] | Any = "k-means++",
        n_init: int | Literal["auto"] = "auto",
        max_iter: int = 300,
        tol: float = 1e-4,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.n_clusters = n_clusters
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the centres of the rows. y is ignored."""
        self._forget()
        self._check_arguments()
        x = self._rows(X, reset=True)
        weight = as_weights(sample_weight, x)
        known = len(x) if weight is None else int((weight > 0).sum())
        if known < self.n_clusters:
            count = "1 sample" if known == 1 else f"{known} samples"
            raise DataError(f"X has {count}, fewer than n_clusters={self.n_clusters}; ask for fewer.")
        engine = cluster.KMeans(
            self.n_clusters,
            init=self._first_centres(x.shape[1]),
            n_init=self.n_init,
            max_iter=self.max_iter,
            tol=self.tol,
            random_state=distributed.agreed(seed_of(self.random_state)),
        )
        with quiet(FewDistinct):  # fewer distinct rows than clusters: said below
            engine.fit(x.numpy(), sample_weight=None if weight is None else weight.numpy())
        self.cluster_centers_, self.labels_ = engine.cluster_centers_, engine.labels_
        self.inertia_, self.n_iter_ = float(engine.inertia_), int(engine.n_iter_)
        if self.verbose and distributed.rank() == 0:
            print(f"KMeans: {counted(self.n_iter_, 'step')}, inertia {self.inertia_:.6g}", file=sys.stderr)
        self.converged_ = self.n_iter_ < self.max_iter or self._settled(x.numpy(), weight)
        if not self.converged_ and distributed.rank() == 0:
            warnings.warn(
                f"KMeans: the centres still moved after max_iter={self.max_iter} steps; raise max_iter or tol.",
                ConvergenceWarning,
                stacklevel=2,
            )
        rows = np.bincount(self.labels_, minlength=self.n_clusters)
        self.empty_ = np.flatnonzero(rows == 0).tolist()
        if self.empty_ and distributed.rank() == 0:
            warnings.warn(
                f"KMeans: {len(self.empty_)} of n_clusters={self.n_clusters} clusters have no rows, since X has only "
                f"{int((rows > 0).sum())} distinct ones; ask for fewer.",
                LikelyWarning,
                stacklevel=2,
            )
        return self

    def predict(self, X: Any) -> np.ndarray:
        """The cluster whose centre is nearest to each row."""
        return pairwise_distances_argmin(self._questioned(X), self.cluster_centers_)

    def transform(self, X: Any) -> np.ndarray:
        """The distance of each row from each centre, (n, K)."""
        return euclidean_distances(self._questioned(X), self.cluster_centers_)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """−Σ w ‖x − nearest centre‖²: more is better; on the training rows, −`inertia_`."""
        rows = self._questioned(X)
        _, distance = pairwise_distances_argmin_min(rows, self.cluster_centers_)
        weight = as_weights(sample_weight, torch.from_numpy(rows))
        return -float((distance**2).sum() if weight is None else weight.numpy() @ distance**2)

    # --- helpers ------------------------------------------------------------------------------------------------
    def _settled(self, x: np.ndarray, weight: Tensor | None) -> bool:
        """Whether one more turn would move the centres by no more than scikit-learn's rule allows: tol · Var(x)."""
        own = np.ones(len(x)) if weight is None else weight.numpy()
        mass = np.bincount(self.labels_, own, self.n_clusters)
        sums = np.stack([np.bincount(self.labels_, own * column, self.n_clusters) for column in x.T], 1)
        moved = sums[mass > 0] / mass[mass > 0, None] - self.cluster_centers_[mass > 0]
        rounding = 1e-12 * float(np.square(self.cluster_centers_).sum())
        return bool(np.square(moved).sum() <= self.tol * x.var(0).mean() + rounding)

    def _questioned(self, X: Any) -> np.ndarray:
        self._check_fitted()
        rows = self._rows(X, reset=False).numpy()
        return rows if rows.dtype == self.cluster_centers_.dtype else rows.astype(self.cluster_centers_.dtype)

    def _rows(self, X: Any, *, reset: bool) -> Tensor:
        x = as_rows(self, X, reset=reset)
        if x.ndim != 2:
            raise DataError(f"X has shape {tuple(x.shape)}; KMeans needs one vector a row: (n, d).")
        return x

    def _first_centres(self, columns: int) -> Any:
        if isinstance(self.init, str):
            return self.init
        centres = np.asarray(self.init, dtype=np.float64)
        if centres.shape != (self.n_clusters, columns) or not np.isfinite(centres).all():
            raise DataError(
                f"init has shape {centres.shape}; it must be finite numbers of shape ({self.n_clusters}, {columns}): "
                'a centre for each cluster; or "k-means++" or "random".'
            )
        return centres

    def _check_arguments(self) -> None:
        for name in ("n_clusters", "max_iter"):
            require(_whole(getattr(self, name)), self, name, "a positive integer")
        require(self.n_init == "auto" or _whole(self.n_init), self, "n_init", '"auto" or a positive integer')
        number = isinstance(self.tol, int | float | np.number) and 0 <= self.tol < math.inf
        require(number, self, "tol", "0 or a positive number")
        if isinstance(self.init, str):
            require(self.init in ("k-means++", "random"), self, "init", '"k-means++", "random" or an array of centres')

    def _dimensions(self) -> dict[str, Any]:
        return super()._dimensions() | {"K": self.n_clusters}

    def _describe(self) -> dict[str, Any]:
        description = super()._describe()
        if not isinstance(self.init, str):  # an array would count as code
            description["params"]["init"] = np.asarray(self.init, dtype=float).tolist()
        return description


def _whole(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool) and bool(value >= 1)
