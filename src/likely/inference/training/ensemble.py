"""Ensemble: several fits from different starts, averaged.

p(y | x) = Σₘ wₘ p(y | η(x; θₘ)),   wₘ = 1/M,  or  wₘ ∝ exp(−E(θₘ)) with E = −log p(y, θ)
"""

from __future__ import annotations

from typing import Literal

import torch

from ...core.random import spread
from ...core.spec import require
from ..posterior import Posterior
from ..problem import Inference, Problem
from .around import _Around
from .map import MAP

__all__ = ["Ensemble"]


class Ensemble(_Around):
    """`members` fits by another inference, each from its own start and row order.

    They are trained as one stacked program if that inference can.

    >>> from likely import Regressor
    >>> model = Regressor(network="mlp([8])", inference=Ensemble(3, by=MAP(epochs=5)), random_state=0)
    >>> len(model.fit([[0.0], [1.0], [2.0]], [1.0, 3.0, 5.0]).posterior_)
    3
    """

    members: int = 5
    by: Inference = MAP()
    weights: Literal["equal", "posterior"] = "equal"

    @classmethod
    def example(cls) -> Ensemble:
        """Two quick members."""
        return cls(2, by=MAP.example())

    def validate(self) -> None:
        """At least one member; weights by name."""
        super().validate()
        require(isinstance(self.members, int) and self.members > 0, self, "members", "a positive integer")
        require(self.weights in ("equal", "posterior"), self, "weights", '"equal" or "posterior"')

    @property
    def needs(self) -> frozenset[str]:  # type: ignore[override]
        """What the inference inside needs."""
        return self.by.needs | ({"rows"} if self.weights == "posterior" else set())

    def fit(self, problem: Problem) -> Posterior:
        """All members, with their weights."""
        posterior = self.by.fit_members(problem, spread(problem.seed, self.members))
        if self.weights == "equal":
            return posterior
        energies = torch.stack([problem.log_joint(posterior.module_of(i)) for i in range(len(posterior))])
        posterior.weights = torch.softmax(energies, 0).to(posterior.dtype)
        return posterior
