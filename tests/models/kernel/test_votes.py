"""Votes of pairs of classes: counted by hand, and as scikit-learn counts them."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
import torch
from sklearn.utils.multiclass import _ovr_decision_function

from likely.models.kernel.votes import against, decision


@pytest.mark.parametrize("classes", [2, 3, 5])
def test_what_one_class_has_against_another_is_what_the_other_lacks(classes):
    order = list(combinations(range(classes), 2))
    pairs = torch.from_numpy(np.random.default_rng(classes).normal(size=(20, len(order))))
    won = against(pairs, classes)
    assert torch.equal(won, -won.mT)
    for place, (first, later) in enumerate(order):
        assert torch.equal(won[:, later, first], pairs[:, place])


@pytest.mark.parametrize("classes", [3, 5])
def test_the_decision_is_that_of_scikit_learn(classes):
    pairs = np.random.default_rng(0).normal(size=(50, classes * (classes - 1) // 2)).round(1)  # some are 0
    expected = _ovr_decision_function(pairs > 0, pairs, classes)
    own = decision(torch.from_numpy(pairs), classes).numpy()
    votes = np.zeros((50, classes))
    for place, (first, later) in enumerate(combinations(range(classes), 2)):
        votes[np.arange(50), np.where(pairs[:, place] > 0, later, first)] += 1
    np.testing.assert_array_equal(np.round(own), votes)
    np.testing.assert_allclose(own, expected, rtol=1e-12)
