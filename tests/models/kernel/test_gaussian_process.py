"""Gaussian processes: closed forms, peers, calibration, and what bad input gets."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.stats import multivariate_normal
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.datasets import load_iris
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from sklearn.gaussian_process import kernels as peer
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.utils.estimator_checks import check_estimator

from likely import Regressor
from likely.core.errors import ConvergenceWarning, LikelyWarning
from likely.core.spec import registered
from likely.inference import Exact
from likely.kernels import RBF, Constant, Deep, Linear, Matern, Periodic, RationalQuadratic, White
from likely.likelihoods import Bernoulli, Categorical, Likelihood, Normal, Poisson, StudentT
from likely.models.kernel.gaussian_process import GaussianProcess
from likely.networks import MLP
from likely.priors import Normal as NormalPrior

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 2))
Y = np.sin(2 * X[:, 0]) + 0.5 * X[:, 1] + 0.1 * RNG.normal(size=40)
LABELS = np.where(Y + 0.5 * RNG.normal(size=40) > 0, "up", "down")
NEW = RNG.normal(size=(7, 2))

PAIRS = {
    "rbf": (2.0 * RBF(0.7), 2.0 * peer.RBF(0.7)),
    "ard": (RBF((0.7, 2.0)), peer.RBF([0.7, 2.0])),
    "matern": (Matern(0.9, smoothness=1.5), peer.Matern(0.9, nu=1.5)),
    "rational": (RationalQuadratic(0.8, alpha=0.6), peer.RationalQuadratic(0.8, alpha=0.6)),
    "sum": (0.5 * RBF(1.1) + White(0.2) + 0.3, 0.5 * peer.RBF(1.1) + peer.WhiteKernel(0.2) + 0.3),
    "product": (Linear() * RBF(1.5), peer.DotProduct(sigma_0=0.0, sigma_0_bounds="fixed") * peer.RBF(1.5)),
}


def held(kernel, likelihood, **arguments):
    return GaussianProcess(kernel, likelihood, mean="zero", learn=False, **arguments)


# --- regression -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", PAIRS)
def test_regression_is_that_of_scikit_learn(name):
    ours, theirs = PAIRS[name]
    model = held(ours, Normal(scale=0.3)).fit(X, Y)
    other = GaussianProcessRegressor(theirs, alpha=0.09, optimizer=None).fit(X, Y)
    mean, covariance = other.predict(NEW, return_cov=True)
    np.testing.assert_allclose(model.predict(NEW), mean, atol=1e-10)
    np.testing.assert_allclose(model.posterior(NEW).mean, mean, atol=1e-10)
    np.testing.assert_allclose(model.posterior(NEW).covariance_matrix, covariance, atol=1e-9)
    np.testing.assert_allclose(model.predict_dist(NEW).variance, np.diag(covariance) + 0.09, atol=1e-9)
    assert model.log_evidence_ == pytest.approx(other.log_marginal_likelihood_value_, abs=1e-8)


def test_the_evidence_is_a_normal_density_and_factors_into_predictions():
    """log p(y) = Σ log p(yᵢ | y before i), each by a model of the rows before it."""
    model = held(RBF(0.8), Normal(scale=0.4)).fit(X, Y)
    covariance = RBF(0.8).matrix(X).numpy() + 0.16 * np.eye(40)
    assert model.log_evidence_ == pytest.approx(multivariate_normal(np.zeros(40), covariance).logpdf(Y), abs=1e-9)
    first = multivariate_normal(0, covariance[0, 0]).logpdf(Y[0])
    steps = [
        held(RBF(0.8), Normal(scale=0.4)).fit(X[:i], Y[:i]).log_prob(X[i : i + 1], Y[i : i + 1])[0]
        for i in range(1, 40)
    ]
    assert model.log_evidence_ == pytest.approx(first + sum(steps), abs=1e-8)


def test_the_mean_is_kernel_ridge():
    model = held(RBF(0.8), Normal(scale=0.5)).fit(X, Y)
    ridge = KernelRidge(alpha=0.25, kernel="rbf", gamma=1 / (2 * 0.64)).fit(X, Y)
    np.testing.assert_allclose(model.predict(NEW), ridge.predict(NEW), atol=1e-10)


def test_with_a_linear_kernel_it_is_bayesian_regression():
    """Weights ~ Normal(0, s²) and the same for the bias; the evidence is that of the regression too."""
    model = held(Linear(0.49) + Constant(0.49), Normal(scale=0.3)).fit(X, Y)
    prior = NormalPrior(0.7, biases=NormalPrior(0.7))
    regression = Regressor(Normal(scale=0.3), prior=prior, inference=Exact("full")).fit(X, Y)
    ours, theirs = model.predict_dist(NEW), regression.predict_dist(NEW)
    np.testing.assert_allclose(ours.mean, theirs.mean, atol=1e-8)
    np.testing.assert_allclose(ours.stddev, theirs.stddev, atol=1e-8)
    assert model.log_evidence_ == pytest.approx(regression.posterior_.info["log_evidence"], abs=1e-7)


def test_a_constant_mean_follows_the_targets():
    """Adding a number to y adds it to every prediction; the mean is that of greatest evidence."""
    low, high = (GaussianProcess(RBF(0.7), Normal(scale=0.3), learn=False).fit(X, Y + shift) for shift in (0.0, 100.0))
    np.testing.assert_allclose(high.predict(NEW), low.predict(NEW) + 100, atol=1e-9)
    np.testing.assert_allclose(high.mean_, low.mean_ + 100)
    assert high.log_evidence_ == pytest.approx(low.log_evidence_, abs=1e-8)
    for other in (low.mean_ - 0.01, low.mean_ + 0.01):
        assert held(RBF(0.7), Normal(scale=0.3)).fit(X, Y - other).log_evidence_ < low.log_evidence_


def test_learning_reaches_the_evidence_of_scikit_learn():
    model = GaussianProcess(1.0 * RBF(ard=True), mean="zero", starts=3, random_state=0).fit(X, Y)
    kernel = 1.0 * peer.RBF([1.0, 1.0]) + peer.WhiteKernel(0.1)
    other = GaussianProcessRegressor(kernel, n_restarts_optimizer=2, random_state=0).fit(X, Y)
    assert model.log_evidence_ >= other.log_marginal_likelihood_value_ - 1e-4
    assert model.noise_**2 == pytest.approx(other.kernel_.k2.noise_level, rel=0.01)
    learned = GaussianProcess(model.kernel_, Normal(scale=model.noise_), mean="zero", learn=False).fit(X, Y)
    assert learned.log_evidence_ == pytest.approx(model.log_evidence_, abs=1e-8)  # kernel_ and noise_ say it all
    assert model.converged_


def test_many_rows_begin_on_some_of_them_and_end_at_the_same_top():
    random = np.random.default_rng(1)
    x = random.uniform(-3, 3, size=(1500, 1))
    y = np.sin(3 * x[:, 0]) + 0.2 * random.normal(size=1500)
    model = GaussianProcess(1.0 * RBF(), mean="zero", starts=1, random_state=0).fit(x, y)
    kernel = peer.ConstantKernel(model.kernel_.variance) * peer.RBF(model.kernel_.kernel.lengthscale)
    other = GaussianProcessRegressor(kernel + peer.WhiteKernel(model.noise_**2), optimizer=None).fit(x, y)
    value, gradient = other.log_marginal_likelihood(other.kernel_.theta, eval_gradient=True)
    assert model.log_evidence_ == pytest.approx(value, abs=1e-4)
    curvature = 0.5 * len(x)  # of log σ²; others are less curved, so that 1e-4 nats are left at most
    assert np.abs(gradient).max() < np.sqrt(2 * 1e-3 * curvature)


def test_the_person_s_numbers_come_first_and_learn_false_holds_them():
    kernel = 3.0 * RBF(0.2)
    model = GaussianProcess(RBF(0.2, learn=False), learn=True).fit(X, Y)
    assert model.kernel_.lengthscale == pytest.approx(0.2)
    assert GaussianProcess(kernel, learn=False).fit(X, Y).kernel_.variance == pytest.approx(3.0)
    assert 0.05 < GaussianProcess(RBF(), learn=False).fit(X, Y).noise_ < 0.5  # σ is the likelihood's, and learned


def test_the_right_kernel_has_most_evidence():
    """Functions drawn from one kernel: over three of them, the others have less evidence.

    Nearest is the rough kernel to the smooth one, of 10 ± 3.4 nats a function: 29 ± 6 fall below 0 once in a million.
    The period is held, as a long one would make the periodic kernel a smooth one.
    """
    x = np.linspace(0, 6, 120)[:, None]
    periodic = Periodic(1.0, period=1.7, learn=False)
    kernels = {"smooth": RBF(0.7), "rough": Matern(1.0, smoothness=0.5), "periodic": periodic}
    random = np.random.default_rng(0)
    for name, kernel in kernels.items():
        evidence = dict.fromkeys(kernels, 0.0)
        for _ in range(3):
            covariance = kernel.matrix(x).numpy() + 1e-3 * np.eye(120)
            y = np.linalg.cholesky(covariance) @ random.normal(size=120)
            for other, own in kernels.items():
                evidence[other] += GaussianProcess(own, mean="zero", starts=1).fit(x, y).log_evidence_
        assert max(evidence, key=evidence.__getitem__) == name


def test_intervals_hold_what_they_promise(seed, chances):
    """Functions from the prior, 100 held-out targets each of 60 data sets: 90 % of them, by t of the 60 sets.

    A false alarm in 1 of 10⁶ seeds; one standard error is about 0.5 %.
    """
    inside = []
    for data_set in range(60):
        random = np.random.default_rng((seed, data_set))
        x = random.uniform(0, 5, size=(140, 1))
        covariance = RBF(0.6).matrix(x).numpy() + 0.04 * np.eye(140)
        y = np.linalg.cholesky(covariance) @ random.normal(size=140)
        model = held(RBF(0.6), Normal(scale=0.2)).fit(x[:40], y[:40])
        lower, upper = model.predict_interval(x[40:], level=0.9)
        inside.append((lower <= y[40:]) & (y[40:] <= upper))
    assert chances(inside, 0.9) > 1e-6


def test_without_noise_the_data_are_known():
    x = np.linspace(0, 5, 9)[:, None]
    model = held(Matern(1.0), Normal(scale=1e-5)).fit(x, np.sin(x[:, 0]))
    np.testing.assert_allclose(model.predict(x), np.sin(x[:, 0]), atol=1e-8)
    assert float(model.posterior(x).variance.max()) < 1e-9
    assert float(model.posterior(x + 0.3).variance.max()) > 1e-4


def test_a_weight_is_that_many_rows():
    weight = RNG.integers(0, 4, size=40)
    model, repeated = (GaussianProcess(1.0 * RBF(), Normal(scale=0.2), starts=1) for _ in range(2))
    model.fit(X, Y, sample_weight=weight)
    repeated.fit(np.repeat(X, weight, 0), np.repeat(Y, weight))
    assert model.log_evidence_ == pytest.approx(repeated.log_evidence_, abs=1e-5)
    np.testing.assert_allclose(model.predict(NEW), repeated.predict(NEW), atol=1e-4)
    counts = held(RBF(), Poisson()).fit(X, np.round(np.exp(Y)), sample_weight=weight)
    repeated_counts = held(RBF(), Poisson()).fit(np.repeat(X, weight, 0), np.repeat(np.round(np.exp(Y)), weight))
    np.testing.assert_allclose(counts.predict(NEW), repeated_counts.predict(NEW), rtol=1e-7)


@pytest.mark.parametrize("likelihood", [Normal(), Poisson(), Bernoulli()], ids=repr)
def test_a_missing_target_does_not_count(likelihood):
    y = np.round(np.exp(Y)) if likelihood == Poisson() else (Y > 0).astype(float) if likelihood.labels else Y.copy()
    y[::5] = np.nan
    kept = ~np.isnan(y)
    model, alone = (GaussianProcess(RBF(), likelihood, learn=False) for _ in range(2))
    model.fit(X, y)
    alone.fit(X[kept], y[kept])
    np.testing.assert_allclose(model.predict(NEW), alone.predict(NEW), rtol=0, atol=1e-9 * np.nanmax(np.abs(y)))
    log_prob = model.log_prob(X, y)
    assert (log_prob[::5] == 0).all()
    assert (log_prob[kept] != 0).all()
    assert model.score(X, y) == pytest.approx(alone.score(X[kept], y[kept]))


def test_sampled_targets_have_the_posteriors_moments_and_noise(seed):
    """4,000 paths: means within 5 standard errors, covariances within 0.1 of their scale."""
    model = held(RBF(0.8), Normal(scale=0.3)).fit(X, Y)
    joint = model.posterior(NEW)
    targets = model.sample(NEW, n=4000, random_state=seed)
    covariance = joint.covariance_matrix.numpy() + 0.09 * np.eye(7)  # y = f + noise
    deviation = np.sqrt(np.diag(covariance))
    assert targets.shape == (4000, 7)
    assert (np.abs(targets.mean(0) - joint.mean.numpy()) < 5 * deviation / np.sqrt(4000)).all()
    units = np.outer(deviation, deviation)
    np.testing.assert_allclose(np.cov(targets.T) / units, covariance / units, atol=0.1)
    np.testing.assert_array_equal(model.sample(NEW, random_state=seed + 3), model.sample(NEW, random_state=seed + 3))


# --- other likelihoods ------------------------------------------------------------------------------------------------
def test_two_classes_are_those_of_scikit_learn():
    """Latent means and variances to rounding; probabilities as close as scikit-learn's five error functions are."""
    model = held(2.0 * RBF(0.9), Bernoulli()).fit(X, LABELS)
    other = GaussianProcessClassifier(2.0 * peer.RBF(0.9), optimizer=None, max_iter_predict=1000).fit(X, LABELS)
    assert model.classes_.tolist() == other.classes_.tolist() == ["down", "up"]
    assert model.log_evidence_ == pytest.approx(other.log_marginal_likelihood_value_, abs=1e-8)
    np.testing.assert_allclose(model.predict_proba(NEW), other.predict_proba(NEW), atol=1e-4)
    np.testing.assert_array_equal(model.predict(NEW), other.predict(NEW))
    mean, variance = other.latent_mean_and_variance(NEW)
    np.testing.assert_allclose(model.posterior(NEW).mean, mean, atol=1e-8)
    np.testing.assert_allclose(model.posterior(NEW).variance, variance, atol=1e-8)


