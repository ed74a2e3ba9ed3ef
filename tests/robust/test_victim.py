"""What attacks ask: the margins of labels and numbers, and how far off a number may be."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from likely import Regressor
from likely.core.errors import DataError, SpecError
from likely.inference import MAP, Exact
from likely.networks import MLP
from likely.optim import Adam
from likely.robust import FGSM, PGD, DeepFool, Linear, attack
from likely.robust.victims import victim_of


def test_thresholds_are_for_numbers(linear, clouds):
    X, y = clouds
    with pytest.raises(SpecError, match=r"threshold=0.5 is for regressors: a classifier errs where"):
        attack(linear, X, y, FGSM(0.1), threshold=0.5)
    line = Regressor().fit(X, X[:, 0])
    for threshold in ("a", [1.0, 2.0], float("nan")):
        with pytest.raises(SpecError, match=r"threshold=.* must be a number of the units of y, 0 or more"):
            attack(line, X, X[:, 0], FGSM(0.1), threshold=threshold)


@pytest.mark.parametrize("inference", ["auto", Exact(), MAP(Adam(0.05), epochs=30)])
def test_regressors_err_beyond_a_threshold(rng, inference):
    X = rng.normal(size=(40, 3))
    y = X @ [1.0, -2.0, 0.5] + 0.1 * rng.normal(size=40)
    network = MLP((32,)) if isinstance(inference, MAP) else "linear"  # wide: no row lies where every unit is 0
    model = Regressor(network=network, inference=inference, random_state=0).fit(X, y)
    found = attack(model, X, None, PGD(0.5, steps=5), threshold=0.5)
    moved = np.abs(model.predict(found.perturbed) - model.predict(X))
    np.testing.assert_array_equal(found.success, moved > 0.5)
    assert found.rate > 0.9
    default = attack(model, X, y, FGSM(0.01))
    width = 2 * np.sqrt(model.predict_dist(X).variance.numpy())
    np.testing.assert_array_equal(default.success, np.abs(model.predict(default.perturbed) - y) > width)
    assert attack(model, X, y, DeepFool(), threshold=0.5).success.all()


def test_several_outputs_err_if_one_does(rng):
    X = rng.normal(size=(30, 3))
    Y = np.column_stack([X[:, 0], 2 * X[:, 1]])
    model = Regressor().fit(X, Y)
    found = attack(model, X, Y, Linear(0.4, norm=math.inf), threshold=[0.5, 0.5])
    assert found.success.all()  # 2 · 0.4 > 0.5
    assert not attack(model, X, Y, Linear(0.4, norm=math.inf), threshold=[0.5, 1.0]).success.any()


def test_margins_of_labels_are_gaps_to_the_own_score(linear, clouds):
    X, y = clouds
    victim = victim_of(linear)
    x = victim.read(X)
    place = victim.targets(x, X, y)
    scores = victim.scores(x)
    margins = victim.margins_of(scores, place)
    assert bool(margins.gather(1, place[:, None]).isinf().all())
    loss, margin = victim.evaluate(x, place)
    rows = np.arange(len(X))
    np.testing.assert_allclose(loss, -linear.predict_log_proba(X)[rows, place], rtol=1e-9, atol=1e-14)
    others = scores.numpy().copy()
    others[rows, place] = -np.inf
    np.testing.assert_allclose(margin, others.max(1) - scores.numpy()[rows, place])
    np.testing.assert_array_equal(victim.labels(x), np.searchsorted(linear.classes_, linear.predict(X)))


def test_a_number_errs_on_both_sides():
    """Scores 3 and 7 beside 5 are 2 off: by 1 beyond a threshold of 1, on one side or the other."""
    victim = victim_of(Regressor().fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 2.0]), 1.0)
    y = torch.tensor([[[5.0], [1.0]], [[5.0], [1.0]]])
    margins = victim.margins_of(torch.tensor([[3.0], [7.0]]), y)
    assert margins.tolist() == [[-3.0, 1.0], [1.0, -3.0]]
    np.testing.assert_array_equal(victim.wrong(np.array([5.9, 3.9]), y), [False, True])


def test_a_target_that_is_missing_is_named(clouds):
    X = clouds[0]
    y = X[:, 0].copy()
    y[4] = np.nan
    with pytest.raises(DataError, match="y has no number at row 4; an attack needs one for each row"):
        attack(Regressor().fit(X, X[:, 0]), X, y, FGSM(0.1))
