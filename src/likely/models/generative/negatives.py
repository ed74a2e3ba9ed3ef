"""Negatives: rows that a model has now, to be set against rows of the data.

    ∇ log p(x) = −∇F(x) + E_p[∇F]      the mean over the model by a few steps of a Markov chain

CD     chains start at the rows of the batch, anew at every step: quick, and biased towards them
PCD    chains go on from where they were at the last step: as θ moves slowly, they stay near p
"""

from __future__ import annotations

from ...core.spec import Spec, is_integer, require

__all__ = ["CD", "PCD", "Negatives"]


class Negatives(Spec, axis="negatives"):
    """Where the rows of the model come from in training; `steps` of its chain per step of training."""

    steps: int = 1

    def validate(self) -> None:
        require(is_integer(self.steps), self, "steps", "a positive integer")


class CD(Negatives):
    """Contrastive divergence.

    >>> CD(3)
    CD(steps=3)
    """


class PCD(Negatives):
    """Persistent contrastive divergence with so many chains.

    >>> PCD(1, chains=64)
    PCD(chains=64)
    """

    chains: int = 128

    def validate(self) -> None:
        super().validate()
        require(is_integer(self.chains), self, "chains", "a positive integer")
