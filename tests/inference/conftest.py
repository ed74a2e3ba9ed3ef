from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from sklearn.base import clone

from likely import Regressor
from likely.core.spec import transient
from likely.inference import Exact, Inference, Posterior, Problem
from likely.likelihoods import Normal
from likely.priors import Normal as NormalPrior

PRIOR = NormalPrior(1.0, biases=NormalPrior(3.0))


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


@pytest.fixture(scope="session")
def table():
    """Rows of a linear model with noise 0.5, whose columns are correlated and not centred."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3)) @ rng.normal(size=(3, 3)) + 2
    return X, X @ [1.0, -2.0, 0.5] + 0.5 * rng.normal(size=200)


@pytest.fixture
def fitted(table, seed):
    """A linear model of the table by an inference; its posterior is normal."""
    return lambda inference: Regressor(Normal(0.5), prior=PRIOR, inference=inference, random_state=seed).fit(*table)


@pytest.fixture(scope="session")
def exact(table):
    return Regressor(Normal(0.5), prior=PRIOR, inference=Exact("full")).fit(*table)


@pytest.fixture(scope="session")
def standardised(exact):
    """Draws in coordinates in which the exact posterior is Normal(0, I)."""

    def standardised(posterior):
        parts = posterior.parameters["network.weight"].flatten(1), posterior.parameters["network.bias"]
        mean = torch.from_numpy(np.append(exact.coef_, exact.intercept_))
        root = torch.linalg.inv(torch.linalg.cholesky(exact.posterior_.covariance[0]))
        return (torch.cat(parts, 1) - mean) @ root.T

    return standardised
