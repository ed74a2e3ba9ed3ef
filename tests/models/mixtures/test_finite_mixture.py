"""What mixtures share: the same answers from components of Gaussians and of any likelihood."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import norm

from likely import GaussianMixture, Mixture
from likely.core.errors import DataError, SpecError
from likely.inference import EM
from likely.likelihoods import Normal
from likely.models.mixtures.finite_mixture import listed, require_number

X = np.concatenate([np.linspace(-3, -1, 10), np.linspace(4, 6, 5)])[:, None]


@pytest.fixture(params=["gaussian", "likelihood"])
def model(request):
    inference = EM(starts=1)
    if request.param == "gaussian":
        return GaussianMixture(2, inference=inference, random_state=0).fit(X)
    return Mixture(Normal(), 2, smoothing=1e-9, inference=inference, random_state=0).fit(X)


def joint(model):
    """log πₖ p(x | k), by scipy."""
    order = np.argsort(model.weights_)
    means, deviations = np.array([5.0, -2.0]), np.sqrt([X[10:].var(), X[:10].var()])
    values = norm(means, deviations).logpdf(X) + np.log([1 / 3, 2 / 3])
    return values[:, np.argsort(order)]


def test_answers_are_those_of_two_separate_clouds(model):
    expected = joint(model)
    np.testing.assert_allclose(np.sort(model.weights_), [1 / 3, 2 / 3], rtol=1e-3)
    np.testing.assert_allclose(model.log_prob(X), logsumexp(expected, axis=1), rtol=1e-3)
    share = np.exp(expected - logsumexp(expected, axis=1, keepdims=True))
    np.testing.assert_allclose(model.predict_proba(X), share, atol=1e-3)
    assert model.predict(X).tolist() == share.argmax(1).tolist()
    np.testing.assert_allclose(model.posterior(X).probs, model.predict_proba(X), rtol=1e-12, atol=1e-300)


def test_scores_and_criteria_follow_from_log_prob(model):
    log_prob, weight = model.log_prob(X), np.arange(1.0, 16.0)
    assert model.score(X, sample_weight=weight) == pytest.approx(np.average(log_prob, weights=weight), rel=1e-12)
    assert model.n_parameters_ == 5
    assert model.aic(X) == pytest.approx(-2 * log_prob.sum() + 10, rel=1e-12)
    assert model.bic(X) == pytest.approx(-2 * log_prob.sum() + 5 * np.log(15), rel=1e-12)
    assert model.log_likelihood_ == pytest.approx(log_prob.sum(), rel=1e-6)


def test_a_missing_value_is_drawn_and_imputed_from_its_component(model):
    means = model.predict_proba([[np.nan]])[0] @ np.array([X[model.predict(X) == k].mean() for k in range(2)])
    assert model.impute([[np.nan]])[0, 0] == pytest.approx(means, rel=1e-3)
    rows, component = model.sample(40, random_state=0, return_hidden=True)
    np.testing.assert_array_equal(model.predict(rows), component)
    with pytest.raises(DataError, match="condition has 2 rows; it is one row, with NaN for what is to be drawn"):
        model.sample(3, condition=X[:2])


def test_rows_that_cannot_be_fitted_are_refused():
    with pytest.raises(DataError, match="X has 1 sample, fewer than n_components=2; ask for fewer"):
        GaussianMixture(2).fit([[1.0]])
    with pytest.raises(DataError, match="column 1 of X has no value: all its rows are NaN; leave it out"):
        GaussianMixture(2).fit([[1.0, np.nan], [2.0, np.nan], [3.0, np.nan]])


def test_arguments_are_checked_and_components_named():
    with pytest.raises(SpecError, match=r"GaussianMixture\(tol=-1\): tol must be a number of at least 0"):
        require_number(type("GaussianMixture", (), {"tol": -1})(), "tol")
    assert (listed([3]), listed([0, 2])) == ("component 3", "components 0, 2")
