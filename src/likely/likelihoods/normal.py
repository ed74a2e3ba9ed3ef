"""Normal: y = μ(x) + σ·ε with ε standard normal; the likelihood of least squares.

−log p(y | x) = (y − μ)² / 2σ² + log σ + ½ log 2π,   μ = η₁,   σ = fixed | exp(learned) | exp(η₂(x))
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, distributions

from ..core.doors import check_sizes
from . import weighted
from .base import Likelihood, Target
from .choices import (
    Choice,
    arrange,
    free,
    learned,
    logarithms,
    require_choice,
)
from .special import LOG_2PI, bounded_exp, bounded_log

__all__ = ["Normal"]


class Normal(Likelihood):
    """Normal(scale="learned" | "input" | a number).

    `"learned"`: one σ for all inputs, found with the rest. `"input"`: σ is a second output of the network
    (heteroscedastic). A number: σ is known.

    >>> import torch
    >>> Normal(scale=2.0).distribution(torch.tensor([[1.0]]))
    Normal(loc: tensor([1.]), scale: tensor([2.]))
    """

    scale: Choice = "learned"

    link = "identity"
    positive = ("scale",)

    def validate(self) -> None:
        require_choice(self, "scale")

    def size(self, target: Target) -> int:
        return 1 + free(self.scale)

    def shared(self, target: Target) -> int:
        return learned(self.scale)

    @property
    def least_squares(self) -> bool:
        """Unless σ depends on x."""
        return self.scale != "input"

    def known_scale(self) -> float | None:
        return None if isinstance(self.scale, str) else float(self.scale)

    def at_unit_dispersion(self, eta: Tensor, y: Tensor) -> tuple[Likelihood, Tensor, Tensor]:
        return Normal(1.0), eta[..., :1], y  # φ = σ², V = 1

    def mean(self, eta: Tensor) -> Tensor:
        return eta[..., 0]

    def derivatives(self, eta: Tensor, y: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The expected information, diag(1/σ², 2) in (μ, log σ): unlike the observed one it is always positive."""
        log_prob, score = self.value_and_grad(eta, y)
        precision = self._precision(eta)
        parts = [precision, torch.full_like(precision, 2.0)][: eta.shape[-1]]
        return log_prob, score, torch.diag_embed(torch.stack(parts, -1))

    def value_and_grad(self, eta: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        log_scale = bounded_log(logarithms(eta, 1, self.scale)[0])
        gap = (y - eta[..., 0]) * (inverse := (-log_scale).exp())
        squared = gap.square()
        value = -0.5 * squared - log_scale - 0.5 * LOG_2PI
        if not isinstance(self.scale, str):
            return value, (gap * inverse).unsqueeze(-1)
        widening = torch.where(log_scale == eta[..., 1], squared - 1, 0.0)  # beyond its bound log σ is constant
        return value, torch.stack([gap * inverse, widening], -1)

    def total_and_grad(
        self,
        eta: Tensor,
        y: Tensor,
        weight: Tensor | None = None,
        scale: float = 1.0,
        shared: Tensor | None = None,
    ) -> tuple[float, Tensor, Tensor | None]:
        one = shared.numel() == 1 if shared is not None else not isinstance(self.scale, str)  # σ for all rows
        if weight is not None or eta.shape[:-1] != y.shape:
            return super().total_and_grad(eta, y, weight, scale, shared)
        if shared is not None and not one and self.scale == "learned":
            return self._of_members(eta, y, scale, shared)
        if not one:
            return super().total_and_grad(eta, y, weight, scale, shared)
        log_scale = bounded_log(shared).item() if shared is not None else math.log(self.known_scale() or 1.0)
        inverse, count = math.exp(-log_scale), y.numel()
        gap = (y - eta[..., 0]).mul_(inverse)
        squares = torch.dot(gap.view(-1), gap.view(-1)).item()
        total = -0.5 * squares - count * (log_scale + 0.5 * LOG_2PI)
        score = gap.mul_(inverse * scale).unsqueeze(-1)
        if shared is None:
            return total, score, None
        widening = squares - count if log_scale == shared.item() else 0.0  # beyond its bound log σ is constant
        return total, score, torch.full_like(shared, widening * scale)

    def _of_members(self, eta: Tensor, y: Tensor, scale: float, shared: Tensor) -> tuple[float, Tensor, Tensor]:
        """The same for several σ, each with axes of length 1 for the rows that it is shared by."""
        log_scale = bounded_log(shared)
        inverse = (-log_scale).exp()
        gap = (y.unsqueeze(-1) - eta).mul_(inverse)
        squares, count = gap.square().sum_to_size(shared.shape), gap.numel() / shared.numel()
        total = -0.5 * squares.sum() - count * (log_scale + 0.5 * LOG_2PI).sum()
        widening = torch.where(log_scale == shared, squares - count, 0.0)
        return total.item(), gap.mul_(inverse * scale), widening.mul_(scale)

    def _precision(self, eta: Tensor) -> Tensor:
        if isinstance(self.scale, str):
            return (-2 * eta[..., 1]).exp()
        return torch.full_like(eta[..., 0], self.scale**-2)

    def distribution(self, eta: Tensor) -> distributions.Normal:
        scale = bounded_exp(bounded_log(logarithms(eta, 1, self.scale)[0]))
        return distributions.Normal(eta[..., 0], scale.expand_as(eta[..., 0]), validate_args=False)

    def log_prob(self, eta: Tensor, y: Tensor) -> Tensor:
        log_scale = bounded_log(logarithms(eta, 1, self.scale)[0])
        return -0.5 * ((y - eta[..., 0]) * (-log_scale).exp()).square() - log_scale - 0.5 * LOG_2PI

    def row_log_prob(self, eta: Tensor, y: Tensor) -> Tensor:
        mean = eta[..., 0]  # (k, c)
        log_scale = bounded_log(logarithms(eta, 1, self.scale)[0]).expand_as(mean)
        level = -(log_scale + 0.5 * LOG_2PI).sum(-1)
        learning = torch.is_grad_enabled() and (eta.requires_grad or y.requires_grad)
        if learning or y.dtype != torch.float64 or eta.dtype != torch.float64 or y.device.type != "cpu":
            precision = (-2 * log_scale).exp()
            distance = [(y - m).square_() @ p for m, p in zip(mean, precision, strict=True)]
            return -0.5 * torch.stack(distance, -1) + level
        from .compiled.normal_rows import normal_rows  # a tenth of the time, but numba loads slowly

        check_sizes("row_log_prob", {"y": (y, "n c"), "eta": (mean, "k c")})
        columns = [parameter.detach().T.contiguous().numpy() for parameter in (mean, (-log_scale).exp())]
        out = torch.empty(len(y), len(eta), dtype=torch.float64)
        normal_rows(y.detach().contiguous().numpy(), *columns, level.detach().numpy(), out.numpy())
        return out

    def estimate(self, y: Tensor, fraction: Tensor) -> Tensor:
        """The weighted mean and the logarithm of the weighted standard deviation."""
        return arrange([weighted.mean(y, fraction)], [weighted.spread(y, fraction).log()], self.scale)

    def statistics(self, y: Tensor, origin: Tensor) -> Tensor:
        gap = y - origin
        return torch.stack([gap, gap.square()]).movedim(0, -1)  # each statistic stays together in memory

    def from_statistics(self, mean: Tensor, origin: Tensor) -> Tensor:
        gap, square = mean.unbind(-1)
        spread = weighted.from_moments(gap, square, origin)
        return arrange([gap + origin], [spread.log()], self.scale)

    def start(self, y: Tensor, fraction: Tensor) -> tuple[Tensor, Tensor]:
        """The median, in units of the spread."""
        guess = arrange([weighted.median(y, fraction)], [weighted.spread(y, fraction).log()], self.scale)
        return guess, location_unit(guess, y, fraction)


def location_unit(eta: Tensor, y: Tensor, fraction: Tensor) -> Tensor:
    """The units of an η whose first number is a location of y and whose others have no dimension."""
    return torch.cat([weighted.spread(y, fraction).unsqueeze(-1), torch.ones_like(eta[..., 1:])], -1)
