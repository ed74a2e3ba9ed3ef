from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.linalg import hadamard
from scipy.stats import multivariate_normal
from sklearn.base import clone
from sklearn.datasets import load_wine
from sklearn.decomposition import FactorAnalysis as ScikitFactorAnalysis
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import check_estimator

import likely
from likely import FactorAnalysis
from likely.core.errors import DataError, LikelyWarning, SpecError
from likely.inference import EM
from likely.models.linear_gaussian.factor_analysis import varimax

TIGHT = EM(max_iter=20_000, tol=1e-11)


def made(rows=500, columns=8, factors=2, seed=0):
    """Each factor moves all columns, by signs of its own: drawn loadings may leave a factor to two columns only.

    There the noise of one may vanish in the likelihood (a Heywood case).
    """
    random = np.random.default_rng(seed)
    loadings = hadamard(8)[:columns, 1 : factors + 1] * [1.6, 1.2, 0.9][:factors]
    noise = random.uniform(0.7, 1.0, columns)
    x = random.normal(size=(rows, factors)) @ loadings.T + noise * random.normal(size=(rows, columns))
    return x * random.uniform(0.5, 2.0, columns) + 3.0


def with_holes(X, share, seed=0):
    return np.where(np.random.default_rng(seed).random(X.shape) < share, np.nan, X)


def peer(X, factors):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ScikitFactorAnalysis(factors, tol=1e-12, max_iter=4000, svd_method="lapack").fit(X)


# --- against scikit-learn ---------------------------------------------------------------------------------------
@pytest.mark.parametrize("factors", [1, 2, 3])
def test_the_optimum_is_that_of_scikit_learn(factors):
    """log p a row within 1e-6 (or above), Ψ alike, and W alike up to signs, once turned to diagonal WᵀΨ⁻¹W."""
    X = made(factors=factors)
    ours, theirs = FactorAnalysis(factors, inference=TIGHT).fit(X), peer(X, factors)
    assert ours.score(X) >= theirs.score(X) - 1e-6
    np.testing.assert_allclose(ours.noise_variance_, theirs.noise_variance_, rtol=1e-3)
    signs = np.sign((ours.components_ * theirs.components_).sum(1))
    np.testing.assert_allclose(ours.components_, signs[:, None] * theirs.components_, atol=1e-3)
    np.testing.assert_allclose(ours.transform(X), theirs.transform(X) * signs, atol=2e-3)
    np.testing.assert_allclose(ours.get_covariance(), theirs.get_covariance(), atol=1e-3)
    np.testing.assert_allclose(ours.log_prob(X), multivariate_normal(ours.mean_, ours.get_covariance()).logpdf(X))


def test_real_data_of_many_scales_ends_no_lower_than_scikit_learn():
    X = load_wine().data
    assert FactorAnalysis(2, inference=EM(max_iter=5000, tol=1e-9)).fit(X).score(X) >= peer(X, 2).score(X) - 1e-6


def test_the_optimum_solves_the_likelihood_equations():
    """At the maximum Σ⁻¹(Σ − S)Σ⁻¹ has a zero diagonal, and (Σ − S)Σ⁻¹W = 0."""
    X = made()
    model = FactorAnalysis(2, inference=TIGHT).fit(X)
    covariance = model.get_covariance()
    inverse = np.linalg.inv(covariance)
    gap = covariance - np.cov(X.T, ddof=0)
    np.testing.assert_allclose(np.diag(inverse @ gap @ inverse), 0, atol=1e-4)
    np.testing.assert_allclose(gap @ inverse @ model.components_.T, 0, atol=1e-4)
    np.testing.assert_allclose(model.mean_, X.mean(0), rtol=1e-10)


# --- the fit ----------------------------------------------------------------------------------------------------
def test_the_trace_never_falls_and_ends_at_the_log_likelihood():
    X = with_holes(made(), 0.1)
    model = FactorAnalysis(2).fit(X)
    assert (np.diff(model.history_) >= -1e-9 * np.abs(model.history_).max()).all()
    assert model.converged_
    assert len(model.history_) == model.n_iter_ + 1
    np.testing.assert_allclose(model.log_likelihood_, model.log_prob(X).sum(), rtol=1e-10)
    np.testing.assert_allclose(model.log_likelihood_ / len(X), model.score(X), rtol=1e-10)


@pytest.mark.parametrize("holes", [0.0, 0.15])
def test_weights_are_repeats(holes):
    X = with_holes(made(300), holes)
    weight = np.random.default_rng(1).integers(0, 4, len(X))
    weighted = FactorAnalysis(2).fit(X, sample_weight=weight)
    repeated = FactorAnalysis(2).fit(np.repeat(X, weight, axis=0))
    for name in ("components_", "noise_variance_", "mean_", "history_"):
        np.testing.assert_allclose(getattr(weighted, name), getattr(repeated, name), rtol=1e-6, atol=1e-8, err_msg=name)