def test_laplace_of_a_normal_likelihood_is_exact():
    """A Student t with a million degrees of freedom is normal: f, its variance and the evidence agree."""
    exact = held(RBF(0.8), Normal(scale=0.4)).fit(X, Y)
    nearly = held(RBF(0.8), StudentT(df=1e7, scale=0.4)).fit(X, Y)
    np.testing.assert_allclose(nearly.posterior(NEW).mean, exact.posterior(NEW).mean, atol=1e-5)
    np.testing.assert_allclose(
        nearly.posterior(NEW).covariance_matrix, exact.posterior(NEW).covariance_matrix, atol=1e-5
    )
    assert nearly.log_evidence_ == pytest.approx(exact.log_evidence_, abs=1e-4)


def test_two_classes_are_a_bernoulli_with_twice_the_variance():
    """The difference of two functions of variance v has variance 2v, and it alone decides."""
    two = held(1.0 * RBF(0.9), Categorical()).fit(X, LABELS)
    one = held(2.0 * RBF(0.9), Bernoulli()).fit(X, LABELS)
    assert two.log_evidence_ == pytest.approx(one.log_evidence_, abs=1e-8)
    np.testing.assert_allclose(two.predict_proba(NEW), one.predict_proba(NEW), atol=1e-6)


@pytest.mark.parametrize("begin", [1.0, 10.0])
def test_labels_that_are_apart_leave_functions_of_a_size(begin):
    """The evidence of rows that are told apart rises with the variance for ever, while probabilities fall below ½."""
    x = np.concatenate([np.linspace(0, 1, 15), np.linspace(3, 4, 15), np.linspace(6, 7, 15)])[:, None]
    model = GaussianProcess(begin * RBF(), Categorical(), starts=1).fit(x, np.repeat(list("abc"), 15))
    assert model.converged_
    assert model.predict_proba(x[7::15]).diagonal().min() > 0.55
    covariance = model.kernel_.build(torch.from_numpy(x)).double()(*2 * [torch.from_numpy(x)]).detach()
    assert 50 < covariance.diagonal().mean() - covariance.mean() < 200


