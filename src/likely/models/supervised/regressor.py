"""Regressor: targets are numbers; the answer is the mean of the predictive distribution."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import torch
from sklearn.base import RegressorMixin
from torch import Tensor

from ...core.errors import DataError, LikelyWarning, SpecError
from ...core.spec import as_spec
from ...core.validation import check_length, check_level
from ...data.rows import Inputs
from ...likelihoods import Likelihood, Normal
from ...networks import Linear
from ...probability.joint import point
from ...probability.quantiles import quantile
from ..labels import as_entries
from .base import Supervised, as_array
from .formulas import unpacked
from .offset import part_of
from .targets import by_part, check_targets

__all__ = ["Regressor"]

ENOUGH, FEW, DECIDES = 20, 0.005, 0.9
"""Rows from which on so small a fraction of them (or one) is few, and the part of all squares that decides a fit."""


class Regressor(RegressorMixin, Supervised):
    """p(y | x) for numbers y: likelihood × network × prior × inference.

    The defaults are least squares in closed form. y is (n,) or (n, *positions): several outputs, or a number for each
    token or pixel. NaN in y is a missing target.

    A network that is not linear standardises its inputs by the training rows, so that raw columns will do; with
    `standardise=False` it takes them as they are. X may be texts, a list of strings: see `Classifier`.

    `inference="auto"` cross-fits a network that is not linear: on a table eight of them (four from 1,000 rows on), each
    stopped by a fold that the others learn from, and an affine map with the weight that held-out rows give it, whose
    mixture answers; on sequences five, each stopped by a tenth of the rows of its own; on images and graphs one.
    `inference=MAP()` trains one network on all rows.

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
        prior: Any = "auto",
        inference: Any = "auto",
        random_state: Any = None,
        device: Any = "auto",
        verbose: bool = False,
        standardise: bool = True,
        tokens: Any = "auto",
    ) -> None:
        self.likelihood = likelihood
        self.network = network
        self.prior = prior
        self.inference = inference
        self.random_state = random_state
        self.device = device
        self.verbose = verbose
        self.standardise = standardise
        self.tokens = tokens

    def predict(self, X: Any, offset: Any = None, exposure: Any = None) -> Any:
        """The mean of p(y | x, data), shaped like y; where rows differ in their positions, a list of arrays."""
        x = self._rows(X)
        return self._parted(self._mean(x, self._offset(x, offset, exposure)), x)

    def _mean(self, x: Inputs, offset: Tensor | None = None) -> np.ndarray:
        def answer(rows: Inputs, entries: slice) -> np.ndarray:
            own = part_of(offset, entries)
            mean = self._point(rows, "mean", own)
            return as_array((point(self._predictive(rows, own)) if mean is None else mean).double())

        return self._in_blocks(x, answer)

    def predict_interval(self, X: Any, level: float = 0.9, offset: Any = None, exposure: Any = None) -> tuple[Any, Any]:
        """The central interval that holds y with probability `level`: arrays (lower, upper) shaped like y."""
        check_level(level)
        x = self._rows(X)
        shift = self._offset(x, offset, exposure)
        tail = (1 - level) / 2

        def answer(rows: Inputs, entries: slice) -> np.ndarray:
            distribution = self._predictive(rows, part_of(shift, entries))
            return np.stack([as_array(quantile(distribution, p)) for p in (tail, 1 - tail)], 1)

        bounds = self._in_blocks(x, answer)
        return self._parted(bounds[:, 0], x), self._parted(bounds[:, 1], x)

    def score(
        self, X: Any, y: Any = None, sample_weight: Any = None, offset: Any = None, exposure: Any = None
    ) -> float:
        """R² = 1 − Σ(y − mean)² / Σ(y − ȳ)² over the targets that are not missing, averaged over several outputs.

        X may be a formula, which has the targets.
        """
        from sklearn.metrics import r2_score  # slow to import, and not needed to fit or to predict

        X, y, sample_weight, offset, exposure = unpacked(X, y, sample_weight, offset, exposure)
        x = self._rows(X)
        predicted = self._mean(x, self._offset(x, offset, exposure))
        given = self._read_targets(y, x, reset=False)
        targets = given.numpy().reshape(len(predicted), -1)
        predicted = predicted.reshape(targets.shape)
        weight = self._weights(sample_weight, x, tuple(given.shape[1:]))
        if weight is not None and weight.ndim > 1:
            raise DataError("R² takes a sample_weight for each row, (n,), not for each position.")
        counts = np.ones(len(predicted)) if weight is None else weight.numpy()
        if not np.isnan(targets).any():
            return float(r2_score(targets, predicted, sample_weight=counts))
        scores = []
        for target, mean in zip(targets.T, predicted.T, strict=True):
            seen = ~np.isnan(target) & (counts > 0)
            if seen.any():
                scores.append(r2_score(target[seen], mean[seen], sample_weight=counts[seen]))
        if not scores:
            raise DataError("y has no target to score: every one is missing, or has no sample_weight.")
        return float(np.mean(scores))

    def _likelihood(self) -> Likelihood:
        likelihood = as_spec(self.likelihood, Likelihood, "likelihood")
        if not likelihood.numeric:
            raise SpecError(f"likelihood={likelihood!r} describes classes, not numbers; use Classifier.")
        return likelihood

    def _targets(self, y: Any, rows: int, positions: tuple[int, ...] | None, *, reset: bool) -> Tensor:
        if y is None:
            raise DataError(f"{type(self).__name__} requires y to be passed, but the target y is None.")
        if isinstance(y, Tensor):
            y = y.detach().cpu().numpy()
        if getattr(getattr(y, "dtype", None), "kind", "") in ("M", "m"):
            raise DataError("y has dates; give numbers instead, such as days since a first date.")
        likelihood = self._likelihood()
        array = as_entries(by_part(likelihood, y), dtype=np.float64)
        check_length(array, rows)
        if array.ndim < 1 + likelihood.event_dim:
            raise DataError(f"y has shape {array.shape}; {likelihood!r} needs a vector for each row: (n, d).")
        if not reset:
            check_targets(self, "targets", array.shape, positions)
        return torch.from_numpy(np.array(array, order="C"))  # a copy: reversed or read-only memory suits torch badly

    def _informed(self, x: Inputs, targets: Tensor, weight: Tensor | None) -> Inputs:
        _warn_of_constant(targets)
        likelihood = self.likelihood_
        if likelihood.least_squares and likelihood.known_scale() is None and targets.ndim < 3:
            for column, y in enumerate(targets.reshape(len(targets), -1).unbind(1)):
                own = weight if weight is None or weight.ndim == 1 else weight[:, column]
                _warn_of_few("y" if targets.ndim == 1 else f"column {column} of y", y, own)
        return x

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


