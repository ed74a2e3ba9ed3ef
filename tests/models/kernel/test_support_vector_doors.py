"""Support vectors at the door: what is refused, files, and scikit-learn's conventions."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator
from tests.models.kernel.test_support_vector import HARD, numbers, two_classes

import likely
from likely.core.errors import ConvergenceWarning, DataError, SpecError, TrainingError
from likely.kernels import RBF, Deep, Linear
from likely.models.kernel import support_vector_dual
from likely.models.kernel.support_vector import SupportVector
from likely.networks import MLP


# --- bad input --------------------------------------------------------------------------------------------------
def test_a_kernel_that_is_no_covariance_is_refused(crossed):
    with pytest.raises(TrainingError, match=r"kernel=_Crossed\(\) is not positive semidefinite.*the eigenvalue -\d"):
        SupportVector(crossed).fit(*two_classes())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"C": 0.0}, r"SupportVector\(C=0.0\): C must be a positive number, or inf"),
        ({"C": "1"}, r"C must be a positive number, or inf"),
        ({"C": float("nan")}, "C must be a positive number"),
        ({"epsilon": -0.1}, r"SupportVector\(epsilon=-0.1\): epsilon must be None for classes, or 0 or a positive"),
        ({"tol": 0.0}, r"SupportVector\(tol=0.0\): tol must be a number between 0 and 1"),
        ({"kernel": "rfb"}, "Did you mean RBF"),
    ],
)
def test_bad_arguments_are_refused(arguments, message):
    with pytest.raises(SpecError, match=message):
        SupportVector(**arguments).fit(*two_classes())


def test_bad_targets_are_refused():
    X, y = two_classes()
    for labels, message in (
        (None, "SupportVector requires y to be passed"),
        (["a"] * len(X), r"y has only one class \('a'\); a classifier needs at least two"),
        ([None] * len(X), "y has no label that counts"),
        (X[:, 0], "y is continuous"),
        (np.zeros((len(X), 2), int), r"y has shape \(120, 2\); SupportVector needs one label per row"),
    ):
        with pytest.raises(DataError, match=message):
            SupportVector().fit(X, labels)
    with pytest.raises(DataError, match=r"y has only one class \('in'\)"):
        SupportVector().fit(X, y, (y == "in").astype(float))
    for target, message in (
        (X[:, :2], r"y has shape \(120, 2\); SupportVector needs one number per row"),
        (y, "y has text"),
        (np.full(len(X), np.nan), "y has no target: all are missing"),
    ):
        with pytest.raises(DataError, match=message):
            SupportVector(epsilon=0.1).fit(X, target)
    with pytest.raises(NotFittedError):
        SupportVector().predict(X)


def test_a_solution_that_falls_short_says_so(monkeypatch):
    monkeypatch.setattr(support_vector_dual, "STEPS", 5)
    monkeypatch.setattr(support_vector_dual, "WORK", 0)
    with pytest.warns(ConvergenceWarning, match=r"from the conditions of its optimum, more than tol=1e-06; scale the"):
        model = SupportVector(probability=False).fit(*two_classes())
    assert model.kkt_residual_ > 1e-6


def test_constant_targets_and_rows_are_no_trouble():
    X, _ = numbers(20)
    flat = SupportVector(epsilon=0.1).fit(X, np.full(20, 3.0))
    np.testing.assert_allclose(flat.predict(X), 3.0)
    assert (len(flat.support_), flat.margin_) == (0, math.inf)
    same = SupportVector(probability=False).fit(np.zeros((4, 1)), [0, 0, 0, 1])
    assert same.predict([[0.0]]) == 0


# --- files, scikit-learn ----------------------------------------------------------------------------------------
@pytest.mark.parametrize("kernel", ["matern(0.5, smoothness=1.5)", Deep(MLP((4,))), 2.0 * RBF() + Linear()])
def test_a_saved_classifier_keeps_its_support_vectors_alone(tmp_path, kernel):
    X, y = two_classes()
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    model = SupportVector(kernel, random_state=0).fit(frame, y)
    model.save(tmp_path / "model.likely")
    loaded = likely.load(tmp_path / "model.likely")
    np.testing.assert_array_equal(loaded.predict(frame), model.predict(frame))
    np.testing.assert_array_equal(loaded.predict_proba(frame), model.predict_proba(frame))
    for name in ("support_", "support_vectors_", "n_support_", "slack_", "classes_"):
        np.testing.assert_array_equal(getattr(loaded, name), getattr(model, name))
    assert (loaded.margin_, loaded.kkt_residual_, loaded.kernel_) == (model.margin_, model.kkt_residual_, model.kernel_)
    assert loaded.support_vectors_.shape == (len(model.support_), 3)


@pytest.mark.parametrize("C", [2.0, HARD])
def test_a_saved_regressor_is_the_same(tmp_path, C):
    X, y = numbers()
    model = SupportVector(RBF(0.5), C, epsilon=0.3).fit(X, y)
    model.save(tmp_path / "model.likely")
    loaded = likely.load(tmp_path / "model.likely")
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    assert loaded.C == C
    assert not hasattr(loaded, "classes_")


def test_a_saved_model_of_several_classes_is_the_same(tmp_path):
    X, y = load_iris(return_X_y=True)
    model = SupportVector(random_state=0).fit(X, y)
    model.save(tmp_path / "model.likely")
    loaded = likely.load(tmp_path / "model.likely")
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
    assert loaded.margin_ == model.margin_


def test_it_is_a_classifier_or_a_regressor():
    assert is_classifier(SupportVector())
    assert is_regressor(SupportVector(epsilon=0.1))
    assert not is_regressor(SupportVector())
    X, y = numbers()
    assert np.mean(cross_val_score(SupportVector(epsilon=0.1), X, y)) > 0.7


def test_a_model_that_turns_regressor_forgets_its_classes():
    X, y = two_classes()
    model = SupportVector().fit(X, y)
    assert not hasattr(model.set_params(epsilon=0.1).fit(X, X[:, 0]), "classes_")


def test_pipelines_and_searches_reach_into_the_kernel():
    X, y = load_breast_cancer(return_X_y=True)
    model = make_pipeline(StandardScaler(), SupportVector(probability=False))
    grid = {"supportvector__kernel__lengthscale": [0.01, 5.0], "supportvector__C": [1.0]}
    search = GridSearchCV(model, grid, cv=3).fit(X[:200], y[:200])
    assert search.best_params_["supportvector__kernel__lengthscale"] == 5.0
    assert search.best_score_ > 0.9
    assert clone(SupportVector(RBF(2.0))).kernel == RBF(2.0)


EXCUSED = {
    "check_sample_weight_equivalence_on_dense_data": "repeats of a row fall into different folds of the calibration, "
    "and one of its classes has a single row",
    "check_classifiers_train": "near ½ the side of the margin, which predict goes by, may be the less probable",
}


@pytest.mark.parametrize(
    ("model", "excused"),
    [
        (SupportVector(random_state=0), EXCUSED),
        (SupportVector(probability=False), {}),
        (SupportVector(epsilon=0.1), {}),
    ],
    ids=["probability", "classes", "numbers"],
)
def test_scikit_learns_own_checks_pass(model, excused):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        results = check_estimator(model, on_fail=None, on_skip=None, expected_failed_checks=excused)
    assert {r["check_name"]: r["exception"] for r in results if r["status"] == "failed"} == {}
    assert sum(r["status"] == "passed" for r in results) >= 50
