from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process import kernels as peer
from sklearn.kernel_ridge import KernelRidge as ScikitKernelRidge
from sklearn.linear_model import Ridge
from sklearn.metrics import r2_score
from sklearn.model_selection import GridSearchCV
from sklearn.utils.estimator_checks import check_estimator
from torch import nn

import likely
from likely.core.errors import DataError, LikelyWarning, SpecError, TrainingError
from likely.kernels import RBF, Constant, Deep, Linear, Matern, Periodic, Polynomial, White
from likely.models.kernel import kernel_machine
from likely.models.kernel.kernel_ridge import KernelRidge
from likely.networks import MLP
from likely.networks.base import as_network

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3))
Y = np.sin(X[:, 0]) + 0.5 * X[:, 1] + 0.1 * RNG.normal(size=40)
BOTH = np.column_stack([Y, X[:, 2] ** 2])
NEW = RNG.normal(size=(15, 3))
WEIGHT = RNG.integers(0, 4, size=40).astype(float)


@pytest.mark.parametrize("targets", [Y, BOTH, BOTH[:, :1]], ids=["one", "two", "column"])
@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["equal", "weighted"])
@pytest.mark.parametrize(
    ("kernel", "name", "settings"),
    [
        (RBF(0.7), "rbf", {"gamma": 1 / (2 * 0.7**2)}),
        (Linear(), "linear", {}),
        (Polynomial(3, 0.5), "poly", {"degree": 3, "gamma": 1.0, "coef0": 0.5}),
    ],
    ids=["rbf", "linear", "poly"],
)
def test_it_is_scikit_learns_kernel_ridge(kernel, name, settings, weight, targets):
    ours = KernelRidge(kernel, alpha=0.3).fit(X, targets, weight)
    theirs = ScikitKernelRidge(alpha=0.3, kernel=name, **settings).fit(X, targets, weight)
    np.testing.assert_allclose(ours.dual_coef_, theirs.dual_coef_, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(ours.predict(NEW), theirs.predict(NEW), rtol=1e-8, atol=1e-8)
    assert ours.score(X, targets) == pytest.approx(r2_score(targets, theirs.predict(X)))
    assert ours.jitter_ == 0.0


@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["equal", "weighted"])
def test_the_dual_of_the_linear_kernel_is_the_primal_of_ridge(weight):
    """w = Xᵀa, with three unknowns on one side and forty on the other."""
    dual = KernelRidge(Linear(), alpha=0.7).fit(X, Y, weight)
    primal = Ridge(alpha=0.7, fit_intercept=False).fit(X, Y, weight)
    np.testing.assert_allclose(X.T @ dual.dual_coef_, primal.coef_, rtol=1e-9)
    np.testing.assert_allclose(dual.predict(NEW), primal.predict(NEW), rtol=1e-9)


def test_it_is_the_mean_of_a_gaussian_process_with_noise_alpha():
    process = GaussianProcessRegressor(peer.Matern(0.8, nu=1.5), alpha=0.2, optimizer=None).fit(X, Y)
    np.testing.assert_allclose(
        KernelRidge(Matern(0.8, 1.5), 0.2).fit(X, Y).predict(NEW), process.predict(NEW), rtol=1e-9
    )


def test_white_noise_in_the_kernel_is_more_alpha():
    noisy = KernelRidge(RBF() + White(0.2), alpha=0.1).fit(X, Y)
    np.testing.assert_allclose(noisy.predict(NEW), KernelRidge(RBF(), alpha=0.3).fit(X, Y).predict(NEW), rtol=1e-10)


def test_the_gradient_of_what_is_minimised_vanishes():
    """Σ w(y − Ka)² + α aᵀKa, at a."""
    model = KernelRidge(RBF(), alpha=0.4).fit(X, Y, WEIGHT)
    K = RBF().matrix(X).numpy()
    gradient = K @ (-2 * WEIGHT * (Y - K @ model.dual_coef_) + 2 * 0.4 * model.dual_coef_)
    np.testing.assert_allclose(gradient, 0, atol=1e-10)


