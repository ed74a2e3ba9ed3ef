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
    NormalMixture,
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
    NormalMixture(3, step=1.0),
    Binomial(total=7),
    Categorical(classes=4),
    Ordinal(classes=2),
    Gamma(concentration="input"),
    Beta(precision=5.0),
    NegativeBinomial(dispersion=0.5),
    MultivariateNormal(covariance="input"),
    Product({"vector": MultivariateNormal(), "label": Categorical(classes=3), "count": NegativeBinomial()}),
]


def has_closed_form(likelihood):
    return type(likelihood).estimate is not Likelihood.estimate and has_one_optimum(likelihood)


def has_one_optimum(likelihood):
    """A mixture has many, and no bound above them (test_normal_mixture.py judges its estimate)."""
    return "NormalMixture" not in repr(likelihood)


def is_smooth(likelihood):
    """A Laplace is not: its slope jumps at every y (test_laplace.py judges its estimate)."""
    return "Laplace" not in repr(likelihood) and has_one_optimum(likelihood)


def pytest_generate_tests(metafunc):
    everything = [cls.example() for cls in registered(Likelihood).values()] + VARIANTS
    groups = {
        "likelihood": everything,
        "labelled": [one for one in everything if one.labels],
        "smooth": [one for one in everything if is_smooth(one)],
        "closed_form": [one for one in everything if has_closed_form(one)],
    }
    for name, members in groups.items():
        if name in metafunc.fixturenames:
            metafunc.parametrize(name, members, ids=repr)


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
