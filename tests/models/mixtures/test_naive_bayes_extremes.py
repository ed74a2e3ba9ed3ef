"""Naive Bayes at extremes, and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_iris

from likely import NaiveBayes
from likely.core.errors import DataError, SpecError
from likely.likelihoods import (
    Categorical,
    Laplace,
    Normal,
    Poisson,
)


# --- extremes and bad input -----------------------------------------------------------------------------------------
def test_constant_columns_and_single_rows_have_finite_answers():
    X = np.array([[1.0, 5.0], [1.0, 6.0], [2.0, 5.0]])
    model = NaiveBayes().fit(X, ["a", "a", "b"])
    assert bool(np.isfinite(model.joint_log_prob(X)).all())
    np.testing.assert_array_equal(model.predict(X), ["a", "a", "b"])
    far = model.predict_proba([[1e200, -1e200]])  # where every density is 0
    np.testing.assert_allclose(far.sum(1), 1)


def test_a_column_without_any_value_is_refused():
    X, y = load_iris(return_X_y=True)
    X[:, 2] = np.nan
    with pytest.raises(DataError, match="column '2' of X has no value: every one is missing; leave it out"):
        NaiveBayes().fit(X, y)


@pytest.mark.parametrize(
    ("model", "y", "error", "message"),
    [
        (NaiveBayes(), [1, 1, 1, 1], DataError, r"y has only one class \(1\); a classifier needs at least two classes"),
        (NaiveBayes(), [np.nan] * 4, DataError, "y has no label at all; a classifier needs at least two classes"),
        (NaiveBayes(), [[0, 1]] * 4, DataError, r"y has shape \(4, 2\); NaiveBayes needs one label per row"),
        (NaiveBayes(), [0, 1], DataError, "y has 2 rows, but X has 4 rows"),
        (NaiveBayes(smoothing=-1.0), [0, 1, 0, 1], SpecError, r"smoothing=-1.0\): smoothing must be 0 or a positive"),
        (NaiveBayes(smoothing="x"), [0, 1, 0, 1], SpecError, "smoothing must be 0 or a positive number"),
        (NaiveBayes(class_prior=[1.0]), [0, 1, 0, 1], SpecError, "class_prior must be 2 probabilities that sum to 1"),
        (NaiveBayes(class_prior=[0.9, 0.3]), [0, 1, 0, 1], SpecError, "class_prior must be 2 probabilities"),
        (NaiveBayes("nothing"), [0, 1, 0, 1], SpecError, "nothing"),
        (NaiveBayes(Poisson()), [0, 1, 0, 1], DataError, r"column '1' of X has a negative value \(-1.0 at row 2\)"),
        (NaiveBayes([Normal()]), [0, 1, 0, 1], DataError, "X has 2 columns, but the 1 likelihoods describe 1"),
        (NaiveBayes({"0": Normal()}), [0, 1, 0, 1], SpecError, "likelihood has none for column '1'"),
    ],
)
def test_what_cannot_be_fitted_is_refused(model, y, error, message):
    with pytest.raises(error, match=message):
        model.fit([[0.0, 1.0], [1.0, 2.0], [0.0, -1.0], [2.0, 0.0]], y)


def test_infinity_and_other_rows_are_refused():
    X, y = load_iris(return_X_y=True)
    model = NaiveBayes().fit(X, y)
    with pytest.raises(DataError, match=r"X contains infinity \(inf\) at row 0, column 0"):
        model.predict(np.full((1, 4), np.inf))
    with pytest.raises(DataError, match=r"X has shape \(150, 2, 2\); NaiveBayes needs one vector for each row"):
        NaiveBayes().fit(X.reshape(150, 2, 2), y)
    with pytest.raises(DataError, match="n=0: how many to draw must be an integer above 0"):
        model.joint_sample(0)
    with pytest.raises(DataError, match="y has the class 7 at row 0, which was not seen in fit"):
        model.log_prob(X[:1], [7])
    with pytest.raises(DataError, match="y has no label that counts"):
        model.score(X[:1], [np.nan])


def test_a_label_that_fit_did_not_see_is_named():
    X, y = [[0], [1], [2], [1]], [0, 1, 0, 1]
    with pytest.raises(DataError, match=r"X has a value outside the support \(3 at row 1\); .* below 3\."):
        NaiveBayes(Categorical()).fit(X, y).predict([[0], [3]])
    room = NaiveBayes(Categorical(4)).fit(X, y)  # told of a fourth label, it has its share of the smoothing
    np.testing.assert_allclose(room.predict_proba([[3]]), [[0.5, 0.5]])


def test_partial_fit_says_what_it_needs():
    X, y = load_iris(return_X_y=True)
    with pytest.raises(DataError, match="classes must be passed on the first call to partial_fit"):
        NaiveBayes().partial_fit(X, y)
    with pytest.raises(DataError, match=r"classes has only one class \(0\)"):
        NaiveBayes().partial_fit(X, y, classes=[0])
    with pytest.raises(DataError, match="y has the class 2 at row 100"):
        NaiveBayes().partial_fit(X, y, classes=[0, 1])
    model = NaiveBayes().partial_fit(X, y, classes=[0, 1, 2])
    before = model.predict_proba(X)
    with pytest.raises(DataError, match="classes has 0, 1, but the first call said 0, 1, 2"):
        model.partial_fit(X, y, classes=[0, 1])
    with pytest.raises(DataError, match="X has 3 features, but NaiveBayes is expecting 4"):
        model.partial_fit(X[:, :3], y)
    np.testing.assert_array_equal(model.predict_proba(X), before)
    with pytest.raises(SpecError, match=r"partial_fit cannot add rows to Laplace\(\), which has no sufficient"):
        NaiveBayes(Laplace()).partial_fit(X, y, classes=[0, 1, 2])


def test_a_fit_that_fails_leaves_no_model_behind():
    X, y = load_iris(return_X_y=True)
    model = NaiveBayes().fit(X, y)
    with pytest.raises(DataError, match="only one class"):
        model.fit(X, np.zeros(len(y)))
    with pytest.raises(ValueError, match="not fitted"):
        model.predict(X)
