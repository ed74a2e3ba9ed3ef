"""Regressor: targets are numbers; the answer is the mean of the predictive distribution."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from sklearn.base import RegressorMixin
from sklearn.utils import check_array
from torch import Tensor

from ..core.errors import DataError, SpecError
from ..core.spec import as_spec
from ..likelihoods import Likelihood, Normal
from ..networks import Linear
from ..priors import Flat
from .supervised import Supervised

__all__ = ["Regressor"]


class Regressor(RegressorMixin, Supervised):
    """p(y | x) for numbers y: likelihood × network × prior × inference.

    The defaults are least squares in closed form. y is (n,) or (n, *positions): several outputs, or a number for each
    token or pixel. NaN in y is a missing target.

    >>> from likely.likelihoods import Poisson
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [1.0, 3.0, 5.0, 7.0]
    >>> Regressor().fit(X, y).predict([[4.0]]).round(6)
    array([9.])
    >>> Regressor(likelihood=Poisson()).fit(X, [1, 2, 4, 8]).predict([[4.0]]).round(2)
    array([16.])
    """

    def __init__(
        self,
        likelihood: Any = Normal(),  # noqa: B008 (a frozen value)
        network: Any = Linear(),  # noqa: B008
        prior: Any = Flat(),  # noqa: B008
        inference: Any = "auto",
        random_state: Any = None,
        device: Any = "auto",
        verbose: bool = False,
    ) -> None:
        self.likelihood = likelihood
        self.network = network
        self.prior = prior
        self.inference = inference
        self.random_state = random_state
        self.device = device
        self.verbose = verbose

    def predict(self, X: Any) -> np.ndarray:
        """The mean of p(y | x, data), shaped like y."""
        return self.predict_dist(X).mean.numpy()

    def _likelihood(self) -> Likelihood:
        likelihood = as_spec(self.likelihood, Likelihood, "likelihood")
        if not likelihood.numeric:
            raise SpecError(f"likelihood={likelihood!r} describes classes, not numbers; use Classifier.")
        return likelihood

    def _targets(self, y: Any, rows: int, *, reset: bool) -> Tensor:
        if y is None:
            raise DataError(f"{type(self).__name__} requires y to be passed, but the target y is None.")
        if isinstance(y, Tensor):
            y = y.detach().cpu().numpy()
        array = check_array(
            y, dtype=np.float64, ensure_2d=False, allow_nd=True, ensure_all_finite="allow-nan", input_name="y"
        )
        if array.ndim == 0 or len(array) != rows:
            found = len(array) if array.ndim else "a single value"
            raise DataError(f"y has {found} rows, but X has {rows}; inconsistent numbers of samples.")
        event = self._likelihood().event_dim
        if array.ndim < 1 + event:
            raise DataError(f"y has shape {array.shape}; {self.likelihood!r} needs a vector for each row: (n, d).")
        if not reset and tuple(array.shape[1 : array.ndim - event]) != self.positions_:
            raise DataError(f"y has shape {array.shape}; the model was fitted on targets (n, {self.positions_}).")
        return torch.from_numpy(array)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags
