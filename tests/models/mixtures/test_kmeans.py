from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn import cluster
from sklearn.utils.estimator_checks import check_estimator

import likely
from likely import GaussianMixture, KMeans
from likely.core.errors import ConvergenceWarning, DataError, LikelyWarning, SpecError
from likely.models.emissions import GaussianEmission
from likely.models.mixtures.components import Components


def points(seed=0, rows=300, columns=3):
    return np.random.default_rng(seed).normal(size=(rows, columns))


def test_it_is_scikit_learns():
    """To rounding, since with two threads scikit-learn adds up blocks of rows as they come."""
    X, weight = points(), np.random.default_rng(1).uniform(size=300)
    first = X[:6]
    ours = KMeans(6, init=first).fit(X, sample_weight=weight)
    theirs = cluster.KMeans(6, init=first).fit(X, sample_weight=weight)
    np.testing.assert_allclose(ours.cluster_centers_, theirs.cluster_centers_, rtol=0, atol=1e-12)
    np.testing.assert_array_equal(ours.labels_, theirs.labels_)
    assert ours.n_iter_ == theirs.n_iter_
    assert ours.inertia_ == pytest.approx(theirs.inertia_, rel=1e-12)
    new = points(2)
    np.testing.assert_array_equal(ours.predict(new), theirs.predict(new))
    np.testing.assert_allclose(ours.transform(new), theirs.transform(new), rtol=1e-12)
    np.testing.assert_allclose(ours.score(new), theirs.score(new), rtol=1e-12)
    np.testing.assert_allclose(ours.score(X, sample_weight=weight), -ours.inertia_, rtol=1e-12)


@pytest.mark.filterwarnings("ignore::likely.core.errors.ConvergenceWarning")
def test_inertia_never_rises_from_step_to_step():
    X = points()
    inertia = [KMeans(8, init=X[:8], max_iter=steps, tol=0.0).fit(X).inertia_ for steps in range(1, 15)]
    assert (np.diff(inertia) <= 1e-12 * inertia[0]).all()
    assert inertia[-1] < inertia[0]


def test_centres_are_means_and_labels_are_nearest():
    X = points()
    model = KMeans(5, tol=0.0, random_state=0).fit(X)
    distance = ((X[:, None] - model.cluster_centers_) ** 2).sum(-1)
    np.testing.assert_array_equal(model.labels_, distance.argmin(1))
    np.testing.assert_allclose(model.inertia_, distance.min(1).sum(), rtol=1e-12)
    for k in range(5):
        np.testing.assert_allclose(model.cluster_centers_[k], X[model.labels_ == k].mean(0), atol=1e-12)


@pytest.mark.filterwarnings("ignore::likely.core.errors.ConvergenceWarning")
def test_it_is_the_hard_limit_of_a_spherical_mixture():
    """Equal weights, one variance that goes to 0: responsibilities become labels, and EM's step k-means' step."""
    X = points()
    centres = X[:5]
    emission = GaussianEmission(3, "spherical", 0.0)
    mixture = Components(emission, torch.from_numpy(X), None, 5, "k-means++")
    params = emission.complete(
        {"mean": torch.from_numpy(centres).unsqueeze(0), "covariance": torch.full((1, 5, 1), 1e-9).double()}
    )
    params["weights"] = torch.full((1, 5), 0.2).double()
    hard = KMeans(5, init=centres, max_iter=1, tol=0.0).fit(X)
    nearest = ((X[:, None] - centres) ** 2).sum(-1).argmin(1)
    moved = mixture.maximise(params, mixture.expect(params)[0])
    np.testing.assert_allclose(moved["mean"][0], hard.cluster_centers_, atol=1e-12)
    np.testing.assert_allclose(moved["weights"][0], np.bincount(nearest) / 300, atol=1e-12)
    soft = GaussianMixture(5, "spherical")
    soft.n_features_in_, soft.weights_, soft.means_ = 3, np.full(5, 0.2), hard.cluster_centers_
    soft.covariances_ = np.full(5, 1e-9)
    np.testing.assert_array_equal(soft.predict(X), hard.predict(X))
    np.testing.assert_allclose(soft.predict_proba(X).max(1), 1, atol=1e-6)


def test_weights_are_repeated_rows():
    X, weight = points(), np.random.default_rng(1).integers(0, 4, 300)
    weighted = KMeans(4, init=X[:4], tol=0.0).fit(X, sample_weight=weight)
    repeated = KMeans(4, init=X[:4], tol=0.0).fit(np.repeat(X, weight, axis=0))
    np.testing.assert_allclose(weighted.cluster_centers_, repeated.cluster_centers_, atol=1e-10)
    np.testing.assert_allclose(weighted.inertia_, repeated.inertia_, rtol=1e-10)


