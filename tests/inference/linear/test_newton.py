"""Second-order fits against statsmodels and scikit-learn, and their behaviour at the edges."""

from __future__ import annotations

import numpy as np
import pytest
import statsmodels.api as sm
import torch
from scipy.special import expit
from sklearn.linear_model import LogisticRegression, PoissonRegressor, QuantileRegressor

import likely.inference.linear.newton as newton_module
from likely import Classifier, Regressor
from likely.core.errors import ConvergenceWarning, LikelyWarning, SpecError
from likely.inference import Exact, Newton
from likely.inference.linear.design import design_of
from likely.inference.linear.glm import LinearEnergy
from likely.inference.linear.minimise import minimise
from likely.inference.linear.network_energy import NetworkEnergy
from likely.likelihoods import Bernoulli, Binomial, Gamma, NegativeBinomial, Normal, Poisson, StudentT
from likely.networks import MLP, Linear
from likely.priors import Flat, Laplace
from likely.priors import Normal as NormalPrior


def coefficients(model):
    """The weights of each output with its bias last: (outputs, d + 1)."""
    parameters = model.posterior_.parameters
    return np.column_stack([parameters["network.weight"][0].numpy(), parameters["network.bias"][0].numpy()])


def targets(rng, X, kind):
    log_mean = X @ [0.5, -0.8, 0.2] + 0.3
    match kind:
        case "poisson":
            return rng.poisson(np.exp(log_mean)).astype(float)
        case "binomial":
            return rng.binomial(7, expit(log_mean)).astype(float)
        case "bernoulli":
            return rng.binomial(1, expit(log_mean)).astype(float)
        case "gamma":
            return rng.gamma(2.0, np.exp(log_mean) / 2.0)
        case "negative binomial":
            return rng.negative_binomial(2, 2 / (2 + np.exp(log_mean))).astype(float)
        case _:
            return log_mean + 0.5 * rng.normal(size=len(X))


FAMILIES = {
    "poisson": (Poisson(), sm.families.Poisson()),
    "binomial": (Binomial(total=7), sm.families.Binomial()),
    "gamma": (Gamma(), sm.families.Gamma(sm.families.links.Log())),
    "negative binomial": (NegativeBinomial(dispersion=0.5), sm.families.NegativeBinomial(alpha=0.5)),
    "normal": (Normal(), sm.families.Gaussian()),
}


def statsmodels_fit(family, X, y, kind, weights=None):
    y = y / 7 if kind == "binomial" else y
    weights = np.ones(len(y)) if weights is None else weights
    weights = 7 * weights if kind == "binomial" else weights
    model = sm.GLM(y, sm.add_constant(X, prepend=False), family=family, var_weights=weights)
    return model.fit(tol=1e-14, maxiter=200).params


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", FAMILIES)
def test_generalised_linear_models_are_those_of_statsmodels(kind, weighted, rng, X):
    likelihood, family = FAMILIES[kind]
    y = targets(rng, X, kind)
    weights = rng.uniform(0.2, 3.0, size=len(y)) if weighted else None
    model = Regressor(likelihood, inference=Newton()).fit(X, y, sample_weight=weights)
    np.testing.assert_allclose(coefficients(model)[0], statsmodels_fit(family, X, y, kind, weights), atol=1e-6)


def test_learned_dispersions_are_their_own_optimum(rng, X):
    """Gamma's α: ψ(α) − log α = mean(1 + log(y/μ) − y/μ) at the optimum."""
    y = targets(rng, X, "gamma")
    model = Regressor(Gamma(), inference=Newton()).fit(X, y)
    alpha = model.posterior_.parameters["shared"][0].exp()
    ratio = y / model.predict(X)
    assert (torch.digamma(alpha) - alpha.log()).item() == pytest.approx(np.mean(1 + np.log(ratio) - ratio), abs=1e-8)


@pytest.mark.parametrize("C", [0.05, 1.0, 20.0])
def test_normal_prior_is_scikit_learns_l2(C, rng, X):
    y = targets(rng, X, "bernoulli")
    model = Classifier(prior=NormalPrior(scale=C**0.5), inference=Newton()).fit(X, y)
    peer = LogisticRegression(C=C, tol=1e-10, solver="newton-cholesky").fit(X, y)
    np.testing.assert_allclose(coefficients(model)[0], [*peer.coef_[0], peer.intercept_[0]], atol=1e-6)
    np.testing.assert_allclose(model.predict_proba(X), peer.predict_proba(X), atol=1e-6)


