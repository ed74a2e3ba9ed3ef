"""What an inference is given (a problem) and what it promises (a posterior).

log p(θ | data) = Σᵢ wᵢ log pᵢ(θ) + log p(θ) + const,      pᵢ = p(yᵢ | η(xᵢ; θ))   or   p(xᵢ; θ)
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import Tensor, nn

from ..core.spec import Spec
from .dataset import Batch, Dataset
from .description import Description
from .objective import Conditional, Objective
from .posterior import Posterior

if TYPE_CHECKING:
    from ..likelihoods import Likelihood
    from ..priors import Prior, Rates

__all__ = ["Inference", "Problem"]

PREFIX = "network."
"""Under which the predictor holds the network; a prior does not see it."""
SMALL = 100_000
"""Parameters up to which a copy of a new module is kept, so that others are copied and not built."""


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
    vocabulary: Any = None
    """What token numbers mean, where rows are texts."""
    title: str = "fit"
    verbose: bool = False
    adversary: Any = None
    """Who changes the rows of a batch against the model, where training is adversarial."""

    def module(self, seed: int | None = None) -> nn.Module:
        """A new module of the data's dtype; that of the problem's own seed is built once, and copied if small."""
        if seed is not None and seed != self.seed:
            return self._placed(self.build(seed))
        description = self.description
        kept = self.__dict__.get("_built")
        if kept is not None and description.size <= SMALL:
            return self._placed(copy.deepcopy(kept))
        kept = self.__dict__.pop("_built", None)
        return self._placed(self.build(self.seed) if kept is None else kept)

    def _placed(self, module: nn.Module) -> nn.Module:
        return module.to(self.data.dtype).to(self.data.x.device)

    @cached_property
    def description(self) -> Description:
        """What inferences ask of the module before they train it, from the first one that is built."""
        module = self.build(self.seed)
        self.__dict__["_built"] = module
        return Description.of(module)

    @cached_property
    def penalties(self) -> dict[str, Rates | None]:
        """The prior's penalty rates of each trained parameter; None where it is of another form."""
        return {name: self.rates(name, self.description.like(name)) for name in self.description.trainable}

    @property
    def likelihood(self) -> Likelihood:
        """The likelihood of targets; only inferences that need one may ask."""
        assert isinstance(self.objective, Conditional)
        return self.objective.likelihood

    def log_likelihood(self, module: nn.Module, batch: Batch) -> Tensor:
        """Σ w log p over a batch."""
        return self.objective.log_likelihood(module(*self.objective.inputs(batch)), batch)

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
        """A copy with some parts changed; what is known of the module goes with it, unless that changes too."""
        changed = replace(self, **changes)
        kept = ["description", *(["penalties"] if "prior" not in changes else [])]
        if "build" in changes:
            return changed
        changed.__dict__.update({name: self.__dict__[name] for name in kept if name in self.__dict__})
        if changed.seed == self.seed and "_built" in self.__dict__:
            small = self.description.size <= SMALL  # a large module is not copied, so only one may have it
            changed.__dict__["_built"] = self.__dict__["_built"] if small else self.__dict__.pop("_built")
        return changed


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
    descends: ClassVar[bool] = False
    """Whether it goes on, by gradients, from the parameters of the module that it is given."""

    def fit(self, problem: Problem) -> Posterior:
        """The posterior of the problem's parameters."""
        raise NotImplementedError(f"{type(self).__name__} must fit")

    def fit_members(self, problem: Problem, seeds: list[int]) -> Posterior:
        """One fit for each seed, as members of one posterior. An override trains them as one program."""
        return Posterior.join([self.fit(problem.with_(seed=seed)) for seed in seeds])