def test_fewer_distinct_rows_than_clusters_are_reported():
    X = np.repeat([[0.0], [1.0], [5.0]], 10, axis=0)
    with pytest.warns(LikelyWarning, match=r"KMeans: 2 of n_clusters=5 clusters have no rows, since X has only 3 dist"):
        model = KMeans(5, random_state=0).fit(X)
    assert len(model.empty_) == 2
    assert model.inertia_ == 0
    np.testing.assert_array_equal(model.cluster_centers_[model.predict(X)], X)


def test_a_cluster_without_rows_begins_again():
    X = np.concatenate([points(rows=50), points(1, rows=50) + 20])
    far = np.array([X[0], X[60], np.full(3, 1e6)])
    model = KMeans(3, init=far).fit(X)
    assert model.empty_ == []
    assert np.abs(model.cluster_centers_).max() < 100


def test_saved_and_loaded_it_is_the_same(tmp_path):
    X = pd.DataFrame(points(), columns=["a", "b", "c"])
    model = KMeans(4, init=points()[:4]).fit(X)
    model.save(tmp_path / "centres.likely")
    loaded = likely.load(tmp_path / "centres.likely")
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    np.testing.assert_array_equal(loaded.labels_, model.labels_)
    assert (loaded.inertia_, loaded.n_iter_, loaded.empty_) == (model.inertia_, model.n_iter_, model.empty_)


def test_float32_stays_float32():
    assert KMeans(2, random_state=0).fit(points().astype(np.float32)).cluster_centers_.dtype == np.float32


@pytest.mark.parametrize(
    ("model", "X", "message"),
    [
        (KMeans(3), [[0.0], [1.0]], "X has 2 samples, fewer than n_clusters=3; ask for fewer"),
        (KMeans(0), [[0.0]], r"KMeans\(n_clusters=0\): n_clusters must be a positive integer"),
        (KMeans(1, max_iter=0), [[0.0]], r"KMeans\(max_iter=0\): max_iter must be a positive integer"),
        (KMeans(1, n_init="few"), [[0.0]], r"n_init must be \"auto\" or a positive integer"),
        (KMeans(1, tol=-1), [[0.0]], r"KMeans\(tol=-1\): tol must be 0 or a positive number"),
        (KMeans(1, init="far"), [[0.0]], r"init must be \"k-means\+\+\", \"random\" or an array of centres"),
        (
            KMeans(2, init=[[0.0]]),
            [[0.0], [1.0]],
            r"init has shape \(1, 1\); it must be finite numbers of shape \(2, 1",
        ),
        (KMeans(1), [[0.0], [np.nan]], r"X contains NaN at row 1, column 0"),
        (KMeans(1), np.zeros((2, 2, 2)), r"X has shape \(2, 2, 2\); KMeans needs one vector a row"),
    ],
)
def test_bad_input_is_refused(model, X, message):
    with pytest.raises((DataError, SpecError), match=message):
        model.fit(X)


def test_scikit_learns_own_checks_pass():
    excused = {
        "check_sample_weight_equivalence_on_dense_data": "first guesses draw other rows where rows are repeated",
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LikelyWarning)
        model = KMeans(3, random_state=0)
        results = check_estimator(model, on_fail=None, on_skip=None, expected_failed_checks=excused)
    failed = {result["check_name"]: result["exception"] for result in results if result["status"] == "failed"}
    assert failed == {}


def test_a_verbose_fit_says_one_line_on_standard_error(capfd):
    """And nothing of what scikit-learn's own engine would print."""
    model = KMeans(2, random_state=0, verbose=True).fit([[0.0], [1.0], [10.0], [11.0]])
    said = capfd.readouterr()
    assert said.out == ""
    steps = f"{model.n_iter_} step{'s' * (model.n_iter_ != 1)}"
    assert said.err == f"KMeans: {steps}, inertia 1\n"


def test_a_run_that_is_cut_short_is_said():
    X = np.random.default_rng(0).normal(size=(200, 2))
    with pytest.warns(
        ConvergenceWarning, match="the centres still moved after max_iter=1 steps; raise max_iter or tol"
    ):
        assert KMeans(5, max_iter=1, random_state=0).fit(X).converged_ is False
    assert KMeans(5, random_state=0).fit(X).converged_ is True
