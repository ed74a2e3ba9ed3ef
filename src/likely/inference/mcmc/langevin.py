"""Langevin: a step along the gradient plus noise, over the parameters of any model (see `sampling.Langevin`)."""

from __future__ import annotations

from ...sampling import langevin
from .base import _MarkovChain

__all__ = ["Langevin"]


class Langevin(_MarkovChain):
    """Langevin dynamics: `adjusted` by an acceptance step (MALA) it is exact; without, a small bias for no rejections.

    Steps are short, so that by default only every 20th is kept (`thin`). `step_size`, in units of the posterior's
    spread, fixes what warm-up would learn.

    >>> from likely import Regressor, priors
    >>> from likely.likelihoods import Normal
    >>> by = Langevin(chains=4, draws=50, thin=2)
    >>> model = Regressor(Normal(0.5), prior=priors.Normal(1.0), inference=by, random_state=0)
    >>> len(model.fit([[0.0], [1.0], [2.0]], [1.0, 3.0, 5.0]).posterior_)
    200
    """

    warmup: int = 500
    thin: int = 20
    step_size: float | None = None
    adjusted: bool = True

    @classmethod
    def example(cls) -> Langevin:
        """A few steps of two chains."""
        return cls(chains=2, draws=3, warmup=5, thin=1)

    def sampler(self, *, whitened: bool = False) -> langevin.Langevin:
        """`likely.sampling.Langevin` with these values."""
        return langevin.Langevin(step_size=self.step_size, adjusted=self.adjusted)
