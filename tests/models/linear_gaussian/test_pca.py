from __future__ import annotations

import tracemalloc
import warnings

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.linalg import hadamard, subspace_angles
from scipy.stats import multivariate_normal
from sklearn.base import clone
from sklearn.datasets import load_iris, load_wine
from sklearn.decomposition import PCA as ScikitPCA
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator

import likely
from likely import PCA, FactorAnalysis, Regressor
from likely.core.errors import ConvergenceWarning, DataError, LikelyWarning, SpecError
from likely.inference import EM


def made(rows=200, columns=5, seed=0):
    random = np.random.default_rng(seed)
    turned = random.normal(size=(rows, columns)) @ random.normal(size=(columns, columns))
    return turned + 10 * random.normal(size=columns)


def with_holes(X, share, seed=0):
    return np.where(np.random.default_rng(seed).random(X.shape) < share, np.nan, X)


# --- the classic answers ----------------------------------------------------------------------------------------
@pytest.mark.parametrize("n_components", [None, 1, 3, 0.5, 0.9, 0.999])
@pytest.mark.parametrize(("rows", "columns"), [(200, 5), (30, 29), (12, 40), (5, 3000)])
@pytest.mark.parametrize("whiten", [False, True])
def test_what_is_learned_is_what_scikit_learn_learns(n_components, rows, columns, whiten):
    X = made(rows, columns)
    n_components = min(rows, columns) - 1 if n_components is None and rows <= columns else n_components
    ours = PCA(n_components, whiten=whiten).fit(X)
    peer = ScikitPCA(n_components, whiten=whiten, svd_solver="full").fit(X)
    assert ours.n_components_ == peer.n_components_
    scale = peer.singular_values_[0]
    for name in ("components_", "mean_", "explained_variance_ratio_"):
        np.testing.assert_allclose(getattr(ours, name), getattr(peer, name), atol=1e-6, err_msg=name)
    np.testing.assert_allclose(ours.explained_variance_, peer.explained_variance_, rtol=1e-6)
    np.testing.assert_allclose(ours.singular_values_, peer.singular_values_, rtol=1e-6)
    np.testing.assert_allclose(ours.transform(X), peer.transform(X), atol=1e-8 * scale)
    codes = peer.transform(X)
    np.testing.assert_allclose(ours.inverse_transform(codes), peer.inverse_transform(codes), atol=1e-8 * scale)
    np.testing.assert_array_equal(ours.get_feature_names_out(), [f"pca{i}" for i in range(ours.n_components_)])


def test_far_columns_cost_no_digits():
    X = made(300, 4, seed=1)
    near, far = PCA(2).fit(X), PCA(2).fit(X + 1e7)
    np.testing.assert_allclose(far.transform(X + 1e7), near.transform(X), atol=1e-6)
    np.testing.assert_allclose(far.explained_variance_, near.explained_variance_, rtol=1e-8)


@pytest.mark.parametrize("shape", [(60, 4), (6, 30)])
def test_weights_are_repeats(shape):
    """Four rows at least have a weight: two components then leave something of columns that outnumber the rows."""
    X = made(*shape)
    weight = np.random.default_rng(1).integers(0, 4, len(X))
    weight[:4] = 1
    weighted, repeated = PCA(2).fit(X, sample_weight=weight), PCA(2).fit(np.repeat(X, weight, axis=0))
    for name in ("components_", "mean_", "explained_variance_", "noise_variance_", "singular_values_", "loadings_"):
        expected = getattr(repeated, name)
        np.testing.assert_allclose(getattr(weighted, name), expected, rtol=1e-8, atol=1e-10, err_msg=name)
    assert weighted.score(X, sample_weight=weight) == pytest.approx(repeated.score(np.repeat(X, weight, axis=0)))


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.bool_])
def test_other_kinds_of_numbers_are_worked_on_in_float64(dtype):
    X = (made(100, 4) * 3).astype(dtype)
    np.testing.assert_allclose(PCA(2).fit(X).transform(X), PCA(2).fit(X.astype(float)).transform(X.astype(float)))


