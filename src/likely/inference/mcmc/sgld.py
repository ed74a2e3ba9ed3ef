"""SGLD: stochastic-gradient Langevin dynamics, gradient ascent with just the noise that makes it a sampler.

    φ ← φ + (ε/2)·∇̂ log p(φ | data) + √ε·ξ,      ξ ~ Normal(0, I)

∇̂ is the gradient on a mini-batch, and nothing is rejected, so draws are too wide: on a normal posterior of curvature λ,
with gradient noise of variance c, their variance is (1 + ε·c/4)/(1 − ε·λ/4) times the true one.
"""

from __future__ import annotations

from torch import Tensor

from ..training.map import MAP
from .stochastic_gradient import Landscape, _StochasticGradient

__all__ = ["SGLD"]

WIDER = 0.1
"""How much too large the variance of draws may become under the usual step size."""


class SGLD(_StochasticGradient):
    """Langevin chains on mini-batches: `chains` of them keep `draws` each, every `thin`-th step after `warmup`.

    Chains start around the mode that `by` finds (None: what `inference="auto"` would take). `schedule` is
    "constant"; "decreasing", with weights ∝ εₜ; or "cyclical": ε falls to 0 in each of the `cycles` and draws are kept
    in their later halves, so that each cycle may find another mode. `Ensemble(by=SGLD())` starts from several modes.

    `precondition` measures the posterior's widths around the start; ε is then in units of them, and None takes the ε
    whose draws have variances about 10 % too large at worst, by the curvature met at the start and during the warmup.
    Smaller steps are truer and need more of them.
    A fit with a `checkpoint` that was killed resumes from it to the same bits.
    `posterior_.info` has the `step_size`, the `stiffness` λ and the `gradient_noise` c. All chains see the same
    batches; members are the draws of the first chain, then those of the second, and so on.

    >>> from likely import Regressor
    >>> from likely.likelihoods import Normal
    >>> model = Regressor(Normal(1.0), inference=SGLD(chains=2, draws=50), random_state=0)
    >>> len(model.fit([[0.0], [1.0], [2.0]], [1.0, 3.0, 5.0]).posterior_)
    100
    """

    @classmethod
    def example(cls) -> SGLD:
        """A few steps of two chains."""
        return cls(chains=2, draws=3, warmup=5, thin=1, batch_size=16, by=MAP.example())

    def usual_step(self, landscape: Landscape) -> float:
        """ε with ε(λ + c)/4 = 10 %; at the start of a cycle five times as much, to travel."""
        rough = landscape.stiffness + float(landscape.noise.max())
        usual = 4 * WIDER / max(rough, 1e-12)
        return 5 * usual if self.schedule == "cyclical" else usual

    def move(
        self, phi: Tensor, momentum: Tensor, gradient: Tensor, step: float, landscape: Landscape, xi: Tensor
    ) -> tuple[Tensor, Tensor]:
        """There is no momentum."""
        return phi + 0.5 * step * gradient + step**0.5 * xi, momentum