@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["equal", "weighted"])
@pytest.mark.parametrize("targets", [Y, BOTH], ids=["one", "two"])
def test_leaving_one_out_in_closed_form_is_refitting_without_it(weight, targets):
    kernel = RBF() + Constant() + White(0.1)
    model = KernelRidge(kernel, alpha=0.2).fit(X, targets, weight)
    counts = np.ones(len(X)) if weight is None else weight
    refits = []
    for row in range(len(X)):
        others = np.arange(len(X)) != row
        refits.append(KernelRidge(kernel, 0.2).fit(X[others], targets[others], counts[others]).predict(X[[row]])[0])
    np.testing.assert_allclose(model.loo_predict_, refits, rtol=1e-8, atol=1e-10)


def test_alpha_0_goes_through_every_point():
    model = KernelRidge(Matern(1.0, 0.5), alpha=0.0).fit(X, Y)
    np.testing.assert_allclose(model.predict(X), Y, rtol=1e-9)
    np.testing.assert_allclose(
        KernelRidge(Matern(1.0, 0.5), 0.0).fit(X, Y, WEIGHT).predict(X)[WEIGHT > 0], Y[WEIGHT > 0]
    )


def test_a_row_without_a_target_does_not_count():
    holes = np.where(np.arange(40) % 3 == 0, np.nan, Y)
    kept = ~np.isnan(holes)
    some = KernelRidge().fit(X, holes, WEIGHT)
    alone = KernelRidge().fit(X[kept], Y[kept], WEIGHT[kept])
    np.testing.assert_allclose(some.predict(NEW), alone.predict(NEW), rtol=1e-10)


def test_prediction_in_blocks_is_prediction(monkeypatch):
    model = KernelRidge().fit(X, BOTH)
    whole = model.predict(NEW)
    monkeypatch.setattr(kernel_machine, "BLOCK", 100)
    np.testing.assert_allclose(model.predict(NEW), whole, rtol=1e-12)


def test_the_fit_keeps_its_own_rows():
    rows = X.copy()
    model = KernelRidge().fit(rows, Y)
    before = model.predict(NEW)
    rows[:] = 0.0
    np.testing.assert_array_equal(model.predict(NEW), before)


def test_equal_rows_at_alpha_0_get_a_jitter_that_is_said():
    twice, targets = np.vstack([X, X[:5]]), np.append(Y, Y[:5])
    with pytest.warns(LikelyWarning, match=r"singular to working precision; .*raise alpha, drop repeated rows"):
        model = KernelRidge(Matern(1.0, 0.5), alpha=0.0).fit(twice, targets)
    assert 0 < model.jitter_ <= 1e-9
    np.testing.assert_allclose(model.predict(X), Y, atol=1e-6)


def test_a_kernel_that_is_no_covariance_is_refused(crossed):
    with pytest.raises(TrainingError, match=r"40 rows is not positive definite.*; raise alpha"):
        KernelRidge(crossed).fit(X, Y)
    with pytest.raises(
        DataError, match=r"kernel=Polynomial\(degree=9\) has values that are not finite.*scale the columns"
    ):
        KernelRidge(Polynomial(9)).fit(1e20 * X, Y)


@pytest.mark.parametrize("alpha", [-1.0, np.nan, np.inf, "1", None, True])
def test_alpha_is_no_negative_number(alpha):
    with pytest.raises(SpecError, match=r"KernelRidge\(alpha=.*\): alpha must be 0 or a positive number"):
        KernelRidge(alpha=alpha).fit(X, Y)


@pytest.mark.parametrize(
    ("targets", "message"),
    [
        (None, "KernelRidge requires y to be passed"),
        (Y[:5], r"y has 5 rows, but X has 40 rows"),
        (np.zeros((40, 2, 2)), r"y has shape \(40, 2, 2\); KernelRidge needs \(n,\), or \(n, k\)"),
        (np.where(np.arange(40) == 7, np.inf, Y), "y contains infinity at row 7"),
        (np.full(40, np.nan), "y has no target: all are missing"),
        (np.where(np.eye(40, 2) > 0, np.nan, BOTH), "y has some of its targets at row 0 but not all"),
        (["a"] * 40, r"y has text \('a'\)"),
    ],
)
def test_bad_targets_are_refused(targets, message):
    with pytest.raises(DataError, match=message):
        KernelRidge().fit(X, targets)