def test_iris_is_told_apart():
    """Of 24 ways to make folds none has less than 0.94 right, or a mean log-probability below −0.36."""
    x, y = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    model = GaussianProcess(10.0 * RBF(2.0), Categorical(), random_state=0, starts=1)
    folds = StratifiedKFold(3, shuffle=True, random_state=0)
    assert cross_val_score(model, x, names, cv=folds).mean() >= 0.9
    assert cross_val_score(model, x, names, cv=folds, scoring="neg_log_loss").mean() > -0.5
    fitted = model.fit(x, names)
    probability = fitted.predict_proba(x)
    np.testing.assert_allclose(probability.sum(1), 1)
    assert fitted.score(x, names) >= 0.97
    assert fitted.posterior(x[:4]).sample().shape == (12,)
    assert set(fitted.sample(x[:4], n=3, random_state=0).ravel()) <= set(names)
    np.testing.assert_allclose(fitted.log_prob(x, names), np.log(probability[np.arange(150), y]), atol=1e-9)


def test_counts_recover_their_rate():
    """Of 30 draws, the mean relative error is 0.037 ± 0.013."""
    random = np.random.default_rng(0)
    x = np.linspace(0, 6, 150)[:, None]
    rate = np.exp(3 + np.sin(x[:, 0]))
    model = GaussianProcess(1.0 * RBF(), Poisson(), random_state=0).fit(x, random.poisson(rate))
    assert np.abs(model.predict(x) / rate - 1).mean() < 0.12
    lower, upper = model.predict_interval(x, level=0.9)
    assert (lower <= model.predict(x)).all()
    assert (model.predict(x) <= upper).all()


