from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn import mixture
from sklearn.base import clone
from sklearn.utils.estimator_checks import check_estimator

import likely
from likely import GaussianMixture, Mixture
from likely.core.errors import DataError, LikelyWarning, SpecError
from likely.inference import EM
from likely.likelihoods import MultivariateNormal, Normal

KINDS = ("full", "tied", "diag", "spherical")


def clouds(seed=0, rows=240, columns=3):
    """Three overlapping clouds of different shapes."""
    rng = np.random.default_rng(seed)
    shapes = 0.5 * rng.normal(size=(3, columns, columns)) + np.eye(columns)
    means = 1.5 * rng.normal(size=(3, columns))
    label = np.arange(rows) % 3
    return means[label] + np.einsum("nd,nde->ne", rng.normal(size=(rows, columns)), shapes[label])


def with_holes(X, seed=1, share=0.2):
    holes = X.copy()
    holes[np.random.default_rng(seed).random(X.shape) < share] = np.nan
    return holes


def first_of(model, X, weight=None):
    """The parameters that a fit of these rows starts from."""
    model._rows(X, reset=True)
    bound = model._bound(torch.from_numpy(X), weight)
    return {name: value[0].numpy() for name, value in bound.start([0]).items()}


def as_theirs(covariance, kind):
    return covariance[0] if kind == "tied" else covariance[:, 0] if kind == "spherical" else covariance


