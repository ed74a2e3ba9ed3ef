"""What an inference is given (a problem) and what it promises (a posterior).

log p(θ | data) = Σᵢ wᵢ log pᵢ(θ) + log p(θ) + const,      pᵢ = p(yᵢ | η(xᵢ; θ))   or   p(xᵢ; θ)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import Tensor, nn

from ..core.spec import Spec
from .dataset import Batch, Dataset
from .objective import Conditional, Objective
from .posterior import Posterior

if TYPE_CHECKING:
    from ..likelihoods import Likelihood
    from ..priors import Prior, Rates

__all__ = ["Inference", "Problem"]

PREFIX = "network."
"""Under which the predictor holds the network; a prior does not see it."""


@dataclass(frozen=True)
class Problem:
    """A module with new parameters, the log-probability of each row, the log-prior, and the data."""

    build: Callable[[int], nn.Module]
    """A new module with parameters drawn from this seed."""
    objective: Objective
    """From what the module gives for a batch to log-probabilities of its rows."""
    prior: Prior
    data: Dataset
    seed: int
    seeded: bool = True
    """Whether the user chose the seed; if not, a resumed fit may take that of its checkpoint."""
    encode: Callable[[Any, Any, Any], Dataset] | None = None
    """Turns raw (X, y, sample_weight) into a dataset like `data`, for validation rows given by the user."""
    title: str = "fit"
    verbose: bool = False

    def module(self, seed: int | None = None) -> nn.Module:
        """A new module of the data's dtype."""
        return self.build(self.seed if seed is None else seed).to(self.data.dtype).to(self.data.x.device)

    @property
    def likelihood(self) -> Likelihood:
        """The likelihood of targets; only inferences that need one may ask."""
        assert isinstance(self.objective, Conditional)
        return self.objective.likelihood

    def log_likelihood(self, module: nn.Module, batch: Batch) -> Tensor:
        """Σ w log p over a batch."""
        return self.objective.log_likelihood(module(*self.objective.inputs(batch)), batch)

    @cached_property
    def has_prior(self) -> bool:
        """Whether the smooth part of the prior says anything: a flat one need not be evaluated at each step."""
        rates = [self.rates(name, value) for name, value in self.module().named_parameters()]
        return any(rate is None or rate.l2 for rate in rates)

    def log_prior(self, parameters: Mapping[str, Tensor]) -> Tensor:
        """log p(θ). Parameters are known to a prior by the names that the network itself gives them."""
        return self.prior.log_prob(_own_names(parameters))

    def smooth_log_prior(self, parameters: Mapping[str, Tensor]) -> Tensor:
        """log p(θ) without its L1 terms."""
        return self.prior.smooth(_own_names(parameters))

    def rates(self, name: str, value: Tensor) -> Rates | None:
        """The prior's penalty rates of one parameter."""
        return self.prior.rates(name.removeprefix(PREFIX), value)

    def log_joint(self, module: nn.Module) -> Tensor:
        """log p(y, θ | x) on all rows, without gradients: what MAP maximises."""
        with torch.no_grad():
            total = sum(self.log_likelihood(module, batch).double() for batch in self.data.blocks())
            return total + self.log_prior(dict(module.named_parameters())).double()

    def with_(self, **changes: Any) -> Problem:
        """A copy with some parts changed."""
        return replace(self, **changes)


def _own_names(parameters: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix(PREFIX): value for name, value in parameters.items()}


class Inference(Spec, axis="inference"):
    """How θ is found: takes a problem, returns a posterior."""

    dtype: ClassVar[torch.dtype] = torch.float32
    """float32 for gradient training, float64 for exact solves."""
    needs: ClassVar[frozenset[str]] = frozenset({"rows"})
    """The questions that a problem must answer: names in `likely.inference.objective.QUESTIONS`."""
    integrates: ClassVar[bool] = False
    """Whether it averages over θ instead of choosing one: then the posterior must be proper."""

    def fit(self, problem: Problem) -> Posterior:
        """The posterior of the problem's parameters."""
        raise NotImplementedError(f"{type(self).__name__} must fit")

    def fit_members(self, problem: Problem, seeds: list[int]) -> Posterior:
        """One fit for each seed, as members of one posterior. An override trains them as one program."""
        return Posterior.join([self.fit(problem.with_(seed=seed)) for seed in seeds])
