"""The curve against the closed form for Gaussian rows, its peak at the threshold, and what removes it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.tree import DecisionTreeClassifier

from likely import Regressor
from likely.core.errors import DataError, SpecError
from likely.inference import MAP
from likely.networks import MLP
from likely.theory.double_descent import RandomFeatures, double_descent, gaussian_descent


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    X, new = rng.normal(size=(40, 5)), rng.normal(size=(500, 5))
    return X, X[:, 0] + 0.5 * rng.normal(size=40), new, new[:, 0]


def test_the_error_on_new_rows_peaks_at_the_interpolation_threshold(data):
    curve = double_descent(*data, sizes=[2, 5, 10, 20, 30, 40, 50, 80, 200, 800])
    assert curve.threshold == curve.peak == 40
    assert curve.test[-1] < curve.test.max() / 20  # and falls again
    assert (np.diff(curve.train) <= 1e-9).all()
    assert (curve.train[5:] < 1e-12).all()  # from the threshold on every row is fitted
    assert curve.train[3] > 1e-3
    assert "peaks at size 40" in str(curve)


def test_a_ridge_penalty_removes_the_peak(data):
    sizes = [10, 40, 400]
    plain = double_descent(*data, sizes)
    ridge = double_descent(*data, sizes, lambda size, seed: RandomFeatures(size, ridge=0.1, random_state=seed))
    assert ridge.test[1] < plain.test[1] / 20
    assert ridge.test[1] < 1.5 * min(ridge.test)


@pytest.mark.parametrize("size", [3, 10, 15, 25, 40, 60])
def test_the_expected_curve_of_gaussian_rows(size, seed):
    """400 training sets; the mean error within 5 standard errors of the formula."""
    rows, columns, noise, rng = 20, 60, 0.5, np.random.default_rng((seed, size))
    errors = []
    for _ in range(400):
        beta = np.full(columns, columns**-0.5)
        X = rng.normal(size=(rows, columns))
        y = X @ beta + math.sqrt(noise) * rng.normal(size=rows)
        theta = np.zeros(columns)
        theta[:size] = np.linalg.pinv(X[:, :size]) @ y
        errors.append(((theta - beta) ** 2).sum() + noise)  # the error on new rows given the training set
    expected = gaussian_descent(size, rows, columns, noise=noise)
    assert abs(np.mean(errors) - expected) < 5 * np.std(errors) / 20


def test_the_formula_at_its_ends():
    assert gaussian_descent(0, 20, 50, signal=2.0, noise=0.5) == 2.5
    assert gaussian_descent(0, 1, 50, signal=2.0, noise=0.5) == 2.5
    assert [gaussian_descent(size, 20, 50, noise=0.1) for size in (19, 20, 21)] == [math.inf] * 3
    assert gaussian_descent(10, 20, 10) == 0.0  # no noise, and all columns
    assert gaussian_descent(20, 20, 20) == 0.0


def test_random_features_are_least_squares_and_then_the_smallest_solution(data):
    X, y, *_ = data
    for width in (7, 100):
        model = RandomFeatures(width, random_state=0).fit(X, y)
        features = np.sqrt(2 / width) * np.cos(X @ model.weights_ + model.phases_)
        np.testing.assert_allclose(model.coef_, np.linalg.pinv(features) @ y, atol=1e-8)
    ridge = RandomFeatures(30, ridge=0.7, random_state=0).fit(X, y)
    features = ridge.transform(X)
    expected = Ridge(0.7, fit_intercept=False).fit(features, y).coef_
    np.testing.assert_allclose(ridge.coef_, expected, atol=1e-8)


def test_many_random_waves_are_a_gaussian_kernel(data, seed):
    """Means of 50,000 products, with standard errors of 1/√50,000 at most."""
    X = data[0][:6]
    features = RandomFeatures(50_000, random_state=seed).fit(X, data[1][:6]).transform(X)
    distance = ((X[:, None] - X) ** 2).sum(-1)
    np.testing.assert_allclose(features @ features.T, np.exp(-distance / 10), atol=5 * 50_000**-0.5)


def test_lists_of_estimators(data):
    X, y, new, truth = data
    widths = [1, 4]
    networks = [Regressor(network=MLP((width,)), inference=MAP(epochs=2)) for width in widths]
    curve = double_descent(X, y, new, truth, widths, networks, repeats=2, threshold=3.0)
    assert curve.quartiles.shape == (2, 2)
    assert (curve.quartiles[0] < curve.test).all()  # their seeds differ
    assert (curve.quartiles[1] > curve.test).all()
    assert curve.threshold == 3.0
    depths = [DecisionTreeClassifier(max_depth=depth) for depth in (1, 3, 20)]
    labels = double_descent(X, y > 0, new, truth > 0, (1, 3, 20), depths, repeats=2)
    assert labels.measure == "fraction of wrong labels"
    assert labels.train[-1] == 0
    assert ((labels.test >= 0) & (labels.test <= 1)).all()
    fixed = double_descent(X, y > 0, new, truth > 0, (1, 2), lambda size, seed: LogisticRegression(C=size), repeats=1)
    assert (fixed.quartiles == fixed.test).all()


def test_the_same_seed_gives_the_same_curve(data):
    first, again, other = (double_descent(*data, [5, 50], repeats=2, random_state=seed).test for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


def test_bad_arguments_are_named(data):
    with pytest.raises(SpecError, match=r"sizes=.* must be two or more numbers, each larger"):
        double_descent(*data, [5, 3])
    with pytest.raises(DataError, match="model has 1 estimators, but there are 2 sizes"):
        double_descent(*data, [3, 5], [Ridge()])
    with pytest.raises(SpecError, match="repeats=0 must be"):
        double_descent(*data, [3, 5], repeats=0)
    with pytest.raises(SpecError, match="width=0 must be a number of features"):
        RandomFeatures(0)
    with pytest.raises(SpecError, match=r"ridge=-1.0 must be 0 or more"):
        RandomFeatures(3, ridge=-1.0)
    with pytest.raises(SpecError, match="size=5 must be between 0 and columns=3"):
        gaussian_descent(5, 10, 3)
    with pytest.raises(SpecError, match="are variances"):
        gaussian_descent(1, 10, 3, noise=-1.0)