# --- equality with scikit-learn -----------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", KINDS)
def test_it_goes_the_way_of_scikit_learn(kind):
    """From the same weights, means and precisions, twenty steps of EM end at the same numbers."""
    X = clouds() + 1e3
    means = X[:3]
    model = GaussianMixture(3, kind, 0.0, EM(max_iter=20, tol=0.0), means_init=means)
    first = first_of(model, X)
    covariance = as_theirs(first["covariance"], kind)
    peer = mixture.GaussianMixture(
        3,
        covariance_type=kind,
        reg_covar=0.0,
        tol=0.0,
        max_iter=20,
        weights_init=first["weights"],
        means_init=first["mean"],
        precisions_init=np.linalg.inv(covariance) if kind in ("full", "tied") else 1 / covariance,
    )
    np.testing.assert_array_equal(first["mean"], means)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # tol=0 does not converge
        peer.fit(X)
        model.fit(X)
    assert model.n_iter_ == 20
    np.testing.assert_allclose(model.weights_, peer.weights_, rtol=1e-6)
    np.testing.assert_allclose(model.means_, peer.means_, rtol=1e-6)
    np.testing.assert_allclose(model.covariances_, peer.covariances_, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(model.precisions_, peer.precisions_, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(model.log_prob(X), peer.score_samples(X), rtol=1e-6)
    np.testing.assert_allclose(model.predict_proba(X), peer.predict_proba(X), atol=1e-6)
    np.testing.assert_allclose([model.bic(X), model.aic(X)], [peer.bic(X), peer.aic(X)], rtol=1e-6)
    np.testing.assert_array_equal(model.predict(X), peer.predict(X))
    assert model.n_parameters_ == peer._n_parameters()


# --- EM -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rows", ["plain", "missing", "duplicated", "weighted"])
def test_the_likelihood_never_falls(kind, rows):
    X = clouds()
    weight = np.random.default_rng(2).uniform(0, 3, len(X)) if rows == "weighted" else None
    if rows == "missing":
        X = with_holes(X)
    if rows == "duplicated":
        X = np.concatenate([X[:40], np.repeat(X[:2], 60, axis=0)])
    model = GaussianMixture(5, kind, inference=EM(max_iter=40, tol=0.0, starts=2), init="random", random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LikelyWarning)
        model.fit(X, sample_weight=weight)
    assert (np.diff(model.history_) >= -1e-10 * np.abs(model.history_[:-1])).all()
    evidence = model.log_prob(X)
    np.testing.assert_allclose(model.history_[-1], evidence.sum() if weight is None else weight @ evidence, rtol=1e-9)
    assert model.log_likelihood_ == model.history_[-1]


@pytest.mark.parametrize("kind", KINDS)
def test_one_component_is_the_weighted_estimate(kind):
    X = clouds()
    weight = np.random.default_rng(0).uniform(size=len(X))
    model = GaussianMixture(1, kind).fit(X, sample_weight=weight)
    covariance = np.cov(X.T, aweights=weight, ddof=0)
    expected = {
        "full": covariance[None],
        "tied": covariance,
        "diag": np.diag(covariance)[None],
        "spherical": [np.diag(covariance).mean()],
    }
    np.testing.assert_allclose(model.means_[0], np.average(X, axis=0, weights=weight), rtol=1e-10)
    np.testing.assert_allclose(model.covariances_, expected[kind], rtol=1e-9)


def test_it_is_the_mixture_of_its_likelihood():
    X = clouds()
    few = EM(max_iter=10, tol=0.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ours = GaussianMixture(3, "full", 0.0, few, random_state=0).fit(X)
        general = Mixture(MultivariateNormal(), 3, few, smoothing=0.0, random_state=0).fit(X)
        diagonal = GaussianMixture(3, "diag", 0.0, few, random_state=0).fit(X)
        columns = Mixture(Normal(), 3, few, smoothing=0.0, random_state=0).fit(X)
    np.testing.assert_allclose(ours.log_prob(X), general.log_prob(X), rtol=1e-5)
    np.testing.assert_allclose(diagonal.log_prob(X), columns.log_prob(X), rtol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_weights_are_repeated_rows(kind, seed):
    X = clouds(seed)
    weight = np.random.default_rng(seed + 1).integers(0, 4, len(X))
    exact = EM(max_iter=25, tol=0.0)
    first = X[:3]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        one = GaussianMixture(3, kind, inference=exact, means_init=first).fit(X, sample_weight=weight)
        two = GaussianMixture(3, kind, inference=exact, means_init=first).fit(np.repeat(X, weight, axis=0))
    np.testing.assert_allclose(one.means_, two.means_, rtol=0, atol=1e-8)
    np.testing.assert_allclose(one.covariances_, two.covariances_, rtol=0, atol=1e-8)
    np.testing.assert_allclose(one.log_likelihood_, two.log_likelihood_, rtol=1e-8)


def test_clusters_a_million_widths_apart_keep_their_digits():
    rng = np.random.default_rng(0)
    noise = rng.normal(size=(2, 500, 2)) @ np.array([[1.0, 0.5], [0.0, 0.8]])
    X = np.concatenate([noise[0], noise[1] + 1e6]) + 1e7
    model = GaussianMixture(2, floor=0.0, random_state=0).fit(X)
    order = np.argsort(model.means_[:, 0])
    for k, own in zip(order, (X[:500], X[500:]), strict=True):
        np.testing.assert_allclose(model.means_[k], own.mean(0), rtol=1e-14)
        np.testing.assert_allclose(model.covariances_[k], np.cov(own.T, ddof=0), rtol=1e-7)


def test_the_same_distribution_at_any_scale():
    X = clouds()
    scale, shift = np.array([1e-8, 1.0, 1e9]), np.array([3.0, -4.0, 1e5])
    few = EM(max_iter=30, tol=0.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plain = GaussianMixture(3, inference=few, random_state=0).fit(X)
        scaled = GaussianMixture(3, inference=few, random_state=0).fit(X * scale + shift * scale)
    np.testing.assert_allclose(scaled.predict_proba((X + shift) * scale), plain.predict_proba(X), atol=1e-6)
    np.testing.assert_allclose(scaled.log_prob((X + shift) * scale) + np.log(scale).sum(), plain.log_prob(X), atol=1e-5)


# --- missing values -----------------------------------------------------------------------------------------------
def test_missing_values_are_marginalised():
    X = clouds()
    model = GaussianMixture(3, inference=EM(max_iter=300), random_state=0).fit(X)
    holes = with_holes(X, share=0.4)
    for row, log_prob in zip(holes[:40], model.log_prob(holes[:40]), strict=True):
        seen = ~np.isnan(row)
        densities = [
            weight * np.exp(normal_log_density(row[seen], mean[seen], covariance[np.ix_(seen, seen)]))
            for weight, mean, covariance in zip(model.weights_, model.means_, model.covariances_, strict=True)
        ]
        np.testing.assert_allclose(log_prob, np.log(sum(densities)), atol=1e-10)


def normal_log_density(x, mean, covariance):
    if len(x) == 0:
        return 0.0
    from scipy.stats import multivariate_normal

    return multivariate_normal(mean, covariance).logpdf(x)


@pytest.mark.parametrize("kind", ["diag", "spherical"])
def test_independent_columns_leave_missing_values_out(kind):
    X = with_holes(clouds())
    model = GaussianMixture(1, kind).fit(X)
    np.testing.assert_allclose(model.means_[0], np.nanmean(X, 0), rtol=1e-10)
    expected = np.nanvar(X, 0) if kind == "diag" else [np.nanmean((X - np.nanmean(X, 0)) ** 2)]
    np.testing.assert_allclose(model.covariances_.ravel(), expected, rtol=1e-9)


@pytest.mark.parametrize("kind", ["full", "tied"])
def test_missing_values_end_where_no_parameter_raises_the_likelihood(kind):
    """At the optimum the gradient of the marginal log-likelihood in means and covariances is zero."""
    X = with_holes(clouds(rows=90))
    model = GaussianMixture(2, kind, inference=EM(max_iter=5000, tol=1e-14), random_state=0).fit(X)
    mean = torch.tensor(model.means_, requires_grad=True)
    covariance = torch.tensor(model.covariances_, requires_grad=True)
    total = torch.zeros((), dtype=torch.float64)
    for row in torch.from_numpy(X):
        seen = (~row.isnan()).nonzero().ravel()
        if len(seen):
            own = covariance if kind == "full" else covariance.expand(2, 3, 3)
            components = torch.distributions.MultivariateNormal(
                mean[:, seen], own[:, seen][:, :, seen], validate_args=False
            )
            total = total + (components.log_prob(row[seen]) + torch.tensor(model.weights_).log()).logsumexp(-1)
    np.testing.assert_allclose(float(total.detach()), model.log_likelihood_, rtol=1e-10)
    for gradient in torch.autograd.grad(total, (mean, covariance)):
        np.testing.assert_allclose(gradient, 0, atol=2e-4)


@pytest.mark.sensitive
def test_the_order_of_rows_with_holes_does_not_matter():
    X = with_holes(clouds())
    order = np.random.default_rng(3).permutation(len(X))
    few = EM(max_iter=15, tol=0.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        one = GaussianMixture(3, inference=few, means_init=clouds()[:3]).fit(X)
        two = GaussianMixture(3, inference=few, means_init=clouds()[:3]).fit(X[order])
    np.testing.assert_allclose(one.means_, two.means_, rtol=0, atol=1e-8 * np.nanstd(X))
    np.testing.assert_allclose(one.log_prob(X)[order], two.log_prob(X[order]), rtol=0, atol=1e-8)  # nats of a row


# --- singularities ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", KINDS)
def test_duplicated_points_are_held_by_the_floor_and_reported(kind):
    """Three points, each twenty times: without a floor the likelihood would be infinite."""
    X = np.repeat([[0.0, 1.0], [4.0, 0.0], [9.0, 7.0]], 20, axis=0)
    with pytest.warns(
        LikelyWarning, match=r"GaussianMixture: floor=1e-06 holds up components 0, 1, 2: the variance in"
    ):
        model = GaussianMixture(3, kind, random_state=0).fit(X)
    assert model.floored_ == [0, 1, 2]
    np.testing.assert_allclose(sorted(model.means_.tolist()), [[0, 1], [4, 0], [9, 7]], atol=1e-9)
    variance = X.var(0)
    least = {
        "full": np.diag(1e-6 * variance),
        "tied": np.diag(1e-6 * variance),
        "diag": 1e-6 * variance,
        "spherical": 1e-6 * variance.mean(),
    }
    covariance = model.covariances_ if kind == "tied" else model.covariances_[0]
    np.testing.assert_allclose(covariance, least[kind], rtol=1e-6, atol=1e-12)


def test_collinear_columns_are_held_in_one_direction_only():
    x = np.random.default_rng(0).normal(size=100)
    X = np.column_stack([x, 2 * x])
    with pytest.warns(LikelyWarning, match="holds up component 0"):
        model = GaussianMixture(1).fit(X)
    unit = X.std(0)
    values = np.linalg.eigvalsh(model.covariances_[0] / np.outer(unit, unit))
    np.testing.assert_allclose(values, [1e-6, 2.0], rtol=1e-6)


def test_constant_columns_survive():
    X = np.column_stack([np.random.default_rng(0).normal(size=60), np.full(60, 0.1)])
    with pytest.warns(LikelyWarning, match="holds up component"):
        model = GaussianMixture(2, inference=EM(max_iter=1000), random_state=0).fit(X)
    assert np.isfinite(model.log_prob(X)).all()


def test_a_component_without_rows_begins_again():
    """Twelve rows of 600 lie far away: seven deviations for one component of all rows, which no other row reaches."""
    X = np.random.default_rng(0).normal(size=(600, 3))
    X[:12] += 30
    means = np.array([X[12], np.full(3, 1e6)])
    with pytest.warns(LikelyWarning, match=r"component 1 was left without rows and began again at row \d+, which was"):
        model = GaussianMixture(2, means_init=means, inference=EM(max_iter=500)).fit(X)
    assert list(model.reseeded_) == ["1"]
    assert model.reseeded_["1"] < 12
    assert model.weights_[1] == pytest.approx(12 / 600, rel=1e-6)  # it has rows of its own now
    assert (np.diff(model.history_) >= -1e-9 * np.abs(model.history_[:-1])).all()


# --- answers ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", KINDS)
def test_distributions_and_samples(kind, seed):
    """5,000 draws: six standard errors of each mean and variance."""
    X = clouds()
    model = GaussianMixture(2, kind, inference=EM(max_iter=300), random_state=seed).fit(X)
    rows = torch.from_numpy(X)
    np.testing.assert_allclose(model.distribution().log_prob(rows), model.log_prob(X), rtol=1e-9)
    joint = np.stack([one.log_prob(rows).numpy() for one in model.distributions_], 1) + np.log(model.weights_)
    np.testing.assert_allclose(np.logaddexp.reduce(joint, 1), model.log_prob(X), rtol=1e-9)
    drawn, component = model.sample(5000, random_state=seed, return_hidden=True)
    for k, one in enumerate(model.distributions_):
        own = drawn[component == k]
        scale = np.sqrt(one.variance.numpy())
        error = scale / np.sqrt(len(own))
        assert (np.abs(own.mean(0) - one.mean.numpy()) < 6 * error).all()
        assert (np.abs(own.var(0) - one.variance.numpy()) < 6 * np.sqrt(2) * scale * error).all()
    again = GaussianMixture(2, kind, means_init=model.means_).fit(drawn)  # from elsewhere it may end elsewhere
    np.testing.assert_allclose(again.score(drawn), model.score(drawn), atol=0.02)


@pytest.mark.parametrize("kind", KINDS)
def test_saved_and_loaded_it_is_the_same(tmp_path, kind):
    X = pd.DataFrame(with_holes(clouds()), columns=["a", "b", "c"])
    model = GaussianMixture(2, kind, means_init=clouds()[:2], inference=EM(max_iter=300)).fit(X)
    model.save(tmp_path / "clouds.likely")
    loaded = likely.load(tmp_path / "clouds.likely")
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
    np.testing.assert_array_equal(loaded.sample(5, random_state=0), model.sample(5, random_state=0))
    assert loaded.bic(X) == model.bic(X)
    for name in ("means_", "covariances_", "weights_", "history_", "means_init"):
        np.testing.assert_array_equal(getattr(loaded, name), getattr(model, name))
    for name in ("n_iter_", "converged_", "log_likelihood_", "floored_", "reseeded_", "n_features_in_"):
        assert getattr(loaded, name) == getattr(model, name)


@pytest.mark.filterwarnings("ignore::likely.core.errors.LikelyWarning")
def test_more_starts_are_never_worse(seed):
    """For any seed; of four components from random rows one may fall on a few rows, where the floor holds it."""
    X = clouds(rows=300)
    finals = []
    for starts in (1, 4, 8):
        inference = EM(max_iter=300, starts=starts)
        finals.append(GaussianMixture(4, inference=inference, init="random", random_state=seed).fit(X).log_likelihood_)
    assert finals[0] <= finals[1] + 0.01
    assert finals[1] <= finals[2] + 0.01


def test_the_same_seed_gives_the_same_bits_and_float32_is_the_same_model():
    X = clouds()
    model = GaussianMixture(3, random_state=1)
    one, two = clone(model).fit(X), clone(model).fit(X)
    np.testing.assert_array_equal(one.means_, two.means_)
    small = X.astype(np.float32)
    np.testing.assert_array_equal(clone(model).fit(small).means_, clone(model).fit(small.astype(np.float64)).means_)


@pytest.mark.parametrize(
    ("model", "X", "message"),
    [
        (GaussianMixture(3), [[0.0], [1.0]], "X has 2 samples, fewer than n_components=3; ask for fewer"),
        (GaussianMixture(covariance="round"), [[0.0]], r'covariance must be "full", "tied", "diag" or "spherical"'),
        (GaussianMixture(floor=-1.0), [[0.0]], r"GaussianMixture\(floor=-1.0\): floor must be a number of at least 0"),
        (GaussianMixture(2, means_init=[[0.0]]), [[0.0], [1.0]], r"means_init has shape \(1, 1\); it must be finite"),
        (GaussianMixture(1, means_init="a"), [[0.0], [1.0]], r"means_init=…\): it must be an array of numbers"),
        (GaussianMixture(), [[0.0], [np.inf]], r"X contains infinity \(inf\) at row 1"),
        (GaussianMixture(), [[0.0, np.nan], [1.0, np.nan]], r"column 1 of X has no value"),
        (GaussianMixture(), [[-1e200], [1e200]], r"column 0 of X is too large for float64: its variance overflows"),
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
        model = GaussianMixture(2, random_state=0)
        results = check_estimator(model, on_fail=None, on_skip=None, expected_failed_checks=excused)
    failed = {result["check_name"]: result["exception"] for result in results if result["status"] == "failed"}
    assert failed == {}