def test_no_second_copy_of_the_rows_is_made():
    X = np.random.default_rng(0).normal(size=(200_000, 20))
    PCA(3).fit(X[:2000])
    tracemalloc.start()
    PCA(3).fit(X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.1 * X.nbytes


# --- the density ------------------------------------------------------------------------------------------------
def density(mean, loadings, noise, X):
    covariance = loadings @ loadings.T + noise * np.eye(len(mean))
    return multivariate_normal(mean, covariance).logpdf(X).sum()


def test_the_closed_form_is_the_maximum_of_the_likelihood():
    """W = U(Λ − σ²I)^½: any small step in W, μ or σ² lowers log p(X), and at the optimum it is the closed value."""
    X = made()
    model = PCA(2).fit(X)
    best = density(model.mean_, model.loadings_, model.noise_variance_, X)
    values = np.linalg.eigvalsh(np.cov(X.T, ddof=0))[::-1]
    noise = values[2:].mean()
    assert model.noise_variance_ == pytest.approx(noise)
    closed = -len(X) / 2 * (5 * np.log(2 * np.pi) + np.log(values[:2]).sum() + 3 * np.log(noise) + 5)
    np.testing.assert_allclose([model.log_prob(X).sum(), best], closed, rtol=1e-10)
    random = np.random.default_rng(2)
    for _ in range(50):
        mean = model.mean_ + 0.01 * random.normal(size=5)
        loadings = model.loadings_ + 0.01 * random.normal(size=(5, 2))
        noise = model.noise_variance_ * np.exp(0.01 * random.normal())
        assert density(mean, loadings, noise, X) < best
    assert best > ScikitPCA(2).fit(X).score(X) * len(X)  # its divisor n − 1 is not that of maximum likelihood
    np.testing.assert_allclose(model.get_covariance(), model.loadings_ @ model.loadings_.T + noise_of(model), rtol=1e-9)


def noise_of(model):
    return model.noise_variance_ * np.eye(model.n_features_in_)


def test_loadings_are_the_scaled_components():
    model = PCA(2).fit(made())
    ml = model.explained_variance_ * 199 / 200
    np.testing.assert_allclose(model.loadings_, model.components_.T * np.sqrt(ml - model.noise_variance_))


def test_the_posterior_is_that_of_tipping_and_bishop():
    """z | x ~ Normal(M⁻¹Wᵀ(x − μ), σ²M⁻¹), M = WᵀW + σ²I."""
    X = made()
    model = PCA(2).fit(X)
    posterior = model.posterior(X)
    inner = np.linalg.inv(model.loadings_.T @ model.loadings_ + model.noise_variance_ * np.eye(2))
    np.testing.assert_allclose(posterior.mean, (X - model.mean_) @ model.loadings_ @ inner, atol=1e-10)
    np.testing.assert_allclose(posterior.covariance_matrix[0], model.noise_variance_ * inner, atol=1e-10)
    assert posterior.batch_shape == (200,)


def test_all_components_are_the_plain_gaussian():
    X = made()
    expected = multivariate_normal(X.mean(0), np.cov(X.T, ddof=0)).logpdf(X)
    np.testing.assert_allclose(PCA().fit(X).log_prob(X), expected, rtol=1e-8)


def test_samples_bring_the_model_back(seed):
    """20,000 rows of the model: components and noise within 5 % (their errors are below 1 %)."""
    model = PCA(2).fit(made())
    again = PCA(2).fit(model.sample(20_000, random_state=seed))
    assert subspace_angles(model.components_.T, again.components_.T).max() < 0.05
    assert again.noise_variance_ == pytest.approx(model.noise_variance_, rel=0.05)
    np.testing.assert_array_equal(model.sample(3, random_state=seed + 1), model.sample(3, random_state=seed + 1))


# --- the same plane by other ways -------------------------------------------------------------------------------
def test_a_linear_autoencoder_ends_in_the_same_plane():
    """min over A, B of ‖X − XAB‖² by gradient: the rows of B span the principal components (angles < 1e-3)."""
    X = torch.from_numpy(made(150, 6, seed=3))
    x = (X - X.mean(0)) / X.std()
    generator = torch.Generator().manual_seed(0)
    encoder = (0.1 * torch.randn(6, 2, generator=generator, dtype=torch.float64)).requires_grad_()
    decoder = (0.1 * torch.randn(2, 6, generator=generator, dtype=torch.float64)).requires_grad_()
    optimizer = torch.optim.LBFGS(
        [encoder, decoder], max_iter=2000, tolerance_grad=1e-10, line_search_fn="strong_wolfe"
    )

    def loss():
        optimizer.zero_grad()
        value = (x - x @ encoder @ decoder).square().mean()
        value.backward()
        return value

    optimizer.step(loss)
    plane = PCA(2).fit(X.numpy()).components_.T
    assert subspace_angles(decoder.detach().numpy().T, plane).max() < 1e-3


def test_em_with_equal_noise_comes_to_the_closed_form():
    X = made()
    model = PCA(2).fit(X)
    hidden = np.vstack([X, np.full((1, 5), np.nan)])  # an empty row makes EM of a problem that has a closed form
    by_em = PCA(2, inference=EM(max_iter=5000, tol=1e-13)).fit(hidden)
    assert by_em.log_likelihood_ == pytest.approx(model.log_prob(X).sum(), rel=1e-9)
    assert subspace_angles(by_em.components_.T, model.components_.T).max() < 1e-4
    np.testing.assert_allclose(by_em.noise_variance_, model.noise_variance_, rtol=1e-5)
    np.testing.assert_allclose(by_em.get_covariance(), model.get_covariance(), rtol=1e-4)


def test_factor_analysis_of_data_with_equal_noise_spans_the_same_plane():
    """Data with covariance WWᵀ + σ²I exactly: both models hold, so both find it."""
    random = np.random.default_rng(4)
    loadings = hadamard(8)[:6, 1:3] * [1.5, 1.0]
    target = loadings @ loadings.T + 0.5 * np.eye(6)
    rows = random.normal(size=(400, 6))
    rows -= rows.mean(0)
    X = rows @ np.linalg.inv(np.linalg.cholesky(np.cov(rows.T, ddof=0))).T @ np.linalg.cholesky(target).T
    principal = PCA(2).fit(X)
    factors = FactorAnalysis(2, inference=EM(max_iter=5000, tol=1e-10)).fit(X)
    assert subspace_angles(principal.components_.T, loadings).max() < 1e-6
    assert subspace_angles(factors.components_.T, loadings).max() < 1e-6
    np.testing.assert_allclose(factors.noise_variance_, 0.5, rtol=1e-9)


# --- missing values ---------------------------------------------------------------------------------------------
def test_missing_values_are_marginalised():
    """EM ends where no small step of W, μ, σ² raises Σ log p(known values), and gives the same attributes."""
    X = with_holes(made(80, 4), 0.15)
    model = PCA(1, inference=EM(max_iter=5000, tol=1e-13)).fit(X)
    best = known_density(model.mean_, model.loadings_, model.noise_variance_, X)
    assert model.log_likelihood_ == pytest.approx(best, rel=1e-9)
    assert model.log_prob(X).sum() == pytest.approx(best, rel=1e-9)
    assert (np.diff(model.history_) > -1e-9 * abs(best)).all()
    random = np.random.default_rng(1)
    for _ in range(30):
        mean, loadings = (part + 0.03 * random.normal(size=part.shape) for part in (model.mean_, model.loadings_))
        assert known_density(mean, loadings, model.noise_variance_ * np.exp(0.03 * random.normal()), X) < best
    assert set(vars(PCA(1).fit(made(80, 4)))) <= set(vars(model))
    np.testing.assert_allclose(model.components_ @ model.components_.T, [[1.0]])


def known_density(mean, loadings, noise, X):
    total = 0.0
    for row in X:
        known = ~np.isnan(row)
        total += density(mean[known], loadings[known], noise, row[known]) if known.any() else 0.0
    return total


@pytest.mark.parametrize("n_components", [None, 2, 4, 0.8])
def test_few_missing_values_change_little(n_components):
    """Of variances 16, 6, 1, 0.5 and 0.3: two explain 0.92, and no draw of 400 rows takes one for another."""
    random = np.random.default_rng(0)
    turn, _ = np.linalg.qr(random.normal(size=(5, 5)))
    X = random.normal(size=(400, 5)) * np.sqrt([16.0, 6.0, 1.0, 0.5, 0.3]) @ turn + 10 * random.normal(size=5)
    full, holes = PCA(n_components).fit(X), PCA(n_components).fit(with_holes(X, 0.01))
    assert holes.n_components_ == full.n_components_
    np.testing.assert_allclose(holes.explained_variance_ratio_, full.explained_variance_ratio_, atol=0.02)
    assert subspace_angles(holes.components_[:2].T, full.components_[:2].T).max() < 0.1


def test_scores_of_rows_with_missing_values_are_those_of_the_filled_row():
    X = made()
    for n_components in (2, None):
        model = PCA(n_components).fit(X)
        holes = with_holes(X, 0.1)
        filled = model.impute(holes)
        np.testing.assert_array_equal(filled[~np.isnan(holes)], holes[~np.isnan(holes)])
        np.testing.assert_allclose(model.transform(holes), model.transform(filled), atol=1e-8)
    assert np.isnan(holes).any()


def test_filled_values_are_nearer_than_means():
    """Of 200 masks the error is 0.33 ± 0.06 of that of means, and never above 0.54."""
    iris = load_iris().data
    holes = with_holes(iris, 0.1)
    gone = np.isnan(holes)
    filled = PCA(2).fit(holes).impute(holes)
    error = np.sqrt(((filled - iris)[gone] ** 2).mean())
    plain = np.sqrt(((np.where(gone, np.nanmean(holes, 0), iris) - iris)[gone] ** 2).mean())
    assert error < 0.75 * plain


def test_one_column_with_missing_values():
    X = np.array([[1.0], [np.nan], [3.0], [8.0]])
    model = PCA().fit(X)
    np.testing.assert_allclose([model.mean_[0], model.get_covariance()[0, 0]], [4.0, np.var([1, 3, 8])], rtol=1e-6)


# --- as an estimator --------------------------------------------------------------------------------------------
ROWS_COUNT = {
    "check_sample_weight_equivalence_on_dense_data": "all components are min(n, d), and repeats have more rows",
}


@pytest.mark.parametrize(("n_components", "excused"), [(1, {}), (None, ROWS_COUNT)])
def test_scikit_learns_own_checks_pass(n_components, excused):
    results = check_estimator(PCA(n_components), on_fail=None, on_skip=None, expected_failed_checks=excused)
    assert {r["check_name"]: r["exception"] for r in results if r["status"] == "failed"} == {}


@pytest.mark.parametrize("holes", [0.0, 0.1])
def test_a_saved_model_answers_the_same(holes, tmp_path):
    X = pd.DataFrame(with_holes(made(), holes), columns=list("abcde"))
    model = PCA(2).fit(X)
    model.save(tmp_path / "pca.likely")
    again = likely.load(tmp_path / "pca.likely")
    np.testing.assert_array_equal(again.transform(X), model.transform(X))
    np.testing.assert_array_equal(again.log_prob(X), model.log_prob(X))
    assert list(again.feature_names_in_) == list("abcde")
    assert again.get_params() == model.get_params()


def test_components_in_a_pipeline_regress_as_all_columns_do():
    X, y = load_wine(return_X_y=True)
    pipeline = make_pipeline(PCA(whiten=True), Regressor()).fit(X, y)
    np.testing.assert_allclose(pipeline.predict(X), Regressor().fit(X, y).predict(X), atol=1e-5)


@pytest.mark.parametrize("n_components", [0, -1, 1.5, 0.0, "all", True])
def test_other_numbers_of_components_are_refused(n_components):
    with pytest.raises(SpecError, match=r"n_components must be a positive integer, a fraction of the variance"):
        PCA(n_components).fit(made())


def test_what_cannot_be_answered_is_refused():
    X = made(50, 3)
    with pytest.raises(DataError, match=r"n_components=4 is more than X of shape \(50, 3\) has: .* = 3"):
        PCA(4).fit(X)
    with pytest.raises(DataError, match="X has 1 sample; PCA needs at least 2"):
        PCA().fit(X[:1])
    with pytest.raises(DataError, match=r"X has shape \(2, 2, 2\); PCA needs one vector for each row"):
        PCA().fit(np.ones((2, 2, 2)))
    with pytest.raises(DataError, match=r"X contains infinity \(inf\) at row 1, column 0"):
        PCA().fit([[0.0, 1.0], [np.inf, np.nan]])
    with pytest.raises(DataError, match="X has no value in column 1"):
        PCA(1).fit([[0.0, np.nan], [1.0, np.nan]])
    with pytest.raises(DataError, match=r"The noise variance is 0.*use transform, or take fewer n_components than 3"):
        PCA().fit(X).posterior(X)
    with pytest.raises(DataError, match=r"The density does not exist: 2 components explain all variance of 3 columns"):
        PCA(2).fit(X @ np.diag([1.0, 1.0, 0.0])).log_prob(X)
    with pytest.raises(DataError, match=r"Z has shape \(1, 3\); it must have 2 scores a row"):
        PCA(2).fit(X).inverse_transform([[1.0, 2.0, 3.0]])
    with pytest.raises(NotFittedError):
        PCA().transform(X)
    model = PCA(2).fit(X)
    with pytest.raises(DataError, match="n_components=4"):
        model.set_params(n_components=4).fit(X)
    with pytest.raises(NotFittedError):
        model.transform(X)


def test_rows_that_are_all_the_same_have_no_variance():
    model = PCA(1).fit(np.ones((5, 2)))
    assert (model.explained_variance_ratio_.tolist(), model.noise_variance_) == ([0.0], 0.0)
    np.testing.assert_array_equal(model.transform(np.ones((2, 2))), 0)


def test_em_that_needs_more_steps_says_so():
    with pytest.warns(ConvergenceWarning, match="PCA was still rising after max_iter=1"):
        PCA(1, inference=EM(max_iter=1)).fit(with_holes(made(), 0.2))


def test_clones_keep_their_settings():
    model = PCA(3, whiten=True, inference=EM(max_iter=7))
    assert clone(model).get_params() == model.get_params()
    assert model.set_params(inference__tol=1e-3).inference == EM(max_iter=7, tol=1e-3)
    with warnings.catch_warnings():
        warnings.simplefilter("error", LikelyWarning)
        model.fit(made())