def test_outliers_pull_a_student_t_less():
    y = np.sin(2 * X[:, 0])
    y[:3] += 20
    robust = GaussianProcess(1.0 * RBF(), StudentT(df=2.0, scale=0.2), random_state=0).fit(X, y)
    truth = np.sin(2 * X[:, 0])
    assert np.abs(robust.predict(X[3:]) - truth[3:]).mean() < 0.3


@pytest.mark.parametrize("name", sorted(registered(Likelihood)))
def test_every_likelihood_fits(name, tmp_path):
    likelihood = registered(Likelihood)[name].example()
    target = likelihood.example_target()
    generator = torch.Generator().manual_seed(0)
    eta = 0.5 * torch.randn(12, likelihood.size(target), generator=generator, dtype=torch.float64)
    y = likelihood.distribution(eta).sample().double()
    if likelihood.labels:
        classes = target.classes or 2
        y[: 2 * classes] = torch.arange(2 * classes).to(y) % classes
    y, x = y.numpy(), X[:12]
    model = GaussianProcess(RBF(1.5), likelihood, learn=False, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LikelyWarning)
        model.fit(x, y)
    assert np.isfinite(model.log_evidence_)
    assert np.isfinite(model.log_prob(x, y)).all()
    assert np.isfinite(model.predict(x).astype(float)).all()
    model.save(tmp_path / "model.likely")
    np.testing.assert_array_equal(loaded(tmp_path / "model.likely").predict(x), model.predict(x))


