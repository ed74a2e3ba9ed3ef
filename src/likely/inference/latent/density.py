"""A model with hidden variables as a density: free parameters in, log-probabilities of rows out.

    log p(x; φ) = log Σ_z p(x, z | θ(φ)),      φ real and of order 1,   θ(φ) on its simplex, positive, or a covariance

A prior speaks of φ. A flat one makes MAP the maximum of the likelihood, which is where EM ends too.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, Self

import torch
from torch import Tensor, nn

from ...core import distributed
from ...core.errors import SpecError
from ...core.random import seed_of
from ...core.spec import as_spec
from ...core.threads import threads_for
from ...priors import Flat, Normal, Prior
from ..dataset import Dataset
from ..objective import RowDensity, refuse
from ..parameters import OverMembers
from ..posterior import Posterior
from ..problem import Inference, Problem
from ..work import rows_per_step
from .latent import Latent, LatentFit, Params

__all__ = ["HiddenDensity", "LatentDensity", "fit_latent", "prior_of"]

WIDE = 3.0
"""The standard deviation of each φ under `prior="auto"`, for inferences that integrate over it: wide, but proper."""
PER_VALUE = 16.0
"""What an exponential of one value costs, in multiply-adds."""


class HiddenDensity(RowDensity):
    """The objective of a model with hidden variables: exact rows if it is differentiable, and expectations for EM."""

    def __init__(self, name: str, latent: Latent) -> None:
        super().__init__(name, expectations=True)
        self.latent, self.may_empty = latent, latent.may_empty
        if not latent.differentiable:
            self.offers = frozenset({"expectations"})


class LatentDensity(nn.Module):
    """log p(x; φ) of each row. The parameters are φ by name and start where EM would; without a seed there are none."""

    def __init__(self, latent: Latent, seed: int | None = None) -> None:
        super().__init__()
        self.latent, self.width = latent, latent.width
        self.total = latent.total_rows() if latent.differentiable else 1.0
        start = {} if seed is None else latent.to_free(latent.start([seed]))
        self.names = {name.replace(".", "_"): name for name in start}
        self.shapes = {own: start[name].shape[1:] for own, name in self.names.items()}
        for own, name in self.names.items():  # at least two axes: to a prior, a vector would be a bias
            value = start[name][0].clone()
            self.register_parameter(own, nn.Parameter(value if value.ndim > 1 else value.reshape(1, -1)))

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """The bound data are shared: a copy is of the parameters alone."""
        twin = copy.copy(self)
        parameters = {name: nn.Parameter(value.detach().clone()) for name, value in self.named_parameters()}
        twin.__dict__ = self.__dict__ | {"_parameters": parameters}
        return twin

    def natural(self, parameters: Mapping[str, Tensor]) -> Params:
        """θ (S, …) of parameters (S, …) by name."""
        return self.latent.from_free(self._free(parameters))

    def _free(self, parameters: Mapping[str, Tensor]) -> Params:
        """φ by the names and in the shapes of the model."""
        free = {own: parameters[own] for own in self.names}
        return {name: free[own].reshape(len(free[own]), *self.shapes[own]) for own, name in self.names.items()}

    def of_members(self, parameters: Mapping[str, Tensor], x: Any) -> Tensor:
        """log p of the same rows for many parameter vectors at once: (S, n)."""
        params = self.natural(parameters)
        log_prior = self.latent.log_prior(params)
        value = self.latent.row_log_prob(params, x).T
        if isinstance(log_prior, Tensor):  # a part of it for each row, so that batches add up to the whole
            value = value + log_prior.unsqueeze(-1) / self.total
        return value

    def value_and_grad_of_members(
        self, parameters: Mapping[str, Tensor], x: Any, weight: Tensor | None
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """Σ w log p over the rows for many parameter vectors at once, (S,), and its gradient by name."""
        fraction = float(len(x) if weight is None else weight.sum()) / self.total
        value, gradient = self.latent.value_and_grad(self._free(parameters), x, weight, fraction)
        return value, {own: gradient[name].reshape(parameters[own].shape) for own, name in self.names.items()}

    def forward(self, x: Any) -> Tensor:
        return self.of_members({name: value.unsqueeze(0) for name, value in self.named_parameters()}, x)[0]


def prior_of(prior: Any, inference: Inference) -> Prior:
    """The prior of φ: "auto" is flat for a point estimate, and wide but proper for what integrates over φ.

    >>> from likely.inference import EM, HMC
    >>> prior_of("auto", EM()), prior_of("auto", HMC())
    (Flat(), Normal(scale=3.0))
    """
    if isinstance(prior, str) and prior == "auto":
        return Normal(WIDE) if inference.integrates else Flat()
    return as_spec(prior, Prior, "prior")


def fit_latent(
    inference: Any, latent: Latent, prior: Any, *, name: str, random_state: Any, verbose: bool = False
) -> LatentFit:
    """Fit a bound model by any inference that can; one that cannot says so."""
    method = as_spec(inference, Inference, "inference")
    objective = HiddenDensity(name, latent)
    refuse(method, objective)
    belief = prior_of(prior, method)
    if method.needs == {"expectations"} and not isinstance(belief, Flat):
        who = type(method).__name__
        raise SpecError(f"{who} maximises the likelihood, so prior={belief!r} has no effect; use MAP.")
    x, weight = latent.rows() if latent.differentiable else (torch.empty(0), None)
    dtype = torch.float64  # by gradients too: a recursion that begins with a wide state has no digits left in float32
    problem = Problem(
        build=lambda seed: LatentDensity(latent, seed),
        objective=objective,
        prior=belief,
        data=Dataset(x, None, None if weight is None else weight.to(dtype), dtype),
        seed=distributed.agreed(seed_of(random_state)),
        seeded=random_state is not None,
        title=name,
        verbose=bool(verbose),
    )
    with threads_for(PER_VALUE * latent.width * rows_per_step(method, len(x))):
        return _ended(method.fit(problem), latent, problem)


def _ended(posterior: Posterior, latent: Latent, problem: Problem) -> LatentFit:
    """The members of a posterior as parameters θ; the best of them is the one most probable given the data."""
    module = posterior.module
    assert isinstance(module, LatentDensity)
    if "em" in posterior.info:
        kept = posterior.info["em"]
        params = {name: value[0] for name, value in posterior.parameters.items()}
        return LatentFit(params, kept["trace"], kept["finals"], kept["converged"])
    with torch.no_grad():
        if module.names:
            free = {name: value.double() for name, value in posterior.parameters.items()}
            members, log_joint = module.natural(free), _log_joint(module, free, problem)
        else:  # several fits by EM
            members = dict(posterior.parameters)
            log_joint = latent.expect(members)[1]
            distributed.sum_(log_joint)
    best = int(log_joint.nan_to_num(nan=-torch.inf).argmax())
    chosen = latent.finished({name: value[best].contiguous() for name, value in members.items()})
    several = len(log_joint) > 1
    if several:
        members = {name: value.contiguous() for name, value in members.items()}
    return LatentFit(
        chosen,
        _trace(posterior, problem.data.total_weight(), log_joint),
        log_joint,
        _converged(posterior),
        members | {"member_weights": posterior.weights.double()} if several else None,
        posterior,
    )


def _log_joint(module: LatentDensity, free: Params, problem: Problem) -> Tensor:
    """log p(x, θ) of each member."""
    data = Dataset(problem.data.x, None, problem.data.weight, torch.float64)
    members = len(next(iter(free.values())))
    total = torch.zeros(members, dtype=torch.float64)
    for batch in data.blocks(distributed.shard(len(data)), max(64, (1 << 22) // members)):
        rows = module.of_members(free, batch.x)
        total += rows.sum(1) if batch.weight is None else rows @ batch.weight.double()
    distributed.sum_(total)
    return total + OverMembers()(problem.prior.log_prob, free)


def _trace(posterior: Posterior, total: float, log_joint: Tensor) -> Tensor:
    """What was recorded on the way, as log p(x, θ): of each epoch, or of the draws in their order."""
    history = posterior.info.get("history")
    if history is not None and "loss" in history:
        return -total * torch.tensor(history["loss"], dtype=torch.float64)
    return log_joint


def _converged(posterior: Posterior) -> bool | None:
    """Whether chains agree; None where nothing was tested, as of a fit that takes a given number of steps."""
    return posterior.info.get("agree")