def test_poisson_with_normal_prior_is_scikit_learns(rng, X):
    y = targets(rng, X, "poisson")
    model = Regressor(Poisson(), prior=NormalPrior(scale=(80 * 0.1) ** -0.5), inference=Newton()).fit(X, y)
    peer = PoissonRegressor(alpha=0.1, tol=1e-10, solver="newton-cholesky").fit(X, y)
    np.testing.assert_allclose(coefficients(model)[0], [*peer.coef_, peer.intercept_], atol=1e-6)


@pytest.mark.parametrize("weighted", [False, True])
def test_softmax_regression_is_scikit_learns(weighted, rng, X):
    y = (X @ rng.normal(size=(3, 4)) + rng.gumbel(size=(80, 4))).argmax(1)
    weights = rng.uniform(0.2, 3.0, size=80) if weighted else None
    model = Classifier(prior=NormalPrior(1.0), inference=Newton()).fit(X, y, sample_weight=weights)
    peer = LogisticRegression(C=1.0, tol=1e-12, solver="lbfgs", max_iter=2000).fit(X, y, sample_weight=weights)
    theta = coefficients(model)
    np.testing.assert_allclose(theta[:, :-1], peer.coef_, atol=1e-5)  # the peer's own tolerance
    np.testing.assert_allclose(model.predict_proba(X), peer.predict_proba(X), atol=1e-5)


def test_softmax_of_two_classes_is_logistic_regression(rng, X):
    """A penalty ‖w₀‖²/2s² + ‖w₁‖²/2s² with w₁ = −w₀ = w/2 is ‖w‖²/4s²."""
    y = targets(rng, X, "bernoulli")
    softmax = Classifier("categorical", prior=NormalPrior(0.7), inference=Newton()).fit(X, y)
    logistic = Classifier("bernoulli", prior=NormalPrior(0.7 * 2**0.5), inference=Newton()).fit(X, y)
    np.testing.assert_allclose(softmax.predict_proba(X), logistic.predict_proba(X), atol=1e-8)


def test_at_the_optimum_of_softmax_the_mean_residual_is_zero(rng, X):
    y = (X @ rng.normal(size=(3, 3)) + rng.gumbel(size=(80, 3))).argmax(1)
    gap = np.eye(3)[y] - Classifier(inference=Newton()).fit(X, y).predict_proba(X)
    np.testing.assert_allclose(np.column_stack([X, np.ones(80)]).T @ gap, 0, atol=1e-7)


# --- weights, gaps, columns -----------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", ["poisson", "gamma", "binomial"])
def test_weight_two_is_repetition_and_weight_zero_removal(kind, rng, X):
    likelihood, y, count = FAMILIES[kind][0], targets(rng, X, kind), np.arange(80) % 3
    weighted = Regressor(likelihood, inference=Newton()).fit(X, y, sample_weight=count)
    repeated = Regressor(likelihood, inference=Newton()).fit(np.repeat(X, count, 0), np.repeat(y, count))
    np.testing.assert_allclose(coefficients(weighted), coefficients(repeated), atol=1e-8)


def test_several_outputs_are_separate_fits_also_with_gaps(rng, X):
    Y = np.column_stack([targets(rng, X, "poisson"), targets(rng, X, "poisson")])
    Y[:9, 1] = np.nan
    together = coefficients(Regressor(Poisson(), inference=Newton()).fit(X, Y))
    for column in range(2):
        seen = ~np.isnan(Y[:, column])
        alone = coefficients(Regressor(Poisson(), inference=Newton()).fit(X[seen], Y[seen, column]))
        np.testing.assert_allclose(together[column], alone[0], atol=1e-8)


def test_collinear_columns_predict_what_one_of_them_predicts(rng, X):
    y = targets(rng, X, "poisson")
    once = Regressor(Poisson(), inference=Newton()).fit(X, y)
    twice = Regressor(Poisson(), inference=Newton()).fit(np.column_stack([X, X[:, 0], np.ones(80)]), y)
    np.testing.assert_allclose(twice.predict(np.column_stack([X, X[:, 0], np.ones(80)])), once.predict(X), rtol=1e-7)
    assert np.abs(coefficients(twice)).max() < 10


