"""What a problem answers to an inference: the log-probability of each row, and what else some problems can tell.

    log p(data | θ) = Σᵢ wᵢ log pᵢ,      log pᵢ = log p(yᵢ | η(xᵢ; θ))   or   log p(xᵢ; θ)   or a lower bound on it

A module maps a batch to numbers; the objective maps those numbers to log-probabilities. So an inference never asks
which model it fits: it asks for rows, and names in `needs` whatever else it cannot do without.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import torch
from torch import Tensor

from ..core.errors import SpecError
from ..core.spec import registered
from ..likelihoods.base import total_and_grad
from ..likelihoods.curvature import curvature
from .dataset import Batch

if TYPE_CHECKING:
    from ..likelihoods import Likelihood
    from .problem import Inference

__all__ = ["Conditional", "Joint", "Objective", "OnEta", "RowDensity", "able", "refuse"]

QUESTIONS = {
    "losses": "a loss whose gradient it can follow",
    "rows": "the log-probability of each row",
    "exact": "the exact log-probability of each row",
    "eta": "η = network(x), the numbers that describe a target",
    "likelihood": "a likelihood of targets",
    "alone": "targets that x alone describes, without an offset",
    "expectations": "expectations of hidden variables",
    "tokens": "the counts of words in documents",
}
"""What an inference may need, in words."""


class Objective:
    """log-probabilities of rows, from what a module gives for a batch."""

    offers: frozenset[str] = frozenset({"losses", "rows"})
    """The questions it answers: names in `QUESTIONS`."""
    random: bool = False
    """Whether the module draws random numbers, so that a value is an estimate."""
    name: str = "this model"
    """What to call the model in a message."""
    may_empty: bool = False
    """Whether a component may be left without rows, and the data stay as probable whatever its parameters are."""

    def inputs(self, batch: Batch) -> tuple[Any, ...]:
        """What the module is called with."""
        return (batch.x,) if batch.condition is None else (batch.x, batch.condition)

    def log_prob(self, output: Tensor, batch: Batch) -> Tensor:
        """log p of every row (and position) from the module's output, whose leading axes are members: (…, n)."""
        raise NotImplementedError

    def log_likelihood(self, output: Tensor, batch: Batch) -> Tensor:
        """Σ w log p over a batch."""
        log_prob = self.log_prob(output, batch)
        return (log_prob if batch.weight is None else log_prob * batch.weight).sum()


