"""HMC: Hamiltonian Monte Carlo over the parameters of any model (see `likely.sampling.HMC`)."""

from __future__ import annotations

import math

from ...sampling import hmc
from .base import _MarkovChain

__all__ = ["HMC"]


class HMC(_MarkovChain):
    """Hamiltonian Monte Carlo: chains follow the gradient of log p(θ | data) with momentum. Nothing needs tuning.

    The posterior has chains · draws members; `thin` keeps every thin-th step. `step_size` and `trajectory` (the longest
    integration time) fix what warm-up would learn: in the units of θ, and for a linear model in those of its
    posterior's spread, by which θ is scaled first; `acceptance` is what the step size aims at. `checkpoint` is a path
    from which a killed fit resumes, `stream` a file for draws beyond memory. A network needs a prior on every
    parameter: priors.Normal(1.0, biases=priors.Normal(1.0)).

    >>> from likely import Regressor, priors
    >>> from likely.likelihoods import Normal
    >>> model = Regressor(Normal(0.5), prior=priors.Normal(1.0), inference=HMC(chains=8), random_state=0)
    >>> dist = model.fit([[0.0], [1.0], [2.0]], [1.0, 3.0, 5.0]).predict_dist([[3.0]])
    >>> bool(dist.stddev > 0.5)  # the noise, and what is unknown of θ
    True
    """

    step_size: float | None = None
    trajectory: float | None = None
    acceptance: float = 0.8
    max_steps: int = 256

    @classmethod
    def example(cls) -> HMC:
        """A few short moves of two chains."""
        return cls(chains=2, draws=3, warmup=5, max_steps=4)

    def sampler(self, *, whitened: bool = False) -> hmc.HMC:
        """`likely.sampling.HMC` with these values.

        Lengths spread over (0, π] make successive draws of a standard normal uncorrelated: there is nothing to learn.
        """
        return hmc.HMC(
            step_size=self.step_size,
            trajectory=self.trajectory or (math.pi if whitened and self.step_size is None else None),
            acceptance=self.acceptance,
            max_steps=self.max_steps,
        )
