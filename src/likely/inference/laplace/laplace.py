"""Laplace: a normal posterior around the mode, with the covariance that the curvature there says.

    q(θ) = Normal(θ̂, H⁻¹),   θ̂ the mode,   H = Σ w JᵀSJ − ∂² log p(θ)      (generalised Gauss-Newton)

    log p(y) ≈ log p(y, θ̂) + d/2 log 2π − ½ log det H

For linear models with normal noise this is the exact posterior and evidence.
"""

from __future__ import annotations

import math
import warnings
from typing import Literal

import torch

from ...core.errors import ApproximationWarning, SpecError
from ...core.spec import as_spec, is_integer, require
from ..automatic import automatic
from ..posterior import Posterior
from ..problem import Inference, Problem
from ..training.map import MAP
from .blocks import Block
from .curvature import full_blocks, independent_blocks, kronecker_blocks, prior_curvature
from .density import laplace_of_density
from .posterior import LaplacePosterior

__all__ = ["Laplace"]

LARGEST = 3_000
"""Parameters of one dense covariance."""

FORMS = {"full": full_blocks, "kronecker": kronecker_blocks, "diagonal": independent_blocks}


class Laplace(Inference):
    """Find the mode `by` another inference ("auto" chooses), then take its curvature for the posterior's precision.

    `covariance` is "full" (up to 3,000 parameters), "kronecker" (each linear layer a product of two small matrices,
    other parameters independent) or "diagonal" (all independent). Predictions linearise the network at the mode, so
    that η is normal, and average the likelihood over `draws` fixed points of it (in closed form for normal noise of
    known scale); `posterior_.draw(count)` gives members instead. `posterior_.info["log_evidence"]` approximates
    log p(y).

    A learned noise scale is one of the parameters: its logarithm is normal in the posterior and integrated in the
    evidence. L1 terms of a prior move the mode and have no curvature. Directions that neither data nor prior hold stay
    at the mode and out of the evidence, and a warning says so.

    >>> from likely import Regressor
    >>> from likely.likelihoods import Normal
    >>> model = Regressor(Normal(scale=1.0), prior="normal(2.0)", inference=Laplace())
    >>> model.fit([[0.0], [1.0], [2.0]], [1.0, 3.0, 5.0]).predict_dist([[4.0]]).stddev.round(decimals=3)
    tensor([2.3090], dtype=torch.float64)
    """

    dtype = torch.float64
    needs = frozenset({"exact"})
    integrates = True

    covariance: Literal["full", "kronecker", "diagonal"] = "full"
    by: Inference | str = "auto"
    draws: int = 64

    @classmethod
    def example(cls) -> Laplace:
        """A few steps, a few points."""
        return cls(by=MAP.example(), draws=8)

    def validate(self) -> None:
        """Only these forms; text becomes an inference."""
        require(self.covariance in FORMS, self, "covariance", '"full", "kronecker" or "diagonal"')
        if self.by != "auto":
            object.__setattr__(self, "by", as_spec(self.by, Inference, "by"))
        require(is_integer(self.draws, 2), self, "draws", "an integer, 2 or more")

    def fit(self, problem: Problem) -> Posterior:
        """The mode, then the curvature there."""
        if "eta" not in problem.objective.offers:
            return self._fit_density(problem)
        description = problem.description
        names = description.trainable
        self._refuse_large(sum(math.prod(description.shapes[name]) for name in names))
        mode = (automatic(problem, mode=True) if isinstance(self.by, str) else self.by).fit(problem)
        if len(mode) != 1:
            raise SpecError(f"Laplace needs one mode, and by={self.by!r} gave {len(mode)} members; use by=MAP().")
        module = mode.module
        prior = prior_curvature(problem, module, names)
        blocks = FORMS[self.covariance](problem, module, prior)
        self._warn(problem, blocks)
        rank = sum(block.rank for block in blocks)
        log_det = sum(block.log_det for block in blocks)
        log_joint = float(problem.log_joint(module))
        info = mode.info | {
            "draws": self.draws,
            "log_joint": log_joint,
            "log_evidence": log_joint + 0.5 * rank * math.log(2 * math.pi) - 0.5 * log_det,
        }
        return LaplacePosterior.around(mode, blocks, info)

    def _fit_density(self, problem: Problem) -> Posterior:
        """Without η there is one curvature, that of log p(θ | data) itself."""
        if self.covariance == "kronecker":
            name = problem.objective.name
            raise SpecError(f'{name} has no layers to factorise; use covariance="full" or "diagonal".')
        self._refuse_large(problem.description.size)
        by = None if isinstance(self.by, str) else self.by
        posterior, free = laplace_of_density(problem, by, self.draws, full=self.covariance == "full")
        if free:
            self._warn_of_free(problem, free, problem.description.size)
        return posterior

    def _refuse_large(self, size: int) -> None:
        if self.covariance == "full" and size > LARGEST:
            raise SpecError(
                f"A full covariance of {size:,} parameters is a matrix of {size:,} × {size:,}; Laplace takes up to "
                f'{LARGEST:,}. Use covariance="kronecker" or "diagonal".'
            )

    def _warn(self, problem: Problem, blocks: list[Block]) -> None:
        size, rank = sum(block.size for block in blocks), sum(block.rank for block in blocks)
        if rank < size:
            self._warn_of_free(problem, size - rank, size)
        if any(rate is not None and rate.l1 for rate in problem.penalties.values()):
            warnings.warn(
                f"{problem.prior!r} has a kink at 0, where a normal approximation does not hold; Laplace takes the "
                "curvature of the likelihood alone there. Use a Normal prior for a posterior that can be trusted.",
                ApproximationWarning,
                stacklevel=5,
            )

    def _warn_of_free(self, problem: Problem, free: int, size: int) -> None:
        warnings.warn(
            f"Neither the data nor {problem.prior!r} determine {free:,} of {size:,} directions of "
            "the parameters, so Laplace leaves them at the mode and out of the evidence. Give every parameter a "
            "prior, such as prior=Normal(1.0, biases=Normal(1.0)).",
            ApproximationWarning,
            stacklevel=6,
        )
