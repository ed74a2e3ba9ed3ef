import numpy as np
import pytest

from likely.core.errors import DataError
from likely.plots.descent import double_descent
from likely.theory.double_descent import DoubleDescent

CURVE = DoubleDescent(
    (5, 10, 20, 40, 200),
    np.array([0.5, 0.2, 0.0, 0.0, 0.0]),
    np.array([1.0, 2.0, 90.0, 3.0, 0.8]),
    np.array([[0.9, 1.5, 40.0, 2.0, 0.7], [1.1, 3.0, 200.0, 4.0, 0.9]]),
    threshold=20.0,
)


def lines(ax):
    return {line.get_label(): line for line in ax.get_lines()}


def test_both_curves_and_the_threshold():
    ax = double_descent(CURVE)
    drawn = lines(ax)
    np.testing.assert_array_equal(drawn["new rows"].get_xdata(), CURVE.sizes)
    np.testing.assert_array_equal(drawn["new rows"].get_ydata(), CURVE.test)
    np.testing.assert_allclose(drawn["training rows"].get_ydata(), [0.5, 0.2, 0.04, 0.04, 0.04])
    assert list(drawn["threshold"].get_xdata()) == [20.0, 20.0]
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
    assert ax.get_title(loc="left") == "Error on new rows peaks at 20 features, and is least at 200"
    assert {"new rows", "training rows"} <= {text.get_text() for text in ax.texts}
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("features", "squared error")


def test_few_sizes_have_no_logarithm():
    measure = "fraction of wrong labels"
    once = DoubleDescent((5, 10), CURVE.train[:2], CURVE.test[:2], CURVE.quartiles[:, :2], 8.0, measure)
    ax = double_descent(once, x_label="width", title="mine")
    assert ax.get_xscale() == "linear"
    assert (ax.get_xlabel(), ax.get_ylabel(), ax.get_title(loc="left")) == ("width", measure, "mine")


def test_sizes_must_be_positive():
    with pytest.raises(DataError, match="sizes must be positive"):
        double_descent(DoubleDescent((0, 1), np.ones(2), np.ones(2), np.ones((2, 2)), 1.0))
