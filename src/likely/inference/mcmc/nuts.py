"""NUTS: the no-U-turn sampler over the parameters of any model (see `likely.sampling.NUTS`)."""

from __future__ import annotations

from ...sampling import nuts
from .base import _MarkovChain

__all__ = ["NUTS"]


class NUTS(_MarkovChain):
    """Hamiltonian Monte Carlo whose trajectories end where they turn back: for posteriors that vary in width.

    All chains grow their trees side by side, and the longest decides how long a move takes; where trajectories of one
    length do, `HMC` is faster. `acceptance` is what the step size aims at: nearer to 1 if moves diverge. `step_size`,
    in units of the posterior's spread, fixes what warm-up would learn. A trajectory has up to 2^max_depth − 1 steps.

    >>> from likely import Regressor, priors
    >>> from likely.likelihoods import Normal
    >>> model = Regressor(Normal(0.5), prior=priors.Normal(1.0), inference=NUTS(chains=4, draws=50), random_state=0)
    >>> len(model.fit([[0.0], [1.0], [2.0]], [1.0, 3.0, 5.0]).posterior_)
    200
    """

    step_size: float | None = None
    acceptance: float = 0.8
    max_depth: int = 10

    @classmethod
    def example(cls) -> NUTS:
        """A few short moves of two chains."""
        return cls(chains=2, draws=3, warmup=5, max_depth=2)

    def sampler(self, *, whitened: bool = False) -> nuts.NUTS:
        """`likely.sampling.NUTS` with these values."""
        return nuts.NUTS(step_size=self.step_size, acceptance=self.acceptance, max_depth=self.max_depth)
