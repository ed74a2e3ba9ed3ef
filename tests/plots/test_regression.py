import numpy as np
import pytest
from matplotlib.collections import LineCollection
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from likely import Regressor, plots
from likely.core.errors import DataError


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 10, size=(120, 1))
    return X, 2 * X[:, 0] + rng.normal(size=120)


@pytest.fixture(scope="module")
def model(data):
    return Regressor().fit(*data)


def line(ax, label):
    return next(artist for artist in ax.get_lines() if artist.get_label() == label)


def test_predictions_draw_targets_and_their_intervals(model, data):
    X, y = data
    ax = plots.predictions(model, X, y, level=0.8, label="height (m)")
    lower, upper = model.predict_interval(X, level=0.8)
    inside = (lower <= y) & (y <= upper)
    assert len(line(ax, "inside").get_xdata()) == inside.sum()
    assert len(line(ax, "outside").get_xdata()) == (~inside).sum()
    order = np.argsort(model.predict(X))
    bars = next(c for c in ax.collections if isinstance(c, LineCollection))
    np.testing.assert_allclose([s[:, 1] for s in bars.get_segments()], np.stack([lower, upper], 1)[order])
    assert ax.get_title(loc="left").startswith(f"{100 * inside.mean():.1f}".removesuffix(".0"))
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("predicted height (m)", "actual height (m)")


def test_predictions_of_many_rows_are_thinned(model, data):
    ax = plots.predictions(model, *data, most=50)
    assert sum(len(line(ax, name).get_xdata()) for name in ("inside", "outside")) == 40


def test_models_without_intervals_and_pipelines_work(data):
    plain = plots.predictions(LinearRegression().fit(*data), *data)
    assert plain.get_title(loc="left").startswith("RMSE")
    assert not plain.collections
    scaled = make_pipeline(StandardScaler(), Regressor()).fit(*data)
    assert plots.predictions(scaled, *data).collections


def test_bands_hold_the_intervals_of_the_model(model, data):
    X, y = data
    ax = plots.predictive_band(model, X, y, levels=(0.5, 0.9), points=50)
    grid = np.linspace(X.min(), X.max(), 50)[:, None]
    for band, level in zip(ax.collections, (0.9, 0.5), strict=True):
        lower, upper = model.predict_interval(grid, level=level)
        assert band.get_label() == f"{level:.0%}"
        corners = band.get_paths()[0].vertices[:, 1]
        assert corners.min() == pytest.approx(lower.min())
        assert corners.max() == pytest.approx(upper.max())
    np.testing.assert_allclose(line(ax, "prediction").get_ydata(), model.predict(grid))
    np.testing.assert_array_equal(line(ax, "data").get_ydata(), y)


def test_residuals_say_whether_a_trend_is_left(model, data):
    X, y = data
    ax = plots.residuals(model, X, y)
    np.testing.assert_allclose(line(ax, "rows").get_ydata(), y - model.predict(X))
    assert ax.get_title(loc="left") == "Residuals show no trend"
    curved = X[:, 0] ** 2
    bad = plots.residuals(LinearRegression().fit(X, curved), X, curved)
    assert bad.get_title(loc="left").replace("\n", " ").startswith("Residuals depend on the prediction")


def test_pure_noise_rarely_looks_like_a_trend():
    """60 pictures at a false-alarm rate of 1 %: more than 5 has probability 3e-5. A perfect fit has no trend."""
    rng = np.random.default_rng(0)
    X = np.linspace(0, 1, 40)[:, None]
    model = LinearRegression().fit(X, X[:, 0])
    from matplotlib import pyplot as plt

    _, ax = plt.subplots()
    titles = []
    for _ in range(60):
        ax.clear()
        titles.append(plots.residuals(model, X, X[:, 0] + rng.normal(size=40), ax=ax).get_title(loc="left"))
    assert sum(not title.startswith("Residuals show no trend") for title in titles) <= 5
    assert plots.residuals(model, X, X[:, 0]).get_title(loc="left") == "Residuals show no trend"


def test_coefficients_are_sorted_by_size():
    ax = plots.coefficients(["a", "b", "c"], [0.1, -3.0, 1.0], [0.5, 0.1, 0.1])
    assert [text.get_text() for text in ax.get_yticklabels()] == ["a", "c", "b"]
    assert ax.get_title(loc="left").startswith("2 of 3 coefficients")
    assert plots.coefficients(["a", "b"], [0.1, -3.0]).get_title(loc="left") == "b weighs most"


def test_they_draw_where_they_are_told(model, data):
    from matplotlib import pyplot as plt

    _, (left, right) = plt.subplots(1, 2)
    assert plots.predictions(model, *data, ax=left, title="mine") is left
    assert left.get_title(loc="left") == "mine"
    assert not right.lines


def test_errors(model, data):
    X, y = data
    with pytest.raises(DataError, match=r"X has shape \(120, 2\), it must be \(n, 1\)"):
        plots.predictive_band(model, np.hstack([X, X]), y)
    with pytest.raises(DataError, match="y has missing targets"):
        plots.residuals(model, X, np.where(np.arange(120) == 3, np.nan, y))
    with pytest.raises(DataError, match=r"values must be one number for each of the 2 names; found shape \(1,\)"):
        plots.coefficients(["a", "b"], [1.0])


def test_coefficients_of_a_summary_or_of_a_linear_model_are_drawn():
    X = np.random.default_rng(0).normal(size=(60, 2))
    model = Regressor().fit(X, X @ [2.0, -1.0] + X[:, 0] ** 2)
    told = model.summary()
    named = plots.coefficients(told.terms[:-1], told.estimate[:-1], told.standard_error[:-1])  # without the intercept
    for given in (told, model):
        ax = plots.coefficients(given)
        assert ax.get_title(loc="left") == named.get_title(loc="left")
        assert [t.get_text() for t in ax.get_yticklabels()] == [t.get_text() for t in named.get_yticklabels()]
    with pytest.raises(
        DataError, match=r"takes what model\.summary\(\) of a linear model returns.*found a list without"
    ):
        plots.coefficients(["a", "b"])


@pytest.mark.parametrize("draw", [plots.predictions, plots.residuals])
def test_labels_are_refused_with_the_picture_that_takes_them(draw):
    X = np.arange(12.0)[:, None]
    labels = np.repeat(["setosa", "virginica"], 6)
    model = LogisticRegression().fit(X, labels)
    with pytest.raises(
        DataError, match=r"of numbers, and y has labels such as 'setosa'; of a classifier draw plots\.cal"
    ):
        draw(model, X, labels)
    with pytest.raises(DataError, match=r"the prediction has labels such as 'setosa'"):
        draw(model, X, X[:, 0])