def test_columns_of_very_different_units(rng, X):
    y, units = targets(rng, X, "bernoulli"), np.array([1e5, 1e-4, 1.0])
    plain = Classifier(inference=Newton()).fit(X, y)
    scaled = Classifier(inference=Newton()).fit(X * units, y)
    np.testing.assert_allclose(scaled.predict_proba(X * units), plain.predict_proba(X), atol=1e-7)


# --- noise ----------------------------------------------------------------------------------------------------------
def test_known_noise_equals_least_squares(rng, X):
    y = targets(rng, X, "normal")
    newton = Regressor(Normal(scale=0.3), inference=Newton()).fit(X, y)
    np.testing.assert_allclose(coefficients(newton), coefficients(Regressor(inference=Exact()).fit(X, y)), atol=1e-9)


@pytest.mark.parametrize("prior", [Flat(), NormalPrior(0.2)], ids=repr)
def test_learned_noise_equals_the_exact_mode(prior, rng, X):
    y = targets(rng, X, "normal")
    newton = Regressor(prior=prior, inference=Newton()).fit(X, y)
    exact = Regressor(prior=prior, inference=Exact()).fit(X, y)
    np.testing.assert_allclose(coefficients(newton), coefficients(exact), atol=1e-7)
    ours, theirs = newton.posterior_.parameters["shared"].item(), exact.posterior_.parameters["shared"].item()
    assert ours == pytest.approx(theirs, abs=1e-7)


def test_heteroscedastic_noise_recovers_a_known_scale(seed):
    """log σ(x) = 0.5 + x. The Fisher information is Σ (x, 1)(x, 1)ᵀ/σ² of the mean, 2 Σ (x, 1)(x, 1)ᵀ of log σ.

    Four numbers within 5 of its standard errors: a false alarm in 2 of 10⁶ seeds.
    """
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, size=(2000, 1))
    y = 3 * x[:, 0] - 1 + np.exp(0.5 + x[:, 0]) * rng.normal(size=2000)
    model = Regressor(Normal(scale="input"), inference=Newton()).fit(x, y)
    design = np.column_stack([x, np.ones(2000)])
    weights = np.stack([np.exp(-1 - 2 * x), np.full((2000, 1), 2.0)])
    variance = np.linalg.inv(design.T @ (weights * design)).diagonal(axis1=1, axis2=2)
    assert (np.abs(coefficients(model) - [[3.0, -1.0], [1.0, 0.5]]) < 5 * np.sqrt(variance)).all()
    slope, offset = coefficients(model)[1]
    np.testing.assert_allclose(model.predict_dist(x).stddev, np.exp(slope * x[:, 0] + offset), rtol=1e-6)


def test_student_t_is_not_moved_by_outliers(rng, X):
    truth = X @ [1.0, -2.0, 0.5] + 4.0
    y = truth + 0.1 * rng.normal(size=80)
    y[::10] += 100.0
    robust = Regressor(StudentT(df=3.0), inference=Newton()).fit(X, y)
    plain = Regressor(inference=Exact()).fit(X, y)
    assert np.abs(robust.predict(X) - truth).max() < 0.2
    assert np.abs(plain.predict(X) - truth).max() > 5


# --- edges ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("classes", [2, 3])
def test_separable_data_stop_on_the_way_to_infinity(classes):
    X = np.arange(10.0 * classes)[:, None]
    y = np.arange(10 * classes) // 10
    with pytest.warns(ConvergenceWarning, match=r"separated perfectly .* prior=Normal\(scale=1.0\)"):
        model = Classifier(inference=Newton()).fit(X, y)
    assert np.isfinite(coefficients(model)).all()
    np.testing.assert_array_equal(model.predict(X), y)
    assert model.predict_proba(X).max(1).min() > 0.99


def test_separable_data_under_a_prior_are_no_trouble():
    X, y = np.arange(20.0)[:, None], np.arange(20) // 10
    model = Classifier(prior=NormalPrior(1.0), inference=Newton()).fit(X, y)
    peer = LogisticRegression(C=1.0, tol=1e-10, solver="newton-cholesky").fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X), peer.predict_proba(X), atol=1e-6)


