"""What is attacked: which models, how few rows, and what is said of those without gradients."""

from __future__ import annotations

import numpy as np
import pytest
from torch import nn

from likely import PCA, KMeans
from likely.core.errors import ApproximationWarning, DataError, SpecError
from likely.robust import FGSM, PGD, attack
from likely.robust.victims import learned_span


def test_models_that_are_no_classifiers_or_regressors_are_refused_by_name(clouds):
    for model in (KMeans(2, random_state=0), PCA(1)):
        with pytest.raises(
            SpecError, match=f"model is a {type(model).__name__}; attacks and certificates take a fitted Classifier, "
        ):
            attack(model.fit(clouds[0]), *clouds, FGSM(0.1))


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


def test_no_gradient_is_told_apart_from_no_success(linear, clouds, recwarn):
    X = clouds[0]
    pinned = (X[0], X[0] + np.array([0.0, 0.0, 0.0, 1e-9]))
    attack(linear, X[:1], linear.predict(X[:1]), FGSM(0.5), bounds=pinned)  # there is a gradient, and no room
    assert not [w for w in recwarn if issubclass(w.category, ApproximationWarning)]
    dead = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2))
    dead[0].bias.data.fill_(-1e6)
    with pytest.warns(ApproximationWarning, match="No row changed: the gradient is 0 at all of them.*ReLUs"):
        attack(dead, X, None, PGD(0.5, steps=2))