def test_missing_values_are_marginalised():
    """No small step raises Σ log p(known values); the same rows in another order give the same model."""
    X = with_holes(made(150, 5, 1, seed=2), 0.2)
    model = FactorAnalysis(1, inference=TIGHT).fit(X)
    assert (model.noise_variance_ > 0.05).all()
    best = known_density(model.mean_, model.components_, model.noise_variance_, X)
    assert model.log_likelihood_ == pytest.approx(best, rel=1e-10)
    random = np.random.default_rng(0)
    for _ in range(30):
        moved = [part + 0.03 * random.normal(size=part.shape) for part in (model.mean_, model.components_)]
        assert known_density(*moved, model.noise_variance_ * np.exp(0.03 * random.normal(size=5)), X) < best
    other = FactorAnalysis(1, inference=TIGHT).fit(X[::-1].copy())
    np.testing.assert_allclose(other.components_, model.components_, rtol=1e-6)


def known_density(mean, components, noise, X):
    covariance = components.T @ components + np.diag(noise)
    total = 0.0
    for row in X:
        known = ~np.isnan(row)
        if known.any():
            total += multivariate_normal(mean[known], covariance[np.ix_(known, known)]).logpdf(row[known])
    return total


def test_a_planted_model_comes_back_from_rows_with_holes(seed):
    """20,000 rows, 30 % missing: every entry of the covariance within 5 % of the largest (errors are about 1 %)."""
    planted = FactorAnalysis(2).fit(made())
    X = with_holes(planted.sample(20_000, random_state=seed), 0.3)
    recovered = FactorAnalysis(2).fit(X).get_covariance()
    np.testing.assert_allclose(recovered, planted.get_covariance(), atol=0.05 * planted.get_covariance().max())


def test_columns_without_noise_are_held_and_named():
    """x₃ = x₁: one factor explains both without noise, and log p would grow without end."""
    X = made(200, 3, 1)
    X = np.column_stack([X, X[:, 1]])
    with pytest.warns(LikelyWarning, match=r"The noise of column 1, 3 would vanish \(a Heywood case\).*floor=0\.01"):
        model = FactorAnalysis(1, floor=0.01).fit(X)
    np.testing.assert_allclose(model.noise_variance_[[1, 3]], 0.01 * X[:, 1].var(), rtol=1e-6)
    assert np.isfinite(model.log_prob(X)).all()
    with pytest.warns(LikelyWarning, match="The noise of column b, d would vanish"):
        FactorAnalysis(1, floor=0.01).fit(pd.DataFrame(X, columns=list("abcd")))


def test_a_constant_column_is_held_too():
    X = np.column_stack([made(100, 4, 1), np.full(100, 7.0)])
    with pytest.warns(LikelyWarning, match="The noise of column 4 would vanish"):
        model = FactorAnalysis(1).fit(X)
    np.testing.assert_allclose(model.components_[0, 4], 0, atol=1e-8)
    assert model.mean_[4] == pytest.approx(7.0)
    assert np.isfinite(model.score(X))


def test_several_starts_end_no_lower_than_one():
    X = load_wine().data
    one = FactorAnalysis(3, inference=EM(max_iter=2000), random_state=0).fit(X)
    more = FactorAnalysis(3, inference=EM(max_iter=2000, starts=3), random_state=0).fit(X)
    assert more.log_likelihood_ >= one.log_likelihood_ - 1e-9 * abs(one.log_likelihood_)


# --- rotation ---------------------------------------------------------------------------------------------------
def criterion(loadings):
    return (loadings**2).var(0).sum()


def test_varimax_turns_but_keeps_the_density():
    X = made(factors=3)
    plain, turned = FactorAnalysis(3).fit(X), FactorAnalysis(3, rotation="varimax").fit(X)
    np.testing.assert_allclose(turned.get_covariance(), plain.get_covariance(), rtol=1e-10)
    theirs = np.linalg.lstsq(plain.components_.T, turned.components_.T)[0]
    np.testing.assert_allclose(theirs @ theirs.T, np.eye(3), atol=1e-10)
    assert criterion(turned.components_.T) > criterion(plain.components_.T)


def test_varimax_is_a_maximum_and_no_lower_than_that_of_scikit_learn():
    X = made(factors=3)
    theirs = ScikitFactorAnalysis(3, rotation="varimax", svd_method="lapack").fit(X)
    ours = varimax(theirs.components_.T)
    assert criterion(ours) >= criterion(theirs.components_.T) - 1e-9
    random = np.random.default_rng(0)
    for _ in range(50):
        turn, _ = np.linalg.qr(np.eye(3) + 0.05 * random.normal(size=(3, 3)))
        assert criterion(ours @ turn) <= criterion(ours)


def test_varimax_finds_loadings_with_one_factor_each():
    simple = np.kron(np.eye(3), [[1.0], [0.8], [0.6], [1.2]])
    turn, _ = np.linalg.qr(np.random.default_rng(0).normal(size=(3, 3)))
    loadings = varimax(simple @ turn)
    np.testing.assert_allclose(np.sort(np.abs(loadings), 1), np.sort(simple, 1), atol=1e-8)


