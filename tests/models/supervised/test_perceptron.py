from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

import likely
from likely import Perceptron
from likely.core.errors import ConvergenceWarning, DataError, SpecError


def separable(seed, rows, columns, gap):
    """Rows on both sides of a random hyperplane, kept apart from it by `gap`, and that plane [w, b] of length 1."""
    rng = np.random.default_rng(seed)
    plane = rng.normal(size=columns + 1)
    plane /= np.linalg.norm(plane)
    X = 3 * rng.normal(size=(rows, columns))
    side = X @ plane[:-1] + plane[-1]
    X += np.outer(np.where(side > 0, gap, -gap), plane[:-1]) / (plane[:-1] @ plane[:-1])
    return X, np.where(side > 0, 1, -1), plane


@settings(deadline=None, max_examples=50)
@given(st.integers(0, 2**31), st.integers(2, 60), st.integers(1, 5), st.floats(0.3, 3.0), st.booleans())
def test_mistakes_are_at_most_the_squared_ratio_of_radius_to_margin(seed, rows, columns, gap, shuffle):
    """Novikoff: mistakes ≤ R²/γ², for x̃ = [x, 1], R = max‖x̃‖ and the margin γ of any separating unit vector."""
    X, y, plane = separable(seed, rows, columns, gap)
    if len(np.unique(y)) < 2:
        X, y = np.vstack([X, -X]), np.concatenate([y, -y])
        plane = np.append(plane[:-1] / np.linalg.norm(plane[:-1]), 0.0)
        keep = y * (X @ plane[:-1]) > 0.1
        assume(len(np.unique(y[keep])) == 2)
        X, y = X[keep], y[keep]
    augmented = np.column_stack([X, np.ones(len(X))])
    margin = (y * (augmented @ plane)).min()
    model = Perceptron(max_iter=100_000, shuffle=shuffle, random_state=0).fit(X, y)
    assert model.mistakes_ <= (np.linalg.norm(augmented, axis=1).max() / margin) ** 2
    np.testing.assert_array_equal(model.predict(X), y)


def test_without_intercept_the_bound_holds_in_the_plain_space():
    X, y, plane = separable(0, 40, 3, 0.5)
    direction = plane[:-1] / np.linalg.norm(plane[:-1])
    keep = y * (X @ direction) > 0.2
    X, y = X[keep], y[keep]
    model = Perceptron(fit_intercept=False, random_state=0).fit(X, y)
    bound = (np.linalg.norm(X, axis=1).max() / (y * (X @ direction)).min()) ** 2
    assert 0 < model.mistakes_ <= bound
    assert model.intercept_.tolist() == [0.0]


def test_margin_is_the_smallest_distance_to_the_hyperplane():
    """Each distance is found as the shortest way to a point z with w·z + b = 0, by a solver that knows no formula."""
    X, y, _ = separable(3, 12, 2, 1.0)
    model = Perceptron(random_state=0).fit(X, y)
    plane = {"type": "eq", "fun": lambda z: model.coef_[0] @ z + model.intercept_[0]}
    nearest = [minimize(lambda z, x=x: ((z - x) ** 2).sum(), x, constraints=plane).x for x in X]
    distances = np.linalg.norm(X - np.array(nearest), axis=1)
    np.testing.assert_allclose(model.margin_, distances.min(), rtol=1e-6)
    assert model.margin_ > 0


def test_weights_are_the_signed_sum_of_mistaken_rows():
    X, y = np.array([[2.0], [-1.0]]), np.array([1, -1])
    model = Perceptron(shuffle=False).fit(X, y)
    # first row is a mistake at θ = 0: θ = (2, 1); the second is right: −(−2 + 1) > 0
    assert (model.mistakes_, model.coef_.tolist(), model.intercept_.tolist()) == (1, [[2.0]], [1.0])


def test_classes_that_cannot_be_separated_keep_the_average_of_all_passes():
    X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([0, 1, 0, 1])
    with pytest.warns(
        ConvergenceWarning, match=r"Some rows are still mistakes after max_iter=7 passes.*Raise max_iter, or use"
    ):
        model = Perceptron(max_iter=7, shuffle=False).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        ends = [last_pass(X, y, passes) for passes in range(1, 8)]
    np.testing.assert_allclose(np.append(model.coef_, model.intercept_), np.mean(ends, 0), rtol=1e-12)
    assert model.margin_ < 0
    assert model.n_iter_ == 7


def last_pass(X, y, passes):
    theta = np.zeros(2)
    for _ in range(passes):
        for x, sign in zip(np.column_stack([X, np.ones(len(X))]), 2 * y - 1, strict=True):
            if sign * (x @ theta) <= 0:
                theta = theta + sign * x
    return theta


def test_rows_without_a_label_do_not_count():
    X, y, _ = separable(1, 30, 2, 0.5)
    labels = y.astype(float)
    labels[::3] = np.nan
    kept = ~np.isnan(labels)
    model = Perceptron(shuffle=False).fit(X, labels)
    alone = Perceptron(shuffle=False).fit(X[kept], labels[kept])
    np.testing.assert_array_equal(model.coef_, alone.coef_)


def test_the_same_seed_gives_the_same_plane():
    X, y, _ = separable(2, 50, 4, 0.3)
    first, second = (Perceptron(random_state=5).fit(X, y) for _ in range(2))
    np.testing.assert_array_equal(first.coef_, second.coef_)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (
            [0, 1, 2, 0],
            "Only binary classification is supported by Perceptron: y has 3 classes; for more use Classifier",
        ),
        ([1, 1, 1, 1], r"y has only one class \(1\)"),
        ([[0, 1], [1, 0], [0, 1], [1, 0]], r"y has shape \(4, 2\); Perceptron needs one label per row"),
    ],
)
def test_other_targets_are_refused(labels, message):
    with pytest.raises(DataError, match=message):
        Perceptron().fit([[0.0], [1.0], [2.0], [3.0]], labels)


def test_other_rows_and_no_passes_are_refused():
    X, y, _ = separable(0, 6, 2, 1.0)
    with pytest.raises(DataError, match=r"X has shape \(6, 2, 1\); Perceptron needs one vector for each row"):
        Perceptron().fit(X.reshape(6, 2, 1), y)
    with pytest.raises(SpecError, match=r"Perceptron\(max_iter=0\): max_iter must be a positive integer"):
        Perceptron(max_iter=0).fit(X, y)


def test_saved_and_loaded_it_is_the_same(tmp_path):
    X, y, _ = separable(4, 30, 3, 0.4)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    model = Perceptron(random_state=0).fit(frame, np.where(y > 0, "yes", "no"))
    model.save(tmp_path / "plane.likely")
    loaded = likely.load(tmp_path / "plane.likely")
    np.testing.assert_array_equal(loaded.predict(frame), model.predict(frame))
    np.testing.assert_array_equal(loaded.decision_function(frame), model.decision_function(frame))
    assert loaded.classes_.dtype == model.classes_.dtype
    for name in ("mistakes_", "n_iter_", "margin_", "n_features_in_"):
        assert getattr(loaded, name) == getattr(model, name)
    assert list(loaded.feature_names_in_) == ["a", "b", "c"]
