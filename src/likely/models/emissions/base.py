"""What an emission is: K distributions p(x | k) of one row x, in S variants that are fitted side by side.

log p(x | k, θ) for each k;   the M-step for weights w:   θₖ ← argmax Σᵢ wᵢₖ log p(xᵢ | k, θ)
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from ...core.declared import Arrays, check_arrays
from ...core.errors import ModelFileError

__all__ = ["Emission", "Params"]

Params = dict[str, Tensor]
"""Parameters or sums by name; each tensor is (S, K, …) while fitting: S starts of K components."""


class Emission(ABC):
    """A family of K row distributions. Weights w and log-probabilities are (n, S, K).

    It is used in three steps: `bind` once to the data, `accumulate` over blocks of rows, `maximise` from the sums.
    """

    smoothing: float = 0.0
    """ε: the weight with which `maximise` lets each component see all rows. Then EM raises log p(x | θ) +
    ε Σₖ meanᵢ log p(xᵢ | k) instead of log p(x | θ); the E-step, which has all log-probabilities, adds that term."""

    @abstractmethod
    def check(self, x: Tensor, name: str = "X") -> None:
        """Raise a `DataError` for the first value that no component allows."""

    @abstractmethod
    def bind(self, x: Tensor, weight: Tensor | None) -> None:
        """Learn from all rows, once, what M-steps need beside the sums: scales of the data, floors, the background."""

    @abstractmethod
    def log_prob(self, params: Params, x: Tensor) -> Tensor:
        """log p(x | k): (n, S, K). Missing values (NaN) are marginalised."""

    def background(self, params: Params, x: Tensor, log_prob: Tensor, fraction: Tensor) -> Tensor:
        """What smoothing adds to the value that EM raises, (S,), for rows with these fractions (n,) of the weight."""
        return self.smoothing * (fraction @ log_prob.flatten(1)).unflatten(-1, log_prob.shape[1:]).sum(-1)

    @abstractmethod
    def zeros(self, starts: int, components: int) -> Params:
        """Sums over no rows."""

    @abstractmethod
    def accumulate(self, totals: Params, params: Params | None, x: Tensor, weight: Tensor, rows: slice) -> None:
        """Add the statistics of a block of rows, `rows` of all those that were bound, to the totals, in place.

        `params` are those of the E-step; None before the first, where the weights are all there is.
        """

    @abstractmethod
    def maximise(self, params: Params | None, totals: Params) -> Params:
        """The best parameters for the sums over all rows; those of a component without weight are the background's."""

    # --- as a density of free parameters ------------------------------------------------------------------------
    @abstractmethod
    def to_free(self, params: Params) -> Params:
        """φ (S, …) for parameters (S, K, …): real numbers, 0 for the whole data, of order 1 in units of the data."""

    @abstractmethod
    def from_free(self, free: Params) -> Params:
        """The parameters that φ stands for, differentiable; without what `log_prob` keeps beside them."""

    @abstractmethod
    def smooth_log_prob(self, params: Params, x: Tensor) -> Tensor:
        """log p(x | k) as `log_prob` gives it, (n, S, K), but differentiable in the parameters."""

    def log_prob_and_pull(self, free: Params, x: Tensor) -> tuple[Tensor, Callable[[Tensor], Params]]:
        """log p(x | k, φ), (n, S, K), and a function from ∂ / ∂ log p (n, S, K) to the gradient in φ.

        An override is a closed form, tested against this one.
        """
        with torch.enable_grad():
            leaves = {name: value.detach().requires_grad_() for name, value in free.items()}
            log_prob = self.smooth_log_prob(self.from_free(leaves), x)

        def pull(weight: Tensor) -> Params:
            gradients = torch.autograd.grad(log_prob, list(leaves.values()), weight)
            return dict(zip(leaves, gradients, strict=True))

        return log_prob.detach(), pull

    def finished(self, params: Params) -> Params:
        """Parameters (K, …) of one set with all that `log_prob` wants beside them."""
        return params

    @abstractmethod
    def sample(self, params: Params, component: Tensor) -> Tensor:
        """One row from each of these components (n,), by torch's global generator; params here are (K, …)."""

    @abstractmethod
    def expected(self, params: Params, x: Tensor, responsibility: Tensor) -> Tensor:
        """E[x | what is seen of it] under responsibilities (n, K); of labels the most probable. Params are (K, …).

        Only the missing values of the rows (n, d) have a meaning.
        """

    def filled(self, params: Params, x: Tensor, component: Tensor) -> Tensor:
        """x with each missing value drawn, given its component and what is seen, by torch's global generator."""
        return torch.where(x.isnan(), self.sample(params, component), x)

    def label_columns(self) -> Tensor | None:
        """Which columns (d,) hold labels, whose distances mean nothing; None where all columns are measured."""
        return None

    @abstractmethod
    def free(self, components: int) -> int:
        """How many free parameters K components have, for AIC and BIC."""

    # --- files --------------------------------------------------------------------------------------------------
    @property
    @abstractmethod
    def width(self) -> int:
        """How many columns a row has."""

    @abstractmethod
    def arrays(self) -> Arrays:
        """The parameters of K components of rows with D columns, as a file holds them."""

    def check_params(self, params: Params, components: int, columns: int) -> None:
        """Raise a `ModelFileError` for parameters (K, …) that are not those of K components of such rows."""
        if self.width != columns:
            raise ModelFileError(f"The file has distributions of {self.width} columns for rows of {columns}.")
        known, sizes = self.arrays(), {"K": components, "D": columns}
        strange = sorted(set(params) - set(known))
        if strange:
            raise ModelFileError(f"The file has parameters that no {type(self).__name__} has: {strange[:3]}.")
        check_arrays(known, {name: value.numpy() for name, value in params.items()}, sizes, type(self).__name__)

    @abstractmethod
    def to_json(self) -> dict[str, Any]:
        """Plain data, for model files."""