def test_too_few_steps_are_said(rng, X):
    with pytest.warns(ConvergenceWarning, match="stopped after 1 steps .* raise max_iter"):
        Regressor(Poisson(), inference=Newton(max_iter=1)).fit(X, targets(rng, X, "poisson"))


def test_outliers_with_logits_of_ten_thousand(rng, X):
    y = targets(rng, X, "bernoulli")
    far = np.vstack([X, 1e4 * np.eye(3)])
    labels = np.append(y, [1, 0, 1])
    model = Classifier(prior=NormalPrior(1.0), inference=Newton()).fit(far, labels)
    peer = LogisticRegression(C=1.0, tol=1e-12, solver="newton-cholesky", max_iter=1000).fit(far, labels)
    np.testing.assert_allclose(model.predict_proba(X), peer.predict_proba(X), atol=1e-5)
    assert np.isfinite(model.predict_log_proba(X)).all()


@pytest.mark.parametrize("logit", [1e4, -1e4])
def test_a_start_at_logits_of_ten_thousand_finds_the_same_optimum(logit, rng, X, problem_of):
    y = targets(rng, X, "bernoulli")
    model = Classifier(prior=NormalPrior(1.0, biases=NormalPrior(1.0)))
    energy = LinearEnergy(design_of(problem_of(model, X, y)).regression(0))
    far = torch.tensor([logit, logit, -logit, logit], dtype=torch.float64)
    minimum = minimise(energy, far, energy.l1(), max_iter=200, tol=1e-14)
    fitted = model.set_params(inference=Newton()).fit(X, y)
    assert minimum.converged
    np.testing.assert_allclose(minimum.point, coefficients(fitted)[0], atol=1e-6)


def test_huge_counts(rng, X):
    y = rng.poisson(np.exp(X @ [0.5, -0.8, 0.2] + 18)).astype(float)
    model = Regressor(Poisson(), inference=Newton()).fit(X, y)
    peer = statsmodels_fit(sm.families.Poisson(), X, y, "poisson")
    np.testing.assert_allclose(coefficients(model)[0], peer, atol=1e-6)
    np.testing.assert_allclose(coefficients(model)[0], [0.5, -0.8, 0.2, 18], atol=1e-3)


def test_counts_that_are_all_zero_stay_finite(X):
    with pytest.warns(LikelyWarning, match=r"y is 0\.0 in every row"):
        model = Regressor(Poisson(), inference=Newton()).fit(X, np.zeros(80))
    assert 0 <= model.predict(X).max() < 1e-9


def test_one_row():
    model = Regressor(Poisson(), inference=Newton()).fit([[2.0]], [5.0])
    assert model.predict([[2.0]])[0] == pytest.approx(5.0)


# --- long data ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("prior", [Flat(), Laplace(scale=0.05)], ids=repr)
def test_the_rough_first_fit_of_long_data_does_not_change_the_optimum(prior, rng, X, monkeypatch):
    y = targets(rng, X, "bernoulli")
    whole = Classifier(prior=prior, inference=Newton()).fit(X, y)
    monkeypatch.setattr(newton_module, "SAMPLE", 4)  # then 20 rows a parameter are the sample: 80 of 240
    long = np.tile(X, (3, 1)), np.tile(y, 3)
    scale = prior.replace(scale=prior.scale / 3) if isinstance(prior, Laplace) else prior
    seen = []
    monkeypatch.setattr(LinearEnergy, "thinned", _recording(LinearEnergy.thinned, seen))
    thinned = Classifier(prior=scale, inference=Newton()).fit(*long)
    assert seen == [3]
    np.testing.assert_allclose(coefficients(thinned), coefficients(whole), atol=1e-8)


def _recording(method, seen):
    def record(self, step):
        seen.append(step)
        return method(self, step)

    return record


def test_more_than_a_hundred_thousand_rows(rng):
    """Long enough for the rough first fit as it is: the score Xᵀ(y − p) is zero at the optimum."""
    X = rng.normal(size=(110_000, 2))
    y = rng.binomial(1, expit(X[:, 0] - 0.5 * X[:, 1] + 0.2))
    model = Classifier(inference=Newton()).fit(X, y)
    gap = y - model.predict_proba(X)[:, 1]
    np.testing.assert_allclose(np.column_stack([X, np.ones(len(X))]).T @ gap, 0, atol=1e-4)