def _warn_of_constant(y: Tensor) -> None:
    """Targets that are all the same leave nothing to explain, and no scatter to learn a scale from."""
    seen = y[~y.isnan()]
    if len(y) > 1 and len(seen) and bool((seen == seen[0]).all()):
        warnings.warn(
            f"y is {float(seen[0])} in every row, so there is nothing to explain: the model answers with that number, "
            "R² says nothing, and a learned scale is as small as it can be. Is it the right column?",
            LikelyWarning,
            stacklevel=4,
        )


def _warn_of_few(name: str, y: Tensor, weight: Tensor | None) -> None:
    """A few targets with nearly all of Σ w (y − ȳ)² decide the fit by squares: a typo of 1000 times too much does."""
    counts = ~y.isnan() if weight is None else ~y.isnan() & (weight > 0)
    seen, own = y[counts], torch.ones(()) if weight is None else weight[counts]
    gaps = (seen - seen.median()).abs() if len(seen) else seen
    if len(seen) < ENOUGH or not bool(gaps.median()):  # where most are the same, few are all that is to be learned
        return
    squares = own * (gaps / gaps.amax()).square()  # which cannot overflow
    parts = squares.topk(max(1, int(FEW * len(seen)))).values.cumsum(0) / squares.sum()
    if float(parts[-1]) > DECIDES:
        few = int((parts <= DECIDES).sum()) + 1
        row, one, part = int(counts.nonzero()[int(gaps.argmax()), 0]), few == 1, float(parts[few - 1])
        warnings.warn(
            f"{few} of the {len(seen):,} targets in {name} {'has' if one else 'have'} {100 * part:.4g} % of their "
            f"squares about the median (the furthest is {float(y[row]):.6g} at row {row}): least squares follows "
            f"{'it' if one else 'them'} and not the others. Is it an error? likelihood=StudentT() follows the others.",
            LikelyWarning,
            stacklevel=4,
        )
