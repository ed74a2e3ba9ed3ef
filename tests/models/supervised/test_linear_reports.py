"""What an estimator tells of its linear network: coefficients, intercepts, and who has none."""

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression
from tests.models.supervised.summary_rows import LABELS, THREE, X, Y

from likely import Classifier, Regressor
from likely.inference import MAP, Exact
from likely.networks import MLP, Linear
from likely.priors import Normal


def test_coefficients_of_numbers_are_those_of_scikit_learn():
    peer = LinearRegression().fit(X, Y)
    model = Regressor().fit(X, Y)
    np.testing.assert_allclose(model.coef_, peer.coef_, rtol=1e-9)
    np.testing.assert_allclose(model.intercept_, peer.intercept_, rtol=1e-9)
    both = Regressor().fit(X, np.column_stack([Y, -Y]))
    np.testing.assert_allclose(both.coef_, [peer.coef_, -peer.coef_], rtol=1e-9)
    through_zero = Regressor(network=Linear(bias=False)).fit(X, Y)
    np.testing.assert_allclose(through_zero.coef_, LinearRegression(fit_intercept=False).fit(X, Y).coef_, rtol=1e-9)
    assert through_zero.intercept_ == 0


def test_coefficients_of_labels_are_those_of_scikit_learn():
    model = Classifier(prior=Normal(0.7)).fit(X, LABELS)
    peer = LogisticRegression(C=0.49, tol=1e-10, max_iter=2000).fit(X, LABELS)
    assert model.coef_.shape == peer.coef_.shape == (1, 3)
    np.testing.assert_allclose(model.coef_, peer.coef_, atol=1e-6)
    np.testing.assert_allclose(model.intercept_, peer.intercept_, atol=1e-6)
    assert Classifier().fit(X, THREE).coef_.shape == (3, 3)


def test_coefficients_of_a_posterior_are_its_means():
    full = Regressor(inference=Exact("full")).fit(X, Y)
    np.testing.assert_allclose(full.coef_, Regressor().fit(X, Y).coef_, rtol=1e-8)
    np.testing.assert_allclose(full.predict(X), X @ full.coef_ + full.intercept_, rtol=1e-6)


@pytest.mark.parametrize("model", [Regressor(), Regressor(network=MLP((3,)), inference=MAP(epochs=1)).fit(X, Y)])
def test_without_a_linear_fit_there_are_no_coefficients(model):
    for attribute in ("coef_", "intercept_"):
        assert not hasattr(model, attribute)
    with pytest.raises(AttributeError, match="has coefficients once it is fitted with a linear network"):
        _ = model.coef_
