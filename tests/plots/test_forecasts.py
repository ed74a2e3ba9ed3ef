import numpy as np
import pytest
from matplotlib import pyplot as plt
from scipy.special import ndtri

from likely import KalmanFilter
from likely.core.errors import DataError
from likely.inference import EM
from likely.plots.forecasts import forecast


@pytest.fixture(scope="module")
def data():
    X = np.cumsum(np.random.default_rng(0).normal(size=(60, 1)), 0) + np.random.default_rng(1).normal(size=(60, 1))
    X[20:25] = np.nan
    return X


@pytest.fixture(scope="module")
def model(data):
    return KalmanFilter.local_level(inference=EM(max_iter=5, tol=0.0)).fit(data)


def line(ax, label):
    return next(artist for artist in ax.get_lines() if artist.get_label() == label)


def band(ax, label):
    """Lower and upper edge of a band, at each of its times."""
    filled = next(artist for artist in ax.collections if artist.get_label() == label)
    points = filled.get_paths()[0].vertices
    times = np.unique(points[:, 0])
    return times, *(np.array([edge(points[points[:, 0] == t, 1]) for t in times]) for edge in (np.min, np.max))


def test_what_was_seen_the_signal_and_the_fan_are_drawn(model, data):
    ax = forecast(model, data, steps=8, levels=(0.5, 0.9), label="height (m)")
    np.testing.assert_array_equal(line(ax, "seen").get_ydata(), data[:, 0])
    np.testing.assert_allclose(line(ax, "smoothed").get_ydata(), model.transform(data)[:, 0])
    ahead = model.forecast(data, steps=8, level=0.9)
    np.testing.assert_allclose(line(ax, "forecast").get_ydata(), ahead.mean[:, 0])
    np.testing.assert_array_equal(line(ax, "forecast").get_xdata(), np.arange(60, 68))
    times, low, high = band(ax, "90%")
    np.testing.assert_array_equal(times, np.arange(59, 68))
    np.testing.assert_allclose(low[1:], ahead.lower[:, 0])
    np.testing.assert_allclose(high[1:], ahead.upper[:, 0])
    _, low, high = band(ax, "signal")
    deviation = np.sqrt(model.smooth(data)[1][:, 0, 0])
    np.testing.assert_allclose(high - low, 2 * ndtri(0.95) * deviation)
    assert (high - low)[22] > 1.2 * (high - low)[10]  # less is known where nothing was seen
    assert ax.get_title(loc="left").startswith("height (m): the next 8 steps, with 50% and 90% intervals")


def test_values_that_came_are_judged(model, data):
    ahead = model.forecast(data, steps=4, level=0.9)
    actual = ahead.mean[:, 0].copy()
    actual[1], actual[3] = ahead.upper[1, 0] + 1, np.nan
    ax = forecast(model, data, steps=4, actual=actual)
    assert ax.get_title(loc="left").startswith("2 of 3 values that came lie in their 90% interval")
    np.testing.assert_array_equal(line(ax, "inside").get_xdata(), [60, 62])
    np.testing.assert_array_equal(line(ax, "outside").get_ydata(), actual[1:2])


def test_an_inverse_and_times_are_those_of_the_reader(model, data):
    months = np.arange("2020-01", "2025-01", dtype="datetime64[M]")
    ax = forecast(model, data, steps=3, inverse=np.exp, times=months)
    np.testing.assert_allclose(line(ax, "forecast").get_ydata(), np.exp(model.forecast(data, 3).mean[:, 0]))
    np.testing.assert_array_equal(
        line(ax, "forecast").get_xdata(), np.arange("2025-01", "2025-04", dtype="datetime64[M]")
    )
    longer = np.arange(63) ** 2
    np.testing.assert_array_equal(line(forecast(model, data, 3, times=longer), "forecast").get_xdata(), longer[60:])


def test_any_column_and_given_axes_will_do():
    X = np.random.default_rng(0).normal(size=(30, 2))
    model = KalmanFilter(n_states=1, inference=EM(max_iter=2, tol=0.0)).fit(X)
    _, ax = plt.subplots()
    assert forecast(model, X, steps=2, column=1, ax=ax, title="own") is ax
    np.testing.assert_array_equal(line(ax, "seen").get_ydata(), X[:, 1])
    np.testing.assert_allclose(line(ax, "forecast").get_ydata(), model.forecast(X, 2).mean[:, 1])
    assert ax.get_title(loc="left") == "own"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"column": 1}, "column=1: X has 1 columns, counted from 0"),
        ({"times": [1, 2]}, "times has 2 values; X has 60 rows, and 12 steps are to come"),
        ({"actual": np.zeros(13)}, "actual has 13 values, but the forecast has 12 steps"),
    ],
)
def test_what_cannot_be_drawn_is_refused(model, data, arguments, message):
    with pytest.raises(DataError, match=message):
        forecast(model, data, **arguments)
