"""Log-normal: a positive number whose logarithm is normal, such as a price or an income.

−log p(y | x) = (log y − μ)² / 2σ² + log σ + log y + ½ log 2π,   μ = η₁,   σ = fixed | exp(learned) | exp(η₂(x))

The median is exp(μ), the mean exp(μ + σ²/2).
"""

from __future__ import annotations

from typing import Any

from torch import Tensor, distributions
from torch.distributions import constraints

from .base import Likelihood, Target
from .choices import Choice, free, learned, logarithms, require_choice
from .normal import Normal
from .special import bounded_exp, bounded_log

__all__ = ["LogNormal"]


class LogNormal(Likelihood):
    """LogNormal(scale="learned" | "input" | a number): η₁ is the mean of log y, the scale that of log y.

    y is (n,) or (n, *positions) of positive numbers; `predict` gives its mean, exp(η₁ + σ²/2). "learned" is one σ for
    all rows (`constants_`), "input" one for each x, by a second number of the network.

    See also `Gamma`, whose deviation grows with its mean as well, and `Normal` for numbers of any sign.

    >>> import torch
    >>> LogNormal(scale=1.0).distribution(torch.tensor([0.0])).mean
    tensor(1.6487)
    """

    scale: Choice = "learned"

    needs = "positive numbers"
    link = "log"
    positive = ("scale",)

    def validate(self) -> None:
        require_choice(self, "scale")

    @property
    def support(self) -> Any:
        return constraints.positive

    @property
    def _of_logarithms(self) -> Normal:
        return Normal(self.scale)

    def size(self, target: Target) -> int:
        return 1 + free(self.scale)

    def shared(self, target: Target) -> int:
        return learned(self.scale)

    def at_unit_dispersion(self, eta: Tensor, y: Tensor) -> tuple[Likelihood, Tensor, Tensor]:
        return self._of_logarithms.at_unit_dispersion(eta, y.log())

    def distribution(self, eta: Tensor) -> distributions.LogNormal:
        scale = bounded_exp(bounded_log(logarithms(eta, 1, self.scale)[0]))
        return distributions.LogNormal(eta[..., 0], scale.expand_as(eta[..., 0]), validate_args=False)

    def log_prob(self, eta: Tensor, y: Tensor) -> Tensor:
        log_y = y.to(eta.dtype).log()
        return self._of_logarithms.log_prob(eta, log_y) - log_y

    def derivatives(self, eta: Tensor, y: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Those of the normal of log y."""
        log_y = y.to(eta.dtype).log()
        log_prob, score, information = self._of_logarithms.derivatives(eta, log_y)
        return log_prob - log_y, score, information

    def value_and_grad(self, eta: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        log_y = y.to(eta.dtype).log()
        value, score = self._of_logarithms.value_and_grad(eta, log_y)
        return value - log_y, score

    def estimate(self, y: Tensor, fraction: Tensor) -> Tensor:
        """The mean and the deviation of log y."""
        return self._of_logarithms.estimate(y.log(), fraction)

    def statistics(self, y: Tensor, origin: Tensor) -> Tensor:
        return self._of_logarithms.statistics(y.log(), origin.log())

    def from_statistics(self, mean: Tensor, origin: Tensor) -> Tensor:
        return self._of_logarithms.from_statistics(mean, origin.log())

    def start(self, y: Tensor, fraction: Tensor) -> tuple[Tensor, Tensor]:
        """The median of log y, in units of its spread."""
        return self._of_logarithms.start(y.log(), fraction)
