"""What a model with hidden variables gives to be fitted: its likelihood with z summed out, and steps of EM.

    log p(x | θ) = log Σ_z p(x, z | θ)

EM needs expectations of what is hidden and the best parameters given them. Every other inference needs the marginal
log-probability of each row as a differentiable function of free parameters φ, which the model maps to its own θ(φ).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from ..posterior import Posterior

__all__ = ["Latent", "LatentFit", "Params"]

Params = dict[str, Tensor]
"""Tensors by name. While fitting, each has a leading axis of starts: several starts are one program."""


class Latent(ABC):
    """A model with hidden variables z, bound to its data. S starts are fitted at once: θ has a leading axis of S.

    Under `torchrun` each process sees only its part of the rows (`likely.core.distributed.shard`); sums over rows
    become sums over all processes before `maximise` sees them. All else must be the same on every process.
    """

    count: float = 1.0
    """The total weight of all rows, in all processes: a gain per row is a gain divided by it."""
    differentiable: bool = False
    """Whether the model also gives `to_free`, `from_free`, `rows` and `row_log_prob`, for inferences other than EM."""

    work: float = 0.0
    """Multiply-adds of the largest single operation of a step (see `core.threads`)."""

    @abstractmethod
    def start(self, seeds: list[int]) -> Params:
        """First parameters, one set for each seed."""

    @abstractmethod
    def expect(self, params: Params) -> tuple[Params, Tensor]:
        """The E-step: Σ E[T(x, z) | x, θ] over this process's rows, and their log p(x | θ), of shape (S,)."""

    @abstractmethod
    def maximise(self, params: Params, statistics: Params) -> Params:
        """The M-step: θ that maximises the expected log p(x, z | θ), given the sums over all rows."""

    def log_prior(self, params: Params) -> Tensor | float:
        """log p(θ), of shape (S,), for models that have one: EM then ends at its posterior mode."""
        return 0.0

    @property
    def may_empty(self) -> bool:
        """Whether a value of z may have probability 0 and leave the data probable, as one component of several."""
        return False

    @property
    def width(self) -> int:
        """About how many values are computed per row, for one set of parameters."""
        return 1

    def finished(self, params: Params) -> Params:
        """Parameters (…) of one set with all that the model keeps beside them."""
        return params

    # --- as a density ---------------------------------------------------------------------------------------------
    def to_free(self, params: Params) -> Params:
        """φ: real numbers of order 1 for θ (S, …), such that `from_free` gives θ back."""
        raise NotImplementedError

    def from_free(self, free: Params) -> Params:
        """θ(φ), differentiable."""
        raise NotImplementedError

    def rows(self) -> tuple[Any, Tensor | None]:
        """The data as rows, and their weights (None if all are 1)."""
        raise NotImplementedError

    def total_rows(self) -> float:
        """Σ of the weights of the rows."""
        x, weight = self.rows()
        return float(len(x) if weight is None else weight.sum())

    def row_log_prob(self, params: Params, x: Any) -> Tensor:
        """log p(x | θ) of each row for each of S sets of parameters, (n, S), differentiable in θ."""
        raise NotImplementedError

    def value_and_grad(self, free: Params, x: Any, weight: Tensor | None, fraction: float) -> tuple[Tensor, Params]:
        """Σ w log p(x | θ(φ)) + fraction · log p(θ(φ)), (S,), and its gradient in φ (S, …), without a graph to keep.

        An override is a closed form, tested against this one. By Fisher's identity it needs the posterior of what is
        hidden and nothing else: ∇ log p(x) = E[∇ log p(x, z) | x].
        """
        with torch.enable_grad():
            leaves = {name: value.detach().requires_grad_() for name, value in free.items()}
            params = self.from_free(leaves)
            rows = self.row_log_prob(params, x)
            value = rows.sum(0) if weight is None else weight.to(rows) @ rows
            value = value + fraction * self.log_prior(params)
            gradients = torch.autograd.grad(value.sum(), list(leaves.values()))
        return value.detach(), dict(zip(leaves, gradients, strict=True))


class LatentFit:
    """Where a fit ended: the best parameters, all members if there are several, and the way there.

    `trace` is what the fit recorded: for EM the ELBO after each E-step (where it equals log p(x | θ), plus log p(θ) if
    there is a prior), which never falls. `finals` are the last values of all starts. `members` are all parameter
    vectors (S, …) that predictions average over, with their weights; None if there is only one. `converged` is None
    where no rule says: after a given number of steps, or of chains too short to tell whether they agree.
    """

    def __init__(
        self,
        params: Mapping[str, Tensor],
        trace: Tensor,
        finals: Tensor,
        converged: bool | None,
        members: Params | None = None,
        posterior: Posterior | None = None,
    ) -> None:
        self.params = dict(params)
        self.trace = trace
        self.finals = finals
        self.converged = converged
        self.members = members
        self.posterior = posterior

    @property
    def n_iter(self) -> int:
        """How many steps were made."""
        return max(len(self.trace) - 1, 0)
