"""What classifiers and regressors share, on a linear regression whose answers are closed forms."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.stats import norm

from likely import Classifier, Regressor
from likely.core.errors import DataError, ModelFileError, SpecError
from likely.likelihoods import Normal
from likely.models.supervised import base
from likely.models.supervised.base import as_array

RNG = np.random.default_rng(0)
X = RNG.normal(size=(30, 2))
Y = X @ [1.5, -0.5] + 2.0 + 0.3 * RNG.normal(size=30)


@pytest.fixture
def model():
    return Regressor(likelihood=Normal(scale=0.5)).fit(X, Y)


def least_squares(weight):
    design = np.column_stack([X, np.ones(len(X))]) * np.sqrt(weight)[:, None]
    return np.linalg.lstsq(design, Y * np.sqrt(weight), rcond=None)[0]


def test_coefficients_are_those_of_least_squares(model):
    expected = least_squares(np.ones(30))
    np.testing.assert_allclose(model.coef_, expected[:2], rtol=1e-8)
    np.testing.assert_allclose(model.intercept_, expected[2], rtol=1e-8)


def test_a_missing_target_counts_as_a_row_of_no_weight():
    weight = np.where(np.arange(30) % 4 == 0, 0.0, 1.0 + np.arange(30))
    holes = np.where(weight == 0, np.nan, Y)
    expected = least_squares(weight)
    for y, given in ((Y, weight), (holes, 1.0 + np.arange(30))):
        fitted = Regressor().fit(X, y, sample_weight=given)
        np.testing.assert_allclose([*fitted.coef_, *np.ravel(fitted.intercept_)], expected, rtol=1e-7)


def test_log_prob_is_the_density_and_0_where_y_is_missing(model):
    y = np.where(np.arange(30) == 3, np.nan, Y)
    expected = norm(model.predict(X), 0.5).logpdf(Y)
    expected[3] = 0.0
    np.testing.assert_allclose(model.log_prob(X, y), expected, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(model.predict_dist(X).mean.ravel(), model.predict(X), rtol=1e-12)


def test_answers_in_blocks_are_the_same(model, monkeypatch):
    whole = model.predict(X), model.log_prob(X, Y)
    monkeypatch.setattr(base, "BLOCK", 1)
    monkeypatch.setattr(base, "LEAST", 7)
    for value, expected in zip((model.predict(X), model.log_prob(X, Y)), whole, strict=True):
        np.testing.assert_allclose(value, expected, rtol=1e-10, atol=1e-12)


def test_draws_are_repeatable_and_have_an_axis_of_their_own(model):
    draws = model.sample(X[:4], 3, random_state=1)
    assert draws.shape == (3, 4)
    np.testing.assert_array_equal(draws, model.sample(X[:4], 3, random_state=1))
    assert (draws != model.sample(X[:4], 3, random_state=2)).all()


def test_a_fit_that_fails_leaves_no_model_behind(model):
    with pytest.raises(DataError, match="y has no target at all: every one is missing"):
        model.fit(X, np.full(30, np.nan))
    assert not hasattr(model, "posterior_")
    with pytest.raises(AttributeError, match="has coefficients once it is fitted with a linear network"):
        _ = model.coef_
    with pytest.raises(AttributeError, match="log_evidence_ once fitted by"):
        _ = model.log_evidence_
    with pytest.raises(SpecError, match="standardise='no' must be True or False"):
        Regressor(standardise="no").fit(X, Y)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"kind": "cloud"}, "rows of an unknown kind: 'cloud'"),
        ({"in_shape": [0]}, r"in_shape=\[0\]; it must be sizes above 0"),
        ({"n_features_in": 3}, "its columns are not those of its network"),
        ({"positions": [2]}, r"its network gives|has .* numbers"),
    ],
)
def test_a_file_that_does_not_fit_itself_is_refused(model, changes, words):
    learned, tensors = model._state()
    with pytest.raises(ModelFileError, match=words):
        Regressor(likelihood=Normal(scale=0.5))._restore(learned | changes, tensors)


def test_a_restored_model_gives_the_same_answers():
    labels = np.where(np.roll(Y, 1) > 2, "high", "low")  # which X does not separate
    first = Classifier().fit(X, labels)
    again = Classifier()
    again._restore(*first._state())
    np.testing.assert_array_equal(again.predict_proba(X), first.predict_proba(X))


def test_a_tensor_is_an_array():
    np.testing.assert_array_equal(as_array(torch.arange(3)), [0, 1, 2])
