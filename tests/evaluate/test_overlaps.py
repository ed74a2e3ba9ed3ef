"""Overlaps are those of scikit-learn, and the threshold is the best of all that there are."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import f1_score, jaccard_score

from likely.core.errors import DataError
from likely.evaluate import dice, dice_threshold, iou, overlap

RNG = np.random.default_rng(0)


def test_they_are_those_of_scikit_learn():
    truth, answer = RNG.integers(3, size=(2, 4, 9, 8))
    result = overlap(truth, answer)
    np.testing.assert_allclose(result.iou, jaccard_score(truth.ravel(), answer.ravel(), average=None))
    np.testing.assert_allclose(result.dice, f1_score(truth.ravel(), answer.ravel(), average=None))
    np.testing.assert_allclose(result.dice, 2 * result.iou / (1 + result.iou))
    assert (iou(truth, answer), dice(truth, answer)) == (result.iou.mean(), result.dice.mean())
    assert result.accuracy == np.mean(truth == answer)
    assert "0: IoU" in str(result)


def test_classes_that_neither_has_do_not_count_and_missing_pixels_neither():
    result = overlap([0, 0, 1, -1], [0, 0, 0, 1], labels=[0, 1, 2], missing_label=-1)
    np.testing.assert_allclose(result.iou, [2 / 3, 0, np.nan])
    assert result.pixels == 3
    assert iou([0, 0, 1, -1], [0, 0, 0, 1], labels=[0, 1, 2], missing_label=-1) == pytest.approx(1 / 3)


def test_classes_of_the_test_split_alone_are_named():
    with pytest.warns(UserWarning, match=r"classes that the model does not know \('nucleus'\)"):
        result = overlap(["cell", "nucleus"], ["cell", "cell"], labels=["cell", "ground"])
    assert result.classes.tolist() == ["cell", "ground", "nucleus"]
    np.testing.assert_allclose(result.iou, [0.5, np.nan, 0])


def test_the_threshold_has_the_largest_expected_dice_and_is_half_of_it():
    for _ in range(5):
        p = RNG.beta(0.5, 2.0, size=400)
        cuts = np.unique(np.r_[0, p])

        def reached(cut, p=p):
            return 2 * p[p > cut].sum() / ((p > cut).sum() + p.sum())

        best = max(reached(cut) for cut in cuts)
        cut = dice_threshold(p)
        assert reached(cut) == pytest.approx(best)
        assert p[p <= best / 2].size == (p <= cut).sum()


def test_bad_input_is_named():
    with pytest.raises(DataError, match=r"actual has shape \(2,\) and predicted \(3,\)"):
        overlap([0, 1], [0, 1, 1])
    with pytest.raises(DataError, match="actual has no labels"):
        overlap([-1], [0], missing_label=-1)
    with pytest.raises(DataError, match="between 0 and 1"):
        dice_threshold([2.0])
