"""Weights of classes: scikit-learn's, and what fits no class."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.utils.class_weight import compute_class_weight

import likely
from likely import Classifier
from likely.core.errors import DataError, SpecError
from likely.likelihoods import Chain

RNG = np.random.default_rng(5)
X = RNG.normal(size=(150, 2))
TEXT = np.array(["low", "mid", "high"])[np.arange(150) % 3]


def test_class_weights_are_scikit_learns(tmp_path):
    y = (X[:, 0] > 1.0).astype(int)
    y[:5] = 1 - y[:5]
    for given in ("balanced", {0: 0.5, 1: 3.0}):
        theirs = LogisticRegression(C=np.inf, class_weight=given, tol=1e-10, max_iter=1000).fit(X, y)
        ours = Classifier(class_weight=given).fit(X, y)
        np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-4)
        expected = compute_class_weight(given, classes=np.array([0, 1]), y=y)
        by_rows = Classifier().fit(X, y, sample_weight=expected[y])
        np.testing.assert_allclose(ours.coef_, by_rows.coef_, rtol=1e-8)
        np.testing.assert_allclose(ours.summary(X, y).estimate, by_rows.summary(X, y, expected[y]).estimate, rtol=1e-8)
    ours.save(tmp_path / "model")
    kept = likely.load(tmp_path / "model")
    np.testing.assert_allclose(kept.summary(X, y).standard_error, ours.summary(X, y).standard_error)


def test_class_weights_that_fit_no_class_are_refused():
    with pytest.raises(DataError, match="class_weight has the class 'tall', which is not in y"):
        Classifier(class_weight={"tall": 2.0}).fit(X, TEXT)
    with pytest.raises(SpecError, match='must be None, "balanced", or a dict'):
        Classifier(class_weight="even").fit(X, TEXT)
    with pytest.raises(SpecError, match="weights of 0 or more"):
        Classifier(class_weight={"low": -1.0}).fit(X, TEXT)
    with pytest.raises(SpecError, match="use sample_weight"):
        Classifier(Chain(), class_weight="balanced").fit(X.reshape(75, 2, 2), TEXT.reshape(75, 2))
