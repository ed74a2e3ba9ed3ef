"""Quantile residuals are standard normal under the model that drew the targets, for any likelihood."""

import numpy as np
import pytest
import torch

from likely import Classifier, Regressor
from likely.core.errors import DataError
from likely.core.spec import registered
from likely.evaluate import quantile_residuals
from likely.likelihoods import Likelihood, MultivariateNormal, NegativeBinomial, Poisson, Target

FAMILIES = {
    name: cls.example()
    for name, cls in registered(Likelihood).items()
    if not cls.event_dim and name not in ("NormalMixture", "Chain")
}
N = 400


class Told:
    """A model that knows its distribution."""

    def __init__(self, family, eta):
        self.family, self.eta = family, eta
        if family.labels:
            self.classes_ = np.array(["c", "a", "b"][: 2 if family.size(Target(classes=2)) == 1 else 3])

    def predict_dist(self, X):
        return self.family.distribution(self.eta)


@pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES)
def test_residuals_of_the_right_model_are_standard_normal(family, seed):
    """Kolmogorov-Smirnov at 1 in 10,000 for each family."""
    generator = torch.Generator().manual_seed(seed)
    eta = 0.5 * torch.randn(N, family.size(family.example_target()), generator=generator).double()
    model = Told(family, eta)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        y = model.predict_dist(None).sample().numpy()
    y = model.classes_[y.astype(int)] if family.labels else y
    result = quantile_residuals(model, np.zeros((N, 1)), y, random_state=seed)
    assert result.p_value > 1e-4
    assert np.isfinite(result.values).all()
    assert result.fitted.shape == (N,)


def test_counts_that_vary_more_than_the_model_says_are_found():
    random = np.random.default_rng(0)
    X, years = random.normal(size=(300, 1)), random.uniform(1, 5, 300)
    y = random.negative_binomial(1, 1 / (1 + 3 * years))
    narrow, right = (Regressor(family).fit(X, y, exposure=years) for family in (Poisson(), NegativeBinomial()))
    poor = quantile_residuals(narrow, X, y, exposure=years)
    assert poor.p_value < 1e-6
    assert quantile_residuals(right, X, y, exposure=years).p_value > 1e-4
    assert "quantile residuals of 300 targets" in str(poor)


def test_missing_targets_do_not_count_and_strangers_are_refused():
    X = np.arange(6.0).reshape(-1, 1)
    model = Classifier(prior="normal(1.0)").fit(X, [0, 0, 1, 0, 1, 1])
    assert len(quantile_residuals(model, X, [0, None, 1, 0, 1, 1]).values) == 5
    with pytest.raises(DataError, match="y has the class 7"):
        quantile_residuals(model, X, [0, 7, 1, 0, 1, 1])
    with pytest.raises(DataError, match="every one is missing"):
        quantile_residuals(model, X, [None] * 6)
    with pytest.raises(DataError, match=r"y has shape \(2,\)"):
        quantile_residuals(Regressor().fit(X, X[:, 0] ** 2), X, [1.0, 2.0])
    with pytest.raises(DataError, match="for vectors look at one coordinate"):
        quantile_residuals(Told(MultivariateNormal(), torch.zeros(6, 5)), X, X)
