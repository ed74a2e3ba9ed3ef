from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from sklearn.base import clone

from likely.core.spec import transient
from likely.inference import Inference, Posterior, Problem


@pytest.fixture
def rng():
    return np.random.default_rng(0)


class _Caught(Inference):
    """Hands the problem over instead of solving it."""

    hand_over: Callable[[Problem], None] = transient()

    @property
    def dtype(self):
        return torch.float64

    def fit(self, problem):
        self.hand_over(problem)
        return Posterior.of(problem.module())


@pytest.fixture
def problem_of():
    """The problem (in float64) that a model's specs make of some data, before anything is learned."""

    def problem_of(model, X, y, **options):
        kept = []
        clone(model).set_params(inference=_Caught(kept.append)).fit(X, y, **options)
        return kept[0]

    return problem_of
