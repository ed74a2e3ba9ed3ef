"""What a latent-variable model gives to be fitted: expectations of what is hidden, and the best parameters given them.

log p(x | θ) = log Σ_z p(x, z | θ)
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping

from torch import Tensor

from ...core.spec import Spec

__all__ = ["Latent", "LatentFit", "LatentInference", "Params"]

Params = dict[str, Tensor]
"""Tensors by name. While fitting, each has a leading axis of starts: several starts are one program."""


class Latent(ABC):
    """A model with hidden variables z, bound to its data. S starts are fitted at once: θ has a leading axis of S.

    Under `torchrun` each process looks at its share of the rows only (`likely.core.distributed.share`); sums over rows
    become sums over all processes before `maximise` sees them. All else must be the same on every process.
    """

    count: float = 1.0
    """The total weight of all rows, in all processes: a gain per row is a gain divided by it."""

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


class LatentFit:
    """Where a fit ended: the parameters of the best start, and the way there.

    `trace` is the ELBO after each E-step (where it equals log p(x | θ), plus log p(θ) if there is a prior): it never
    falls. `finals` are the last values of all starts.
    """

    def __init__(self, params: Mapping[str, Tensor], trace: Tensor, finals: Tensor, converged: bool) -> None:
        self.params = dict(params)
        self.trace = trace
        self.finals = finals
        self.converged = converged

    @property
    def n_iter(self) -> int:
        """How many M-steps were made."""
        return len(self.trace) - 1


class LatentInference(Spec, axis="latent_inference"):
    """How the parameters of a latent-variable model are found."""

    def run(self, model: Latent, seed: int, *, title: str = "EM", verbose: bool = False) -> LatentFit:
        """The best parameters that were found."""
        raise NotImplementedError(f"{type(self).__name__} must run")