def test_unrotated_components_have_a_diagonal_falling_signal():
    model = FactorAnalysis(3).fit(made(factors=3))
    signal = model.components_ / model.noise_variance_ @ model.components_.T
    np.testing.assert_allclose(signal, np.diag(np.diag(signal)), atol=1e-8 * signal.max())
    assert (np.diff(np.diag(signal)) < 0).all()
    largest = np.abs(model.components_).argmax(1)
    assert (model.components_[range(3), largest] > 0).all()


# --- answers ----------------------------------------------------------------------------------------------------
def test_transform_is_the_posterior_mean_and_missing_values_widen_it():
    X = made(300)
    model = FactorAnalysis(2).fit(X)
    np.testing.assert_array_equal(model.transform(X), model.posterior(X).mean)
    holes = with_holes(X, 0.3)
    narrow, wide = model.posterior(X).variance, model.posterior(holes).variance
    gone = np.isnan(holes).any(1)
    assert (wide[gone] > narrow[gone]).all()
    np.testing.assert_allclose(wide[~gone], narrow[~gone])
    np.testing.assert_array_equal(model.get_feature_names_out(), ["factoranalysis0", "factoranalysis1"])


def test_scikit_learns_own_checks_pass():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LikelyWarning)  # some of its data have columns without noise
        results = check_estimator(FactorAnalysis(), on_fail=None, on_skip=None)
    assert {r["check_name"]: r["exception"] for r in results if r["status"] == "failed"} == {}


def test_a_saved_model_answers_the_same(tmp_path):
    X = with_holes(made(60), 0.1)
    model = FactorAnalysis(2, rotation="varimax", random_state=3).fit(X)
    model.save(tmp_path / "factors.likely")
    again = likely.load(tmp_path / "factors.likely")
    for name in ("transform", "log_prob", "impute"):
        np.testing.assert_array_equal(getattr(again, name)(X), getattr(model, name)(X))
    np.testing.assert_array_equal(again.sample(4), model.sample(4))
    np.testing.assert_array_equal(again.history_, model.history_)
    assert (again.n_iter_, again.converged_) == (model.n_iter_, model.converged_)
    assert clone(again).get_params() == model.get_params()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_components": 0}, "n_components must be a positive integer"),
        ({"n_components": 1.5}, "n_components must be a positive integer"),
        ({"rotation": "promax"}, r'rotation must be None or "varimax"'),
        ({"floor": 0.0}, "floor must be a number between 0 and 1"),
        ({"inference": 3}, r"inference must be one of the inference specs \(.*EM.*\); found 3"),
    ],
)
def test_other_settings_are_refused(settings, message):
    with pytest.raises(SpecError, match=message):
        FactorAnalysis(**settings).fit(made())


@pytest.mark.filterwarnings("ignore:The noise of column")  # as may be where three columns have a factor
def test_data_that_cannot_be_fitted_is_refused():
    X = made(50, 3)
    with pytest.raises(DataError, match=r"n_components=4 is more than the 3 feature\(s\) of X"):
        FactorAnalysis(4).fit(X)
    with pytest.raises(DataError, match="X has 1 sample; FactorAnalysis needs at least 2"):
        FactorAnalysis().fit(X[:1])
    with pytest.raises(DataError, match="X has no variance"):
        FactorAnalysis().fit(np.ones((4, 3)))
    with pytest.raises(DataError, match="X has no value in column 2"):
        FactorAnalysis().fit(np.where([False, False, True], np.nan, X))
    with pytest.raises(DataError, match=r"X has 2 features, but FactorAnalysis is expecting 3"):
        FactorAnalysis().fit(X).transform(X[:, :2])
    with pytest.raises(NotFittedError):
        FactorAnalysis().sample()


# --- more than one process --------------------------------------------------------------------------------------
SCRIPT = """
import sys
import numpy as np
import torch
torch.set_num_threads(1)
from likely import PCA, FactorAnalysis
from likely.core import distributed
from likely.inference import EM

random = np.random.default_rng(0)
X = random.normal(size=(203, 2)) @ random.normal(size=(2, 5)) + random.normal(size=(203, 5)) + 50.0
holes = np.where(random.random(X.shape) < 0.15, np.nan, X)
weight = random.uniform(0, 2, 203)
steps = EM(max_iter=40, tol=0.0, starts=2)
answers = {}
for kind, rows in (("full", X), ("holes", holes)):
    factors = FactorAnalysis(2, inference=steps, random_state=0).fit(rows, sample_weight=weight)
    plane = PCA(2, inference=steps, random_state=0).fit(rows, sample_weight=weight)
    for name, model in (("factors", factors), ("plane", plane)):
        answers[f"{kind}/{name}/covariance"] = model.get_covariance()
        answers[f"{kind}/{name}/mean"] = model.mean_
        answers[f"{kind}/{name}/components"] = model.components_
    answers[f"{kind}/elbo"] = factors.history_
"""


def test_two_processes_fit_what_one_fits(by_processes):
    alone, first, second = by_processes(SCRIPT)
    for name in alone:
        np.testing.assert_array_equal(first[name], second[name], err_msg=name)
        np.testing.assert_allclose(first[name], alone[name], rtol=1e-8, atol=1e-8, err_msg=name)
