"""Zero-inflated counts: some rows are 0 whatever the rate, the others are counts of a family.

    P(y = 0 | x) = π + (1 − π) p(0 | η),      P(y | x) = (1 − π) p(y | η)  for y > 0

π = 1 / (1 + exp(−ζ)), its logit ζ a learned constant, or one more output of the network ("input"). The mean is
(1 − π) μ: a row with an exposure, or a larger η, has more events in those rows that can have any.
"""

from __future__ import annotations

from typing import Any, Literal, Self

import torch
from torch import Tensor, distributions
from torch.distributions import constraints

from ..core.spec import as_spec, require
from ..probability.quantiles import cdf, quantile
from .base import Likelihood, Target
from .negative_binomial import NegativeBinomial
from .poisson import Poisson
from .special import log_sigmoid

__all__ = ["ZeroInflated"]

LEAST = 0.02
"""The fraction of rows without any rate that an estimate starts from, at least."""


class ZeroInflated(Likelihood):
    """ZeroInflated(counts=Poisson() | NegativeBinomial(), inflation="learned" | "input").

    y is (n,) or (n, *positions) of counts 0, 1, 2, …, more of them 0 than the counts alone would have. η are the
    numbers of the counts that depend on x, ζ if it does too ("input"), then the learned constants (`constants_` tells
    them): those of the counts, and ζ last. `exposure=` multiplies the mean of the counts.

    See also `Poisson`, and `NegativeBinomial`, which may do for many zeros by its dispersion alone.

    >>> import torch
    >>> ZeroInflated(Poisson()).distribution(torch.tensor([2.0, 0.0])).mean  # half of the rows are 0
    tensor(3.6945)
    >>> y = torch.tensor([0.0] * 60 + [3.0, 4.0, 5.0, 2.0, 6.0] * 8)
    >>> rate, zero = ZeroInflated().weighted_mle(y, torch.ones(100)).tolist()
    >>> round(float(torch.tensor(zero).sigmoid()), 2)
    0.59
    """

    counts: Likelihood = Poisson()
    inflation: Literal["learned", "input"] = "learned"

    identified = False  # where there are no more zeros than the counts have, ζ may be anything far below 0
    link = "log"
    needs = "counts 0, 1, 2, …"

    @classmethod
    def example(cls) -> Self:
        return cls()

    def validate(self) -> None:
        object.__setattr__(self, "counts", as_spec(self.counts, Likelihood, "counts"))
        require(isinstance(self.counts, Poisson | NegativeBinomial), self, "counts", "Poisson() or NegativeBinomial()")
        require(self.inflation in ("learned", "input"), self, "inflation", '"learned" or "input"')

    @property
    def support(self) -> Any:
        return constraints.nonnegative_integer

    def size(self, target: Target) -> int:
        return self.counts.size(target) + 1

    def shared(self, target: Target) -> int:
        return self.counts.shared(target) + int(self.inflation == "learned")

    def constants(self, shared: Tensor, target: Target) -> dict[str, Tensor]:
        if self.inflation != "learned":
            return self.counts.constants(shared, target)
        return self.counts.constants(shared[..., :-1], target) | {"inflation": torch.sigmoid(shared[..., -1])}

    def distribution(self, eta: Tensor) -> ZeroInflatedCounts:
        own, logit = self._parts(eta)
        return ZeroInflatedCounts(self.counts.distribution(own), logit)

    def log_prob(self, eta: Tensor, y: Tensor) -> Tensor:
        own, logit = self._parts(eta)
        return _log_prob(self.counts.log_prob(own, y.to(eta.dtype)), logit, y)

    def value_and_grad(self, eta: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """A row of 0 is a count with the probability that its kind has given that it is 0."""
        y = y.to(eta.dtype)
        own, logit = self._parts(eta)
        counted, score = self.counts.value_and_grad(own, y)
        value = _log_prob(counted, logit, y)
        zero = y == 0
        empty = torch.where(zero, (log_sigmoid(logit) - value).exp(), 0.0)
        full = torch.where(zero, (log_sigmoid(-logit) + counted - value).exp(), 1.0)
        of_logit = (empty * (-logit).sigmoid() - full * logit.sigmoid()).unsqueeze(-1)
        score = score * full.unsqueeze(-1)
        place = score.shape[-1] if self.inflation == "learned" else self.size(Target()) - self.shared(Target()) - 1
        return value, torch.cat([score[..., :place], of_logit, score[..., place:]], -1)

    def _parts(self, eta: Tensor) -> tuple[Tensor, Tensor]:
        """η of the counts, and ζ."""
        if self.inflation == "learned":
            return eta[..., :-1], eta[..., -1]
        own = self.size(Target()) - self.shared(Target()) - 1
        return torch.cat([eta[..., :own], eta[..., own + 1 :]], -1), eta[..., own]

    def start(self, y: Tensor, fraction: Tensor) -> tuple[Tensor, Tensor]:
        """The counts of the rows that are not 0, and the zeros that they do not explain."""
        positive = fraction * (y > 0).unsqueeze(-1)
        some = positive.sum(0) > 0
        among = torch.where(some, positive / positive.sum(0).clamp_min(1e-300), fraction)
        own, _ = self.counts.start(y, among)
        explained = self.counts.log_prob(own, torch.zeros_like(own[..., 0])).exp()
        zeros = 1 - positive.sum(0)
        excess = ((zeros - explained) / (1 - explained).clamp_min(LEAST)).clamp(LEAST, 1 - LEAST)
        place = own.shape[-1] if self.inflation == "learned" else self.size(Target()) - self.shared(Target()) - 1
        parts = own[..., :place], torch.logit(excess).unsqueeze(-1), own[..., place:]
        guess = torch.cat(parts, -1)
        return guess, torch.ones_like(guess)


class ZeroInflatedCounts(distributions.Distribution):
    """0 with a probability that the logit tells, otherwise a draw of the counts.

    >>> half = ZeroInflatedCounts(distributions.Poisson(torch.tensor(4.0)), torch.tensor(0.0))
    >>> half.mean, half.variance, half.icdf(torch.tensor([0.4, 0.75]))
    (tensor(2.), tensor(6.), tensor([0., 4.]))
    """

    arg_constraints = {}  # noqa: RUF012 (the name that torch reads)
    support = constraints.nonnegative_integer

    def __init__(self, counts: Any, logit: Tensor) -> None:
        self.counts, self.logit = counts, logit.expand(counts.batch_shape)
        super().__init__(counts.batch_shape, validate_args=False)

    @property
    def zero(self) -> Tensor:
        """The probability of a 0 that no rate explains."""
        return torch.sigmoid(self.logit)

    @property
    def mean(self) -> Tensor:
        return torch.sigmoid(-self.logit) * self.counts.mean

    @property
    def variance(self) -> Tensor:
        mean = self.counts.mean
        return torch.sigmoid(-self.logit) * (self.counts.variance + self.zero * mean.square())

    def expand(self, batch_shape: Any, _instance: Any = None) -> ZeroInflatedCounts:
        """The same distribution for a larger batch."""
        return ZeroInflatedCounts(self.counts.expand(batch_shape), self.logit.expand(batch_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        return _log_prob(self.counts.log_prob(value), self.logit, value)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        drawn = self.counts.sample(torch.Size(sample_shape))
        return torch.where(torch.rand_like(drawn) < self.zero, 0.0, drawn)

    def cdf(self, value: Tensor) -> Tensor:
        zero = self.zero.to(value.dtype)
        inside = zero + (1 - zero) * cdf(self.counts, value)
        return torch.where(value < 0, 0.0, inside)

    def icdf(self, value: Tensor) -> Tensor:
        zero = self.zero.to(value.dtype)
        rest = ((value - zero) / (1 - zero).clamp_min(torch.finfo(value.dtype).tiny)).clamp(0.0, 1.0)
        return torch.where(value <= zero, 0.0, quantile(self.counts, rest))


def _log_prob(counted: Tensor, logit: Tensor, y: Tensor) -> Tensor:
    """log p from that of the counts."""
    some = log_sigmoid(-logit) + counted
    return torch.where(y == 0, torch.logaddexp(log_sigmoid(logit).expand_as(some), some), some)
