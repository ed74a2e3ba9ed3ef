"""What is attacked: modules in any mode, few rows, rows in any form."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from torch import nn

from likely import PCA, Classifier, KMeans, Regressor
from likely.core.errors import ApproximationWarning, DataError, SpecError
from likely.robust import FGSM, PGD, attack
from likely.robust.victims import learned_span


# --- modules ----------------------------------------------------------------------------------------------------------
def test_modules_answer_as_they_evaluate_and_stay_in_their_mode():
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.5), nn.Linear(8, 3))
    net[3].eval()
    x = torch.rand(20, 4)
    before = {name: value.clone() for name, value in net.state_dict().items()}
    found = [attack(net, x, None, PGD(0.5, steps=5)) for _ in range(2)]
    assert [part.training for part in net.modules()] == [True, True, True, True, False, True]
    assert all(torch.equal(value, before[name]) for name, value in net.state_dict().items())
    same = attack(net.eval(), x, None, PGD(0.5, steps=5))
    for each in found:
        assert torch.equal(each.perturbed, same.perturbed)


def test_a_module_that_cannot_be_copied_is_refused_in_words():
    class Held(nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = torch.ones(2, requires_grad=True) * 2  # no leaf

        def forward(self, x):
            return x * self.scale

    with pytest.raises(SpecError, match=r"Held in training.* call model.eval\(\) first"):
        attack(Held(), torch.rand(5, 2), None, FGSM(0.1))
    attack(Held().eval(), torch.rand(5, 2), None, FGSM(0.1))


# --- models ---------------------------------------------------------------------------------------------------------
def test_models_that_are_no_classifiers_or_regressors_are_refused_by_name(clouds):
    for model in (KMeans(2, random_state=0), PCA(1)):
        with pytest.raises(
            SpecError, match=f"model is a {type(model).__name__}; attacks and certificates take a fitted Classifier, "
        ):
            attack(model.fit(clouds[0]), *clouds, FGSM(0.1))


# --- few rows ---------------------------------------------------------------------------------------------------------
def test_a_row_by_itself_has_the_radii_that_it_has_among_others(net, linear, clouds):
    X, y = clouds
    for model in (net, linear):
        together = attack(model, X, y, PGD(3.0, steps=3)).success[0]
        assert attack(model, X[:1], y[:1], PGD(3.0, steps=3)).success[0] == together
        attack(model, [[5.0, 5.01, 5.02, 5.03]], None, PGD(0.3, steps=3))
    with pytest.raises(DataError, match="radius=80 is beyond the range of X"):
        attack(net, X[:1], y[:1], FGSM(80.0))


def test_a_network_knows_the_range_that_it_learned_from(net, clouds):
    """The columns of a table remember their ends; float32 keeps seven digits of them."""
    low, high = learned_span(net.posterior_.module.inputs)
    assert low == pytest.approx(clouds[0].min(), rel=1e-5)
    assert high == pytest.approx(clouds[0].max(), rel=1e-5)


# --- forms ------------------------------------------------------------------------------------------------------------
def test_rows_come_back_in_their_form(linear, clouds):
    X, y = clouds
    array = attack(linear, X, y, FGSM(0.5)).perturbed
    tensor = attack(linear, torch.from_numpy(X), y, FGSM(0.5)).perturbed
    assert isinstance(tensor, torch.Tensor)
    assert tensor.dtype == torch.float64
    np.testing.assert_array_equal(tensor, array)
    for frames, made in ((pd.DataFrame, {"index": np.arange(90) + 5}), (pl.DataFrame, {})):
        frame = frames(dict(zip("pqrs", X.T, strict=True)), **made)
        model = Classifier(prior="normal(1.0)").fit(frame, y)
        changed = attack(model, frame, y, FGSM(0.5), bounds=(X.min(0), X.max(0))).perturbed
        assert isinstance(changed, frames)
        assert list(changed.columns) == list("pqrs")
        if made:
            np.testing.assert_array_equal(changed.index, frame.index)
        assert (np.abs(changed.to_numpy() - X) <= 0.5 + 1e-9).all()


# --- words ------------------------------------------------------------------------------------------------------------
def test_no_gradient_is_told_apart_from_no_success(linear, clouds, recwarn):
    X = clouds[0]
    pinned = (X[0], X[0] + np.array([0.0, 0.0, 0.0, 1e-9]))
    attack(linear, X[:1], linear.predict(X[:1]), FGSM(0.5), bounds=pinned)  # there is a gradient, and no room
    assert not [w for w in recwarn if issubclass(w.category, ApproximationWarning)]
    dead = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2))
    dead[0].bias.data.fill_(-1e6)
    with pytest.warns(ApproximationWarning, match="No row changed: the gradient is 0 at all of them.*ReLUs"):
        attack(dead, X, None, PGD(0.5, steps=2))


def test_thresholds_are_for_numbers(linear, clouds):
    X, y = clouds
    with pytest.raises(SpecError, match=r"threshold=0.5 is for regressors: a classifier errs where"):
        attack(linear, X, y, FGSM(0.1), threshold=0.5)
    line = Regressor().fit(X, X[:, 0])
    for threshold in ("a", [1.0, 2.0], float("nan")):
        with pytest.raises(SpecError, match=r"threshold=.* must be a number of the units of y, 0 or more"):
            attack(line, X, X[:, 0], FGSM(0.1), threshold=threshold)