class OnEta(Objective):
    """An objective of η: it also tells derivatives with respect to η, for methods of second order."""

    offers = frozenset({"losses", "rows", "exact", "eta"})
    least_squares: bool = False
    """Whether linear problems have a closed form."""

    def target_log_prob(self, eta: Tensor, y: Tensor) -> Tensor:
        """log p(y | η), of shape (…)."""
        raise NotImplementedError

    def log_prob(self, output: Tensor, batch: Batch) -> Tensor:
        return self.target_log_prob(output, batch.y)

    def value_and_grad(self, eta: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """log p (n,) and its gradient in η (n, size), of n targets."""
        with torch.enable_grad():
            point = eta.detach().requires_grad_()
            log_prob = self.target_log_prob(point, y)
            (score,) = torch.autograd.grad(log_prob.sum(), point)
        return log_prob.detach(), score

    def total_and_grad(
        self, eta: Tensor, y: Tensor, weight: Tensor | None, scale: float, shared: Tensor | None
    ) -> tuple[float, Tensor, Tensor | None]:
        """Σ w log p, and its gradients times `scale` in η and in the `shared` numbers of η, which are given apart."""
        return total_and_grad(self.value_and_grad, eta, y, weight, scale, shared)

    def indexed(self, y: Tensor) -> Tensor:
        """Targets as `total_and_grad` reads them fastest."""
        return y

    def smooth_value_and_grad(self, eta: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """The same for methods that follow curvature, where a likelihood with a kink may be rounded off."""
        return self.value_and_grad(eta, y)

    def derivatives(self, eta: Tensor, y: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The same, with a positive semidefinite −Hessian (n, size, size)."""
        return curvature(self.target_log_prob, eta, y)


class Conditional(OnEta):
    """p(y | η(x; θ)) by a likelihood: what classifiers and regressors are fitted by.

    >>> from likely.likelihoods import Normal
    >>> objective = Conditional(Normal(1.0))
    >>> eta, y = torch.tensor([[0.0], [1.0]]), torch.tensor([0.0, 1.0])
    >>> objective.log_prob(eta, Batch(torch.zeros(2, 1), y, None))
    tensor([-0.9189, -0.9189])
    """

    offers = frozenset({"losses", "rows", "exact", "eta", "likelihood", "alone"})

    def __init__(self, likelihood: Likelihood, *, alone: bool = True) -> None:
        self.likelihood, self.name = likelihood, f"a model with {likelihood!r}"
        if not alone:  # something is known of a target beside x, which is part of it here
            self.offers = self.offers - {"alone"}
        self.least_squares = likelihood.least_squares

    def __repr__(self) -> str:
        return repr(self.likelihood)

    def target_log_prob(self, eta: Tensor, y: Tensor) -> Tensor:
        return self.likelihood.log_prob(eta, y)

    def log_likelihood(self, output: Tensor, batch: Batch) -> Tensor:
        if batch.weight is None:
            return self.likelihood.log_likelihood(output, batch.y)
        return super().log_likelihood(output, batch)

    def value_and_grad(self, eta: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        return self.likelihood.value_and_grad(eta, y)

    def total_and_grad(
        self, eta: Tensor, y: Tensor, weight: Tensor | None, scale: float, shared: Tensor | None
    ) -> tuple[float, Tensor, Tensor | None]:
        return self.likelihood.total_and_grad(eta, y, weight, scale, shared)

    def indexed(self, y: Tensor) -> Tensor:
        return self.likelihood.indexed(y)

    def smooth_value_and_grad(self, eta: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        return self.likelihood.smooth_value_and_grad(eta, y)

    def derivatives(self, eta: Tensor, y: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return self.likelihood.derivatives(eta, y)


class Joint(Objective):
    """p(y | η(x; θ)) of whole rows, whose positions a likelihood couples: no target has an η of its own.

    >>> from likely.likelihoods import Chain
    >>> eta, y = torch.zeros(5, 3, 10), torch.zeros(5, 3)                           # 5 rows of 3 labels, all alike
    >>> Joint(Chain()).log_prob(eta, Batch(torch.zeros(5, 3, 1), y, None)).exp()
    tensor([0.1250, 0.1250, 0.1250, 0.1250, 0.1250])
    """

    offers = frozenset({"losses", "rows", "exact"})

    def __init__(self, likelihood: Likelihood) -> None:
        self.likelihood, self.name = likelihood, f"a model whose positions {likelihood!r} couples"

    def __repr__(self) -> str:
        return f"{self.likelihood!r}, coupled"

    def log_prob(self, output: Tensor, batch: Batch) -> Tensor:
        if batch.offsets is not None:
            return self.likelihood.joint_log_prob(output, batch.y, batch.offsets)
        rows, length = output.shape[-3:-1]
        offsets = torch.arange(0, rows * length + 1, length)
        return self.likelihood.joint_log_prob(output.flatten(-3, -2), batch.y.flatten(-2), offsets)


class RowDensity(Objective):
    """p(x; θ) or p(x | condition; θ): the module gives log p of each row itself, exactly or as a lower bound.

    `random` says that the module draws random numbers: then a bound is met by an unbiased draw of it. What stands for
    log p and is neither, such as a pseudo-log-likelihood, is an "estimate".

    >>> sorted(RowDensity("Flow").offers), sorted(RowDensity("VAE", "bound", random=True).offers)
    (['exact', 'losses', 'rows'], ['losses', 'rows'])
    >>> RowDensity("VAE", "bound").log_prob(torch.tensor([-1.0, -2.0]), None)
    tensor([-1., -2.])
    """

    def __init__(
        self,
        name: str,
        kind: Literal["exact", "bound", "estimate"] = "exact",
        *,
        random: bool = False,
        expectations: bool = False,
    ) -> None:
        self.name, self.kind, self.random = name, kind, random
        exact = {"exact"} if kind == "exact" and not random else set()
        self.offers = frozenset({"losses", "rows"} | exact | ({"expectations"} if expectations else set()))

    def __repr__(self) -> str:
        return f"{self.name}, {self.kind}"

    def log_prob(self, output: Tensor, batch: Batch) -> Tensor:
        return output


def able(objective: Objective) -> dict[str, type[Any]]:
    """The inferences that can fit an objective, by name.

    >>> "Newton" in able(RowDensity("Flow")), "HMC" in able(RowDensity("Flow"))
    (False, True)
    """
    inferences: dict[str, type[Any]] = registered("inference")
    return {name: cls for name, cls in inferences.items() if cls.example().needs <= objective.offers}


def refuse(inference: Inference, objective: Objective) -> None:
    """Raise one sentence that says why an inference cannot fit, and which ones can.

    >>> from likely.inference import HMC
    >>> refuse(HMC(), RowDensity("VAE", "bound", random=True))
    Traceback (most recent call last):
    ...
    likely.core.errors.SpecError: HMC needs the exact log-probability of each row; VAE gives a bound: use ...
    """
    missing = [need for need in QUESTIONS if need in inference.needs - objective.offers]
    if not missing:
        return
    given = "an estimate" if getattr(objective, "kind", "bound") == "estimate" else "a bound"
    reason = f"gives {given}" if missing[0] == "exact" and "rows" in objective.offers else "has none"
    who, names = type(inference).__name__, ", ".join(able(objective))
    raise SpecError(f"{who} needs {QUESTIONS[missing[0]]}; {objective.name} {reason}: use {names}.")
