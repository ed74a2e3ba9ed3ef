import numpy as np
import pytest
import torch

from likely.core.errors import DataError
from likely.kernels import RBF
from likely.likelihoods import Bernoulli, Categorical, Normal, Poisson
from likely.models.kernel.gaussian_process import GaussianProcess
from likely.plots.processes import process


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 6, size=(25, 1))
    return X, np.sin(X[:, 0]) + 0.1 * rng.normal(size=25)


@pytest.fixture(scope="module")
def model(data):
    return GaussianProcess(RBF(), Normal(scale=0.1), learn=False).fit(*data)


def line(ax, label):
    return next(artist for artist in ax.get_lines() if artist.get_label() == label)


def test_mean_band_paths_and_data_are_those_of_the_model(model, data):
    X, y = data
    ax = process(model, X, y, level=0.8, paths=2, points=40, reach=0.2, random_state=5, label="height (m)")
    width = X.max() - X.min()
    grid = np.linspace(X.min() - 0.2 * width, X.max() + 0.2 * width, 40)[:, None]
    np.testing.assert_allclose(line(ax, "mean").get_ydata(), model.predict(grid))
    joint = model.posterior(grid)
    for number in range(2):  # a draw of f: standardised, as far from the mean as 40 normal numbers are
        path = torch.from_numpy(line(ax, f"path {number + 1}").get_ydata())
        whitened = torch.linalg.solve_triangular(joint.scale_tril, (path - joint.mean)[:, None], upper=False)
        assert 10 < float(whitened.square().sum()) < 100  # chi-squared of 40: false alarm 1e-6
    lower, upper = model.predict_interval(grid, level=0.8)
    corners = ax.collections[0].get_paths()[0].vertices[:, 1]
    assert corners.min() == pytest.approx(lower.min())
    assert corners.max() == pytest.approx(upper.max())
    np.testing.assert_array_equal(line(ax, "data").get_ydata(), y)
    assert ax.get_title(loc="left").replace("\n", " ").endswith("mean and 80% band, with 2 sampled functions")
    assert ax.get_ylabel() == "height (m)"


def test_labels_have_a_probability_and_counts_a_band(data):
    X, y = data
    names = np.where(y > 0, "up", "down")
    labels = GaussianProcess(likelihood=Bernoulli(), learn=False).fit(X, names)
    ax = process(labels, X, names, points=30)
    grid = np.linspace(*ax.get_lines()[1].get_xdata()[[0, -1]], 30)[:, None]
    np.testing.assert_allclose(line(ax, "mean").get_ydata(), labels.predict_proba(grid)[:, 1])
    np.testing.assert_array_equal(line(ax, "data").get_ydata(), names == "up")
    assert ax.get_title(loc="left") == "Probability of up given x"
    counts = GaussianProcess(likelihood=Poisson(), learn=False).fit(X, np.round(np.exp(y)))
    assert not [artist for artist in process(counts, X, points=30).get_lines() if "path" in artist.get_label()]


def test_what_cannot_be_drawn_is_refused(model, data):
    X, y = data
    with pytest.raises(DataError, match=r"process draws along one input; X has shape \(25, 2\)"):
        process(model, np.hstack([X, X]), y)
    with pytest.raises(DataError, match="paths=-1 must be an integer"):
        process(model, X, paths=-1)
    three = GaussianProcess(likelihood=Categorical(), learn=False, mean="zero").fit(X, np.arange(25) % 3)
    with pytest.raises(DataError, match="process draws one curve; the model has 3 classes"):
        process(three, X)
