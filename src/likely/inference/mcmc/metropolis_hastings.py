"""MetropolisHastings: a random walk over the parameters of any model (see `likely.sampling.MetropolisHastings`)."""

from __future__ import annotations

from ...sampling import metropolis_hastings
from .base import _MarkovChain

__all__ = ["MetropolisHastings"]


class MetropolisHastings(_MarkovChain):
    """A random walk that needs no gradient; for a few dozen parameters at most, because it explores slowly.

    Steps resemble one another, so that by default only every 50th is kept (`thin`). `step_size`, in units of the
    posterior's spread, fixes what warm-up would learn; `acceptance` is what it aims at.

    >>> from likely import Regressor, priors
    >>> from likely.likelihoods import Normal
    >>> walk = MetropolisHastings(chains=8, draws=60, thin=20)
    >>> model = Regressor(Normal(0.5), prior=priors.Normal(1.0), inference=walk, random_state=0)
    >>> len(model.fit([[0.0], [1.0], [2.0]], [1.0, 3.0, 5.0]).posterior_)
    480
    """

    warmup: int = 2000
    thin: int = 50
    step_size: float | None = None
    acceptance: float | None = None

    @classmethod
    def example(cls) -> MetropolisHastings:
        """A few steps of two chains."""
        return cls(chains=2, draws=3, warmup=5, thin=1)

    def sampler(self, *, whitened: bool = False) -> metropolis_hastings.MetropolisHastings:
        """`likely.sampling.MetropolisHastings` with these values."""
        return metropolis_hastings.MetropolisHastings(step_size=self.step_size, acceptance=self.acceptance)
