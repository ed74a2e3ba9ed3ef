"""An offset: numbers that are known of each row beside x, and join η before the inverse link.

    p(y | x) = p(y | η(x; θ) + offset),      exposure t:  offset = log t,  so that the mean is t · exp(η)

A fit sees pairs (y, offset) as targets of `_WithOffset`; a prediction asks `Moved`, which knows the offsets of its
rows. So neither a network nor an inference needs to know of them.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor
from torch.distributions import Distribution

from .base import Likelihood, Target
from .mle import newton

__all__ = ["Moved", "_WithOffset"]


class _WithOffset(Likelihood):
    """p(y | η + offset) of pairs (…, 1 + k): y first, then what joins the numbers of η.

    >>> import torch
    >>> from likely.likelihoods import Poisson
    >>> pairs = torch.tensor([[3.0, 0.0], [12.0, 1.0986123]])                       # 3 in one year, 12 in three
    >>> _WithOffset(Poisson()).weighted_mle(pairs, torch.ones(2)).exp()
    tensor([3.7500])
    """

    likelihood: Likelihood

    event_dim = 1

    @property
    def labels(self) -> bool:  # type: ignore[override]
        """As the family."""
        return self.likelihood.labels

    @property
    def identified(self) -> bool:  # type: ignore[override]
        """As the family."""
        return self.likelihood.identified

    def __repr__(self) -> str:
        return f"{self.likelihood!r} with an offset"

    def apart(self, eta: Tensor, pairs: Tensor) -> tuple[Tensor, Tensor]:
        """η + offset, and y."""
        return self.likelihood.shifted(eta, pairs[..., 1:].to(eta)), pairs[..., 0]

    def size(self, target: Target) -> int:
        return self.likelihood.size(self.likelihood.known_target() or Target())

    def log_prob(self, eta: Tensor, y: Tensor) -> Tensor:
        return self.likelihood.log_prob(*self.apart(eta, y))

    def log_likelihood(self, eta: Tensor, y: Tensor) -> Tensor:
        return self.likelihood.log_likelihood(*self.apart(eta, y))

    def derivatives(self, eta: Tensor, y: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return self.likelihood.derivatives(*self.apart(eta, y))

    def derivatives_in(self, count: int, eta: Tensor, y: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return self.likelihood.derivatives_in(count, *self.apart(eta, y))

    def value_and_grad(self, eta: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        return self.likelihood.value_and_grad(*self.apart(eta, y))

    def smooth_value_and_grad(self, eta: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        return self.likelihood.smooth_value_and_grad(*self.apart(eta, y))

    def total_and_grad(
        self,
        eta: Tensor,
        y: Tensor,
        weight: Tensor | None = None,
        scale: float = 1.0,
        shared: Tensor | None = None,
    ) -> tuple[float, Tensor, Tensor | None]:
        return self.likelihood.total_and_grad(*self.apart(eta, y), weight, scale, shared)

    def estimate(self, y: Tensor, fraction: Tensor) -> Tensor:
        return newton(self, y, fraction)

    def start(self, y: Tensor, fraction: Tensor) -> tuple[Tensor, Tensor]:
        """That of y alone, less the mean offset."""
        guess, unit = self.likelihood.start(y[..., 0], fraction)
        return self.likelihood.shifted(guess, -(fraction.T @ y[..., 1:])), unit


class Moved:
    """A likelihood as a prediction asks it, for rows whose offsets (n, *positions, k) are known.

    >>> import torch
    >>> from likely.likelihoods import Poisson
    >>> Moved(Poisson(), torch.tensor([[0.0], [1.0986123]])).distribution(torch.zeros(2, 1)).mean
    tensor([1., 3.])
    """

    def __init__(self, likelihood: Likelihood, offset: Tensor) -> None:
        self.likelihood, self.offset = likelihood, offset

    def __getattr__(self, name: str) -> Any:
        return getattr(self.likelihood, name)

    def moved(self, eta: Tensor) -> Tensor:
        """η + offset; members stand on the last axis but one."""
        offset = self.offset.to(eta)
        return self.likelihood.shifted(eta, offset if eta.ndim == offset.ndim else offset.unsqueeze(-2))

    def distribution(self, eta: Tensor) -> Distribution:
        """That of y at η + offset."""
        return self.likelihood.distribution(self.moved(eta))

    def mean(self, eta: Tensor) -> Tensor:
        """The mean at η + offset."""
        return self.likelihood.mean(self.moved(eta))

    def probabilities(self, eta: Tensor) -> Tensor:
        """The probability of each class at η + offset."""
        return self.likelihood.probabilities(self.moved(eta))