def test_bad_rows_and_kernels_are_refused():
    with pytest.raises(DataError, match=r"RBF compares vectors: rows \(n, d\)"):
        KernelRidge().fit(X.reshape(20, 2, 3), Y[:20])
    with pytest.raises(DataError, match="X has 2 features, but KernelRidge is expecting 3"):
        KernelRidge().fit(X, Y).predict(X[:, :2])
    with pytest.raises(SpecError, match="kernel must be one of the kernel specs"):
        KernelRidge(kernel=3).fit(X, Y)
    with pytest.raises(SpecError, match="Did you mean RBF"):
        KernelRidge("rbff").fit(X, Y)
    with pytest.raises(NotFittedError):
        KernelRidge().predict(X)


def test_a_fit_that_fails_leaves_no_model_of_other_data_behind():
    model = KernelRidge().fit(X, Y)
    with pytest.raises(SpecError):
        model.set_params(alpha=-1.0).fit(X, Y)
    with pytest.raises(NotFittedError):
        model.predict(X)


def test_more_rows_than_fit_in_memory_are_refused_before_they_are_tried():
    with pytest.raises(
        DataError, match=r"X has 10000000 rows; KernelRidge needs matrices of rows × rows.*Fit a sample"
    ):
        KernelRidge().fit(np.zeros((10_000_000, 1)), np.zeros(10_000_000))


@pytest.mark.sensitive
@pytest.mark.parametrize("kernel", ["rbf(0.5)", RBF((1.0, 2.0, 3.0)) * 2.0 + White(0.1), Deep(MLP((4,))), Periodic()])
@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["equal", "weighted"])
def test_saved_and_loaded_it_is_the_same(tmp_path, kernel, weight):
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    model = KernelRidge(kernel, alpha=0.2).fit(frame, BOTH, weight)
    model.save(tmp_path / "ridge.likely")
    loaded = likely.load(tmp_path / "ridge.likely")
    np.testing.assert_array_equal(loaded.predict(frame), model.predict(frame))
    np.testing.assert_array_equal(loaded.loo_predict_, model.loo_predict_)
    assert loaded.kernel_ == model.kernel_
    assert list(loaded.feature_names_in_) == ["a", "b", "c"]


def test_a_kernel_with_code_in_it_is_given_again_when_loading(tmp_path):
    kernel = Deep(as_network(nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))))
    model = KernelRidge(kernel, alpha=0.2).fit(X, Y)
    model.save(tmp_path / "ridge.likely")
    loaded = likely.load(tmp_path / "ridge.likely", kernel=kernel)
    np.testing.assert_array_equal(loaded.predict(NEW), model.predict(NEW))


def test_images_are_rows_of_a_network_kernel():
    images = torch.from_numpy(RNG.normal(size=(12, 1, 4, 4)))
    network = as_network(nn.Sequential(nn.Flatten(), nn.Linear(16, 3)))
    model = KernelRidge(Deep(network, features=3), alpha=1e-3).fit(images, Y[:12])
    assert model.score(images, Y[:12]) > 0.5
    with pytest.raises(DataError, match=r"X has rows of shape \(1, 4, 5\); the model was fitted on \(1, 4, 4\)"):
        model.predict(torch.zeros(2, 1, 4, 5))


def test_searches_reach_into_the_kernel():
    search = GridSearchCV(KernelRidge(), {"kernel__lengthscale": [1e-3, 1.0], "alpha": [0.1, 1e5]}, cv=3).fit(X, Y)
    assert search.best_params_ == {"kernel__lengthscale": 1.0, "alpha": 0.1}


def test_scikit_learns_own_checks_pass():
    results = check_estimator(KernelRidge(), on_fail=None, on_skip=None)
    assert {r["check_name"]: r["exception"] for r in results if r["status"] == "failed"} == {}
    assert sum(r["status"] == "passed" for r in results) >= 50
