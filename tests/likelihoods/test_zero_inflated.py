from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch

from likely import Regressor
from likely.core.errors import DataError, SpecError
from likely.inference import MAP
from likely.likelihoods import NegativeBinomial, Normal, Poisson, ZeroInflated
from likely.networks import MLP
from likely.optim import Adam
from likely.probability.quantiles import cdf, quantile


@pytest.mark.parametrize("counts", [Poisson(), NegativeBinomial()], ids=repr)
@pytest.mark.parametrize("inflation", ["learned", "input"])
def test_probabilities_sum_to_one_and_give_the_moments_and_the_quantiles(counts, inflation):
    family = ZeroInflated(counts, inflation)
    eta = torch.tensor([[1.0, -0.3, -1.0]] if counts != Poisson() else [[1.0, -0.3]], dtype=torch.float64)
    distribution = family.distribution(eta)
    values = torch.arange(400.0, dtype=torch.float64)
    mass = distribution.log_prob(values.unsqueeze(-1)).exp()[:, 0]
    torch.testing.assert_close(family.log_prob(eta, values).exp(), mass)
    assert mass.sum().item() == pytest.approx(1.0)
    assert (mass @ values).item() == pytest.approx(distribution.mean.item())
    assert (mass @ values.square()).item() - distribution.mean.item() ** 2 == pytest.approx(
        distribution.variance.item()
    )
    torch.testing.assert_close(cdf(distribution, values.unsqueeze(-1))[:, 0], mass.cumsum(0))
    levels = torch.tensor([0.1, 0.4, 0.6, 0.9, 0.999], dtype=torch.float64)
    expected = torch.searchsorted(mass.cumsum(0), levels).double()
    torch.testing.assert_close(quantile(distribution, levels.unsqueeze(-1))[:, 0], expected)


def test_constant_inflation_is_that_of_statsmodels():
    discrete = pytest.importorskip("statsmodels.discrete.count_model")
    numdiff = pytest.importorskip("statsmodels.tools.numdiff")
    random = np.random.default_rng(2)
    X = random.normal(size=(300, 1))
    exposure = random.uniform(0.5, 3.0, 300)
    y = np.where(random.random(300) < 0.3, 0, random.poisson(exposure * np.exp(1.0 + 0.5 * X[:, 0])))
    design = np.column_stack([X, np.ones(300)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = discrete.ZeroInflatedPoisson(y, design, exposure=exposure).fit(method="bfgs", disp=0, gtol=1e-9)
    ours = Regressor(ZeroInflated()).fit(X, y, exposure=exposure)
    table = ours.summary()
    np.testing.assert_allclose(table.estimate, theirs.params[1:], atol=1e-6)
    curvature = numdiff.approx_hess(theirs.params, theirs.model.loglike)  # its own leaves out a term
    np.testing.assert_allclose(table.standard_error, np.diag(np.linalg.inv(-curvature))[1:] ** 0.5, rtol=1e-4)
    assert ours.posterior_.parameters["shared"].item() == pytest.approx(theirs.params[0], abs=1e-6)
    assert table.facts["log_likelihood"] == pytest.approx(theirs.llf, abs=1e-8)
    assert table.facts["aic"] == pytest.approx(theirs.aic, abs=1e-6)
    mean = theirs.predict(design, exposure=exposure, exog_infl=np.ones((300, 1)))
    np.testing.assert_allclose(ours.predict(X, exposure=exposure), mean, rtol=1e-6)


def test_a_network_learns_where_the_zeros_are():
    """Zeros that x tells: of rows below 0 nine in ten have no rate; a gap of 0.8 beside errors of about 0.05."""
    random = np.random.default_rng(4)
    X = random.uniform(-1, 1, size=(800, 1))
    y = np.where(random.random(800) < np.where(X[:, 0] < 0, 0.9, 0.1), 0, random.poisson(6.0, 800))
    model = Regressor(ZeroInflated(inflation="input"), MLP((8,)), inference=MAP(Adam(0.02), epochs=30), random_state=0)
    model.fit(X, y)
    zero = model.predict_dist([[-0.6], [0.6]]).zero
    assert zero[0] > 0.7 > 0.3 > zero[1]


def test_what_is_not_a_count_is_refused():
    with pytest.raises(DataError, match="ZeroInflated needs counts 0, 1, 2"):
        ZeroInflated().check(torch.tensor([0.5]))
    with pytest.raises(SpecError, match=r"Poisson\(\) or NegativeBinomial\(\)"):
        ZeroInflated(Normal())
    with pytest.raises(SpecError, match='"learned" or "input"'):
        ZeroInflated(inflation="known")
