"""Accuracy against the radius of an attack."""

from __future__ import annotations

import math

import numpy as np
import pytest

from likely import Classifier, Regressor, evaluate
from likely.core.errors import DataError, SpecError
from likely.robust import PGD, DeepFool, Linear

X = np.arange(12.0)[:, None]
Y = np.where(X[:, 0] < 5.5, "a", "b")
RADII = [0.4, 0.6, 1.4, 3.6]


@pytest.fixture(scope="module")
def model():
    return Classifier(prior="normal(10.0)").fit(X, Y)


@pytest.mark.parametrize(
    "method", [PGD(1.0, steps=5), PGD(1.0, steps=5, step_size=0.5), Linear(1.0, math.inf), DeepFool()]
)
def test_the_curve_is_the_fraction_beyond_the_boundary(model, method):
    """The boundary is at 5.5: rows 5 and 6 are half a step from it, the next ones a step more."""
    curve = evaluate.robustness(model, X, Y, method, RADII, random_state=0)
    np.testing.assert_allclose(curve.accuracy, [1, 10 / 12, 10 / 12, 4 / 12])
    assert (curve.clean, curve.count) == (1.0, 12)
    assert "radius 0.6: 83.3% right" in str(curve)
    assert curve.to_dict()["radii"] == RADII


def test_a_curve_goes_on_when_few_rows_are_left():
    """Radii are in the units of all rows: those that withstood the last one may lie close together."""
    rows = np.r_[np.linspace(0, 10, 30), np.linspace(29.9, 30, 12)][:, None]
    labels = np.where(rows[:, 0] < 15, "a", "b")
    model = Classifier(prior="normal(10.0)").fit(rows, labels)
    boundary = -float(model.intercept_[0] / model.coef_.ravel()[0])
    radii = [10.0, 25.0]
    curve = evaluate.robustness(model, rows, labels, PGD(1.0, steps=5), radii)
    np.testing.assert_allclose(curve.accuracy, [np.mean(abs(rows - boundary) > radius) for radius in radii])
    with pytest.raises(DataError, match="radius=31 is beyond the range of X"):
        evaluate.robustness(model, rows, labels, PGD(1.0, steps=5), [1.0, 31.0])


@pytest.mark.parametrize("size", [1, 1.0])
def test_steps_grow_with_the_radius(model, size, monkeypatch):
    seen = []
    whole = PGD.perturb
    monkeypatch.setattr(PGD, "perturb", lambda spec, *given: seen.append(spec.step_size) or whole(spec, *given))
    evaluate.robustness(model, X, Y, PGD(2.0, step_size=size, steps=3), [0.4, 0.6])
    np.testing.assert_allclose(seen, [0.2, 0.3])


def test_rows_in_error_count_from_the_start(model):
    wrong = Y.copy()
    wrong[:3] = "b"
    curve = evaluate.robustness(model, X, wrong, PGD(1.0, steps=3), [0.1, 0.2])
    np.testing.assert_allclose([curve.clean, *curve.accuracy], 0.75)


def test_regressors_within_a_threshold():
    line = Regressor().fit(X, 2 * X[:, 0])
    curve = evaluate.robustness(line, X, 2 * X[:, 0], Linear(1.0, 2), [0.4, 0.6], threshold=1.0)
    np.testing.assert_allclose(curve.accuracy, [1, 0])


def test_errors(model):
    for radii in ([], [0.2, 0.1], [-1.0], [math.inf], "a", None):
        with pytest.raises(SpecError, match="radii must be positive numbers that rise"):
            evaluate.robustness(model, X, Y, PGD(1.0), radii)
    with pytest.raises(DataError, match="use norm 1, 2 or inf"):
        evaluate.robustness(model, X, Y, DeepFool(3))