# --- an estimator -----------------------------------------------------------------------------------------------------
SETTINGS = {
    "normal": (
        GaussianProcess(starts=1, random_state=0),
        {"check_sample_weight_equivalence_on_dense_data": "rounding decides where near the top the search ends"},
    ),
    "held": (GaussianProcess(learn=False), {}),
    "bernoulli": (GaussianProcess(likelihood=Bernoulli(), learn=False, mean="zero"), {}),
    "categorical": (GaussianProcess(likelihood="categorical", learn=False, mean="zero"), {}),
    "inducing": (
        GaussianProcess(inducing=60, learn=False, random_state=0),
        {
            "check_sample_weight_equivalence_on_dense_data": "repeated rows are other rows to choose from",
            "check_regressors_train": "60 inducing points do not carry a function of 200 rows with ten columns",
        },
    ),
}


@pytest.mark.parametrize("name", SETTINGS)
def test_scikit_learns_own_checks_pass(name):
    estimator, excused = SETTINGS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LikelyWarning)
        results = check_estimator(estimator, on_fail=None, on_skip=None, expected_failed_checks=excused)
    assert {r["check_name"]: r["exception"] for r in results if r["status"] == "failed"} == {}
    assert len([r for r in results if r["status"] == "passed"]) >= 50


def test_the_likelihood_says_which_kind_it_is():
    assert is_regressor(GaussianProcess())
    assert is_regressor(GaussianProcess(likelihood="poisson"))
    assert is_classifier(GaussianProcess(likelihood=Bernoulli()))
    assert hasattr(GaussianProcess(likelihood=Bernoulli()), "predict_proba")
    assert not hasattr(GaussianProcess(), "predict_proba")
    assert clone(GaussianProcess(2.0 * RBF())).set_params(kernel__variance=3.0).kernel == 3.0 * RBF()


