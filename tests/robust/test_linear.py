"""On linear models attacks have closed forms in every p-norm."""

from __future__ import annotations

import math

import numpy as np
import pytest

from likely import Classifier, Regressor
from likely.core.errors import SpecError
from likely.robust import FGSM, PGD, DeepFool, Linear, attack

NORMS = (1, 1.5, 2, 4, math.inf)


def dual(norm):
    return {1: math.inf, math.inf: 1.0}.get(norm) or norm / (norm - 1)


def faces(model, X, y):
    """Margins (n, wrong classes) and the dual norms of their gradients, from the coefficients."""
    if len(model.classes_) == 2:
        signs = np.where(y == model.classes_[1], -1.0, 1.0)[:, None]
        logits = X @ model.coef_.reshape(-1) + model.intercept_
        return signs * logits[:, None], lambda q: np.full((len(X), 1), np.linalg.norm(model.coef_.ravel(), q))
    place = np.searchsorted(model.classes_, y)
    logits = X @ model.coef_.T + model.intercept_
    others = np.array([[k for k in range(len(model.classes_)) if k != own] for own in place])
    margins = np.take_along_axis(logits, others, 1) - logits[np.arange(len(y)), place][:, None]
    gaps = model.coef_[others] - model.coef_[place][:, None]
    return margins, lambda q: np.linalg.norm(gaps, q, axis=2)


@pytest.fixture(params=[2, 3], ids=["binary", "three classes"])
def task(request, clouds, linear):
    X, y = clouds
    if request.param == 3:
        return linear, X, y
    kept = y != "c"
    return Classifier(prior="normal(1.0)").fit(X[kept], y[kept]), X[kept], y[kept]


@pytest.mark.parametrize("norm", NORMS)
def test_the_smallest_change_is_the_margin_over_the_dual_norm(task, norm):
    model, X, y = task
    margins, slopes = faces(model, X, y)
    distance = np.maximum(-margins / slopes(dual(norm)), 0).min(1)
    for method in (Linear(norm=norm, overshoot=1e-6), DeepFool(norm, overshoot=1e-6)):
        found = attack(model, X, y, method)
        assert found.success.all()
        sizes = np.linalg.norm(found.perturbed - X, norm, axis=1)
        np.testing.assert_allclose(sizes, (1 + 1e-6) * distance, rtol=1e-6, atol=1e-9)
        assert (found.steps == (distance > 0)).all()


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("radius", [0.3, 1.0])
def test_the_largest_margin_in_a_ball_is_that_of_the_dual_norm(task, norm, radius):
    model, X, y = task
    margins, slopes = faces(model, X, y)
    worst = (margins + radius * slopes(dual(norm))).max(1)
    found = attack(model, X, y, Linear(radius, norm=norm))
    reached = faces(model, found.perturbed, y)[0].max(1)
    right = margins.max(1) <= 0
    np.testing.assert_allclose(reached[right], worst[right], rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(found.success, (worst > 0) | ~right)


@pytest.mark.parametrize("norm", [1, 2, math.inf])
def test_iterated_attacks_reach_the_closed_form(task, norm):
    model, X, y = task
    for radius in (0.3, 0.8):
        exact = attack(model, X, y, Linear(radius, norm=norm))
        many = attack(model, X, y, PGD(radius, norm, steps=40))
        assert not (many.success & ~exact.success).any()
        assert (many.success == exact.success).mean() > 0.95
        if len(model.classes_) == 2:
            np.testing.assert_array_equal(attack(model, X, y, FGSM(radius, norm)).success, exact.success)


def test_every_number_moves_by_itself_inside_bounds(task):
    """In the ∞-norm the best change inside a box is known: each column goes to whichever end is nearer."""
    model, X, y = task
    low, high = X.min(0), X.max(0)
    found = attack(model, X, y, Linear(0.7, norm=math.inf), bounds=(low, high))
    margins = faces(model, found.perturbed, y)[0].max(1)
    for row, label, margin, stayed in zip(X, y, margins, found.steps == 0, strict=True):
        corners = np.array(np.meshgrid(*zip(np.maximum(row - 0.7, low), np.minimum(row + 0.7, high), strict=True)))
        best = faces(model, corners.reshape(4, -1).T, np.full(16, label))[0].max()
        assert stayed or margin == pytest.approx(best, abs=1e-9)
    with pytest.raises(SpecError, match="has no closed form inside bounds"):
        attack(model, X, y, Linear(0.7, norm=2), bounds=(low, high))


@pytest.mark.parametrize("norm", NORMS)
def test_predictions_move_by_the_radius_times_the_dual_norm(rng, norm):
    X = rng.normal(size=(30, 4))
    model = Regressor().fit(X, X @ [1.0, -2.0, 0.5, 0.0] + 0.1 * rng.normal(size=30))
    found = attack(model, X, None, Linear(0.25, norm=norm), threshold=1e-6)
    moved = np.abs(model.predict(found.perturbed) - model.predict(X))
    np.testing.assert_allclose(moved, 0.25 * np.linalg.norm(model.coef_, dual(norm)), rtol=1e-9)