# --- networks -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("likelihood", "prior"),
    [(Normal(scale=0.1), NormalPrior(1.0)), (Poisson(), NormalPrior(0.5)), (Bernoulli(), Laplace(1.0))],
    ids=repr,
)
def test_a_small_network_ends_at_a_stationary_point(likelihood, prior, rng, X, problem_of):
    kind = {"Normal": "normal", "Poisson": "poisson", "Bernoulli": "bernoulli"}[type(likelihood).__name__]
    y = np.tanh(X[:, 0]) + 0.1 * rng.normal(size=80) if kind == "normal" else targets(rng, X, kind)
    estimator = Classifier if likelihood.labels else Regressor
    model = estimator(likelihood, MLP((3,), "tanh"), prior, Newton(max_iter=300), random_state=0, standardise=False)
    model.fit(X, y)
    energy = NetworkEnergy(problem_of(model, X, y))
    point = energy.parameters.flat(model.posterior_.parameters)[0]
    start, slope = energy.value(energy.start(), hessian=False)[1], energy.value(point, hessian=False)[1]
    l1 = energy.l1()
    at_rest = torch.where(point != 0, slope + l1 * point.sign(), (slope.abs() - l1).clamp_min(0))
    assert at_rest.norm() < 1e-4 * start.norm()


@pytest.mark.filterwarnings("ignore::likely.core.errors.ConvergenceWarning")
@pytest.mark.parametrize("start", range(3))
def test_steps_of_a_network_do_not_saturate_its_units(start):
    """A whole first step lowers the energy, but to where no gradient is left: weights of 0 and biases of 10⁴."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(40, 3))
    y = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2]
    model = Regressor(Normal(0.3), MLP((8,), "tanh"), NormalPrior(1.0), Newton(), random_state=start).fit(X, y)
    parameters = {name: torch.from_numpy(np.asarray(value)[0]) for name, value in model.posterior_.parameters.items()}
    assert all(value.abs().max() < 100 for value in parameters.values())
    constant = Regressor(Normal(0.3), inference=Newton()).fit(np.zeros((40, 1)), y)
    gained = model.log_prob(X, y).sum() - constant.log_prob(np.zeros((40, 1)), y).sum()
    lost = sum(float(value.square().sum()) / 2 for name, value in parameters.items() if name.endswith("weight"))
    assert gained - lost > 50


def test_a_linear_network_in_other_words_finds_the_same_optimum(rng, X):
    """A user's module is not seen to be linear: the general way and the linear one agree."""
    y = targets(rng, X, "poisson")

    def network(in_shape, out_features):
        return torch.nn.Sequential(torch.nn.Linear(in_shape[-1], out_features))

    general = Regressor(Poisson(), network, NormalPrior(1.0), Newton(), random_state=0, standardise=False).fit(X, y)
    linear = Regressor(Poisson(), Linear(), NormalPrior(1.0), Newton()).fit(X, y)
    np.testing.assert_allclose(general.predict(X), linear.predict(X), rtol=1e-6)


def test_too_many_parameters_are_refused_with_a_remedy(rng, X):
    with pytest.raises(
        SpecError, match=r"matrix of 5,001 × 5,001; it takes up to 4,000 parameters\. Use inference=MAP"
    ):
        Regressor(Poisson(), MLP((1000,)), inference=Newton()).fit(X, targets(rng, X, "poisson"))


@pytest.mark.parametrize("argument", ["max_iter", "tol"])
def test_arguments_are_positive(argument):
    with pytest.raises(SpecError, match=rf"Newton\({argument}=0\): {argument} must be positive"):
        Newton(**{argument: 0})


def test_laplace_noise_is_least_absolute_deviations(rng):
    x = rng.normal(size=(200, 3))
    y = x @ [1.0, -2.0, 0.5] + rng.standard_t(2, size=200)
    ours = Regressor("laplace", inference=Newton(max_iter=1000)).fit(x, y)  # reweighted squares are slow at the end
    peer = QuantileRegressor(quantile=0.5, alpha=0.0).fit(x, y)
    loss = np.abs(y - ours.predict(x)).mean()
    best = np.abs(y - peer.predict(x)).mean()
    assert best <= loss * (1 + 1e-9)
    assert loss <= best * (1 + 1e-4)