def loaded(path):
    from likely.core.estimator import load_estimator

    return load_estimator(path)


@pytest.mark.parametrize(
    ("model", "y"),
    [
        (GaussianProcess(1.0 * RBF(ard=True) + White(0.1), random_state=0), Y),
        (GaussianProcess(Deep(MLP((3,), activation="tanh"), 1.0 * RBF()), starts=1, random_state=0), Y),
        (GaussianProcess(inducing=6, random_state=0), Y),
        (GaussianProcess(likelihood=Bernoulli(), random_state=0), LABELS),
        (GaussianProcess(likelihood=StudentT(), starts=1, random_state=0), Y),
    ],
    ids=["sum", "deep", "inducing", "labels", "shared"],
)
def test_saved_and_loaded_it_is_the_same(model, y, tmp_path):
    frame = pd.DataFrame(X, columns=["a", "b"])
    new = pd.DataFrame(NEW, columns=["a", "b"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(frame, y)
    model.save(tmp_path / "model.likely")
    again = loaded(tmp_path / "model.likely")
    np.testing.assert_array_equal(again.predict(new), model.predict(new))
    np.testing.assert_array_equal(again.log_prob(frame, y), model.log_prob(frame, y))
    np.testing.assert_array_equal(again.sample(new, random_state=0), model.sample(new, random_state=0))
    for name in ("log_evidence_", "kernel_", "noise_", "converged_", "n_evaluations_"):
        assert getattr(again, name) == getattr(model, name)
    assert list(again.feature_names_in_) == ["a", "b"]


def test_a_deep_kernel_learns_its_network():
    random = np.random.default_rng(0)
    x = random.uniform(-2, 2, size=(80, 1))
    y = np.sign(x[:, 0]) + 0.05 * random.normal(size=80)  # a step, which no stationary kernel expects
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        deep = GaussianProcess(Deep(MLP((8,), activation="tanh"), 1.0 * RBF()), starts=1, random_state=0).fit(x, y)
    plain = GaussianProcess(1.0 * RBF(), starts=1, random_state=0).fit(x, y)
    assert deep.log_evidence_ > plain.log_evidence_ + 20


def test_the_same_seed_gives_the_same_bits():
    first, second = (GaussianProcess(1.0 * RBF(), starts=3, random_state=4).fit(X, Y) for _ in range(2))
    np.testing.assert_array_equal(first.predict(NEW), second.predict(NEW))
    state = torch.get_rng_state()
    GaussianProcess(likelihood=Bernoulli()).fit(X, LABELS).sample(NEW, n=2)
    assert torch.equal(state, torch.get_rng_state())
