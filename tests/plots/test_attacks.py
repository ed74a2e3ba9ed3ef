import math

import numpy as np
import pytest

from likely import plots
from likely.core.errors import DataError
from likely.evaluate import Robustness
from likely.robust import Attacked

CURVE = Robustness(0.98, np.array([0.1, 0.2]), np.array([0.7, 0.2]), math.inf, 100)
OTHER = Robustness(0.96, np.array([0.1, 0.2]), np.array([0.9, 0.8]), math.inf, 100)


def attacked(X, success):
    ones = np.ones(len(X))
    return Attacked(X + 0.25, np.array(success), np.arange(len(X)), ones.astype(int), ones, ones, ones)


def test_the_curve_starts_at_the_clean_accuracy():
    ax = plots.robustness(CURVE)
    np.testing.assert_allclose(ax.lines[0].get_xdata(), [0, 0.1, 0.2])
    np.testing.assert_allclose(ax.lines[0].get_ydata(), [0.98, 0.7, 0.2])
    assert "∞-norm" in ax.get_xlabel()


def test_several_curves_are_named_and_the_best_is_the_finding():
    ax = plots.robustness({"plain": CURVE, "trained against": OTHER})
    assert ax.get_title(loc="left") == "trained against withstands most: 80% at a radius of 0.2"
    assert {"plain", "trained against"} <= {text.get_text() for text in ax.texts}


def test_images_are_drawn_as_they_were_what_changed_and_changed():
    X = np.random.default_rng(0).random((3, 1, 5, 5))
    ax = plots.perturbation(X, attacked(X, [True, False, True]), ["p", "q", "r"])
    drawn = [image.get_array() for image in ax.images]
    assert len(drawn) == 6  # the row that was not fooled is left out
    np.testing.assert_allclose(drawn[0], X[0, 0])
    np.testing.assert_allclose(drawn[1], 0.25)
    np.testing.assert_allclose(drawn[5], X[2, 0] + 0.25)
    assert [text.get_text() for text in ax.texts] == ["p", "p → 0", "r", "r → 2"]
    assert len(plots.perturbation(X.reshape(3, 25), attacked(X, [False] * 3)).images) == 9
    assert len(plots.perturbation(X[:, 0], attacked(X, [True] * 3), rows=[1]).images) == 3


def test_errors():
    X = np.zeros((2, 1, 4, 4))
    with pytest.raises(DataError, match="robustness draws what"):
        plots.robustness([0.1, 0.2])
    with pytest.raises(DataError, match=r"rows=\[5\] must name rows of X, from 0 to 1"):
        plots.perturbation(X, attacked(X, [True, True]), rows=[5])
    with pytest.raises(DataError, match=r"X has shape \(2, 3\)"):
        plots.perturbation(np.zeros((2, 3)), attacked(np.zeros((2, 3)), [True, True]))
    with pytest.raises(DataError, match="the attack was on rows of shape"):
        plots.perturbation(X[:1], attacked(X, [True, True]))
