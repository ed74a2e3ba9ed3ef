import numpy as np
import pytest
from matplotlib.patches import Ellipse
from sklearn.datasets import load_iris

from likely import GaussianMixture, Mixture
from likely.core.errors import DataError
from likely.inference import EM
from likely.likelihoods import Gamma, Normal
from likely.plots.mixtures import mixture


def clouds(apart=6.0):
    rng = np.random.default_rng(0)
    first = rng.normal(size=(150, 3)) @ np.array([[1.5, 0.8, 0.0], [0.0, 0.6, 0.0], [0.0, 0.0, 1.0]])
    return np.concatenate([first, rng.normal(size=(50, 3)) * 0.5 + [apart, 0.0, 1.0]])


def rings(ax):
    return [patch for patch in ax.patches if isinstance(patch, Ellipse)]


@pytest.mark.parametrize("kind", ["full", "tied", "diag", "spherical"])
def test_ellipses_hold_what_a_gaussian_holds(kind):
    """The points of a 1σ ellipse are those at Mahalanobis distance 1 from the mean."""
    X = clouds()
    model = GaussianMixture(2, kind, random_state=0).fit(X)
    ax = mixture(model, X, columns=(0, 1))
    assert len(rings(ax)) == 4
    for k, one in enumerate(model.distributions_):
        covariance = one.covariance_matrix.numpy()[:2, :2]
        for sigmas, ring in zip((1, 2), rings(ax)[2 * k : 2 * k + 2], strict=True):
            edge = ring.get_patch_transform().transform(ring.get_path().vertices)[:-1]
            gap = edge - model.means_[k, :2]
            distance = np.sqrt(np.einsum("nd,de,ne->n", gap, np.linalg.inv(covariance), gap))
            assert (distance > 0.95 * sigmas).all()
            assert (distance < 1.05 * sigmas).all()


def test_rows_and_weights_are_drawn():
    X = clouds(apart=15.0)  # seven deviations of the one and the other
    model = GaussianMixture(2, random_state=0).fit(X)
    ax = mixture(model, X, names=["length", "width"])
    drawn = np.concatenate([points.get_offsets() for points in ax.collections])
    assert sorted(map(tuple, drawn)) == sorted(map(tuple, X[:, :2]))
    heavy = int(model.weights_.argmax())
    assert f"{heavy}: {100 * model.weights_.max():.3g}%" in {text.get_text() for text in ax.texts}
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("length", "width")
    assert "2 components; every row has a clear one" in ax.get_title(loc="left")
    few = mixture(model, X, most=50)
    assert sum(len(points.get_offsets()) for points in few.collections) == 50


def test_the_weights_of_the_components_lie_on_no_row(under):
    X = load_iris().data[:, 2:]
    model = GaussianMixture(3, random_state=0).fit(X)
    ax = mixture(model, X)
    assert under(ax, {text.get_text() for text in ax.texts if ": " in text.get_text()[:3]}, X) == [0, 0, 0]


def test_mixtures_of_other_likelihoods_have_moments_too():
    X = np.abs(clouds()) + 0.1
    for kinds in (Normal(), [Normal(), Gamma(), Normal()]):
        model = Mixture(kinds, 2, inference=EM(max_iter=2000), random_state=0).fit(X)
        ax = mixture(model, X, columns=(1, 2))
        assert len(rings(ax)) == 4
        means = [ring.get_center() for ring in rings(ax)[::2]]
        share = model.predict_proba(X)
        expected = (share.T @ X / share.sum(0)[:, None])[:, 1:]
        np.testing.assert_allclose(means, expected, rtol=0.02)


def test_other_columns_are_refused():
    X = clouds()
    model = GaussianMixture(1).fit(X)
    with pytest.raises(DataError, match=r"mixture draws two columns; X has shape \(200, 3\) and columns=\(0, 3\)"):
        mixture(model, X, columns=(0, 3))
