from __future__ import annotations

import pytest
import torch

from likely.core.spec import registered
from likely.likelihoods import (
    Beta,
    Binomial,
    Categorical,
    Gamma,
    Laplace,
    Likelihood,
    MultivariateNormal,
    NegativeBinomial,
    Normal,
    Ordinal,
    Product,
    StudentT,
)

VARIANTS = [
    Normal(scale="input"),
    Normal(scale=0.5),
    StudentT(df="learned"),
    StudentT(df="learned", scale="input"),
    StudentT(df="input", scale=2.0),
    Laplace(scale=2.0),
    Binomial(total=7),
    Categorical(classes=4),
    Ordinal(classes=2),
    Gamma(concentration="input"),
    Beta(precision=5.0),
    NegativeBinomial(dispersion=0.5),
    MultivariateNormal(covariance="input"),
    Product({"vector": MultivariateNormal(), "label": Categorical(classes=3), "count": NegativeBinomial()}),
]


def pytest_generate_tests(metafunc):
    if "likelihood" in metafunc.fixturenames:
        everything = [cls.example() for cls in registered(Likelihood).values()] + VARIANTS
        metafunc.parametrize("likelihood", everything, ids=repr)


@pytest.fixture
def generator():
    torch.manual_seed(0)


@pytest.fixture
def draw(generator):
    """η and y of n rows: all rows with the same η, or each with its own."""

    def draw(likelihood, n, same=False, dtype=torch.float64):
        size = likelihood.size(likelihood.example_target())
        eta = 0.7 * torch.randn(1 if same else n, size, dtype=dtype).expand(n, size)
        y = likelihood.distribution(eta).sample()
        return eta, y.to(dtype)

    return draw
