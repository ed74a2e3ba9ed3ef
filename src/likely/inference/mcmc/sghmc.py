"""SGHMC: stochastic-gradient Hamiltonian Monte Carlo with friction.

    r ← (1 − hγ)·r + h·∇̂ log p(φ | data) + √(2hγ − h²C)·ξ,      φ ← φ + h·r,      ξ ~ Normal(0, I)

Noise of mini-batch gradients, with variance C, would heat the momentum r; friction γ takes that energy out, and fresh
noise is less by what the gradients bring along. On a normal posterior of curvature λ the variance of draws is too large
by about h²λ/4.
"""

from __future__ import annotations

from torch import Tensor

from ...core.spec import require
from ..training.map import MAP
from .stochastic_gradient import Landscape, _StochasticGradient

__all__ = ["SGHMC"]


class SGHMC(_StochasticGradient):
    """Hamiltonian chains on mini-batches with friction γ: momentum crosses the posterior faster than Langevin steps do.

    `friction` is γ per unit of time; at 2 a normal posterior of unit width is damped critically. `step_size` is h.
    Everything else is as in `SGLD`; None takes an h that is stable and leaves at least half of the noise to be added.

    >>> from likely import Regressor
    >>> from likely.likelihoods import Normal
    >>> model = Regressor(Normal(1.0), inference=SGHMC(chains=2, draws=50), random_state=0)
    >>> len(model.fit([[0.0], [1.0], [2.0]], [1.0, 3.0, 5.0]).posterior_)
    100
    """

    friction: float = 1.0

    @classmethod
    def example(cls) -> SGHMC:
        """A few steps of two chains."""
        return cls(chains=2, draws=3, warmup=5, thin=1, batch_size=16, by=MAP.example())

    def validate(self) -> None:
        """The friction is positive."""
        super().validate()
        require(self.friction > 0, self, "friction", "a positive number")

    def usual_step(self, landscape: Landscape) -> float:
        """h = 0.3/√λ, or less where gradients are noisy (h ≤ γ/C) or friction is high (hγ ≤ ½)."""
        usual = 0.3 / max(landscape.stiffness, 1e-12) ** 0.5
        if self.schedule == "cyclical":
            usual = 2 * usual
        return min(usual, self.friction / max(float(landscape.noise.max()), 1e-12), 0.5 / self.friction)

    def move(
        self, phi: Tensor, momentum: Tensor, gradient: Tensor, step: float, landscape: Landscape, xi: Tensor
    ) -> tuple[Tensor, Tensor]:
        """One step of momentum, then one of position."""
        fresh = (2 * step * self.friction - step**2 * landscape.noise).clamp_min(0).sqrt()
        momentum = (1 - step * self.friction) * momentum + step * gradient + fresh * xi
        return phi + step * momentum, momentum
