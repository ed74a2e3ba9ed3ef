"""The conjugate case, against linear algebra written out and against scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import stats
from scipy.optimize import minimize_scalar
from scipy.stats import multivariate_normal
from sklearn.linear_model import Ridge

import likely
from likely import Regressor
from likely.core.errors import ApproximationWarning, SpecError
from likely.inference import Exact, GaussianPosterior, Newton, Posterior
from likely.likelihoods import Normal, Poisson
from likely.networks import MLP, Linear
from likely.priors import Laplace
from likely.priors import Normal as NormalPrior


def coefficients(model):
    """W (outputs, d) and b (outputs,) as arrays."""
    parameters = model.posterior_.parameters
    bias = parameters.get("network.bias")
    return parameters["network.weight"][0].numpy(), None if bias is None else bias[0].numpy()


def least_squares(X, y):
    """The shortest weights by the pseudo-inverse of centred data, and the intercept."""
    weight = np.linalg.pinv(X - X.mean(0)) @ (y - y.mean())
    return weight, y.mean() - X.mean(0) @ weight


def with_duplicate(X):
    return np.column_stack([X, X[:, 0], X[:, 1] - 2 * X[:, 2]])


DESIGNS = {
    "full rank": lambda rng: rng.normal(size=(40, 5)),
    "collinear": lambda rng: with_duplicate(rng.normal(size=(40, 3))),
    "wide": lambda rng: rng.normal(size=(10, 25)),
    "constant column": lambda rng: np.column_stack([rng.normal(size=(30, 3)), np.full(30, 7.0)]),
    "nearly collinear": lambda rng: (lambda a: np.column_stack([a, a + 1e-5 * rng.normal(size=a.shape)]))(
        rng.normal(size=(50, 2))
    ),
    "single row": lambda rng: rng.normal(size=(1, 2)),
}


@pytest.mark.parametrize("design", DESIGNS)
def test_least_squares_is_the_pseudo_inverse(design, rng):
    X = DESIGNS[design](rng)
    y = X @ rng.normal(size=X.shape[1]) + rng.normal(size=len(X)) + 3.0
    weight, bias = least_squares(X, y)
    fitted, intercept = coefficients(Regressor(inference=Exact()).fit(X, y))
    np.testing.assert_allclose(fitted[0], weight, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(intercept, bias, rtol=1e-6, atol=1e-8)


def test_without_bias_nothing_is_centred(rng):
    X = rng.normal(size=(30, 4)) + 2.0
    y = rng.normal(size=30) + 5.0
    fitted, bias = coefficients(Regressor(network=Linear(bias=False), inference=Exact()).fit(X, y))
    assert bias is None
    np.testing.assert_allclose(fitted[0], np.linalg.pinv(X) @ y, atol=1e-10)


@pytest.mark.parametrize("offset", [1e6, -1e6])
def test_large_offsets_keep_their_digits(offset, rng):
    X, noise = rng.normal(size=(60, 3)), rng.normal(size=60)
    weight, bias = least_squares(X, X @ [1.0, -2.0, 0.5] + noise)
    far = X + offset
    fitted, intercept = coefficients(Regressor(inference=Exact()).fit(far, X @ [1.0, -2.0, 0.5] + noise))
    np.testing.assert_allclose(fitted[0], weight, rtol=1e-7)  # far itself rounds x at 1e-10
    np.testing.assert_allclose(intercept, bias - offset * weight.sum(), rtol=1e-7)


def test_exact_data_are_found_exactly(rng):
    X = rng.normal(size=(20, 3))
    model = Regressor(inference=Exact()).fit(X, X @ [1.0, 2.0, 3.0] - 4.0)
    np.testing.assert_allclose(coefficients(model)[0][0], [1.0, 2.0, 3.0], rtol=1e-10)
    assert np.isfinite(model.log_prob(X, X @ [1.0, 2.0, 3.0] - 4.0)).all()


@pytest.mark.parametrize("shape", [(30, 4), (6, 15)])
def test_known_noise_and_normal_prior_are_ridge(shape, rng):
    """MAP is ridge with λ = σ²/s², and the primal and dual solutions agree."""
    X, y, sigma, s = rng.normal(size=shape) + 1.0, rng.normal(size=shape[0]), 0.7, 1.3
    penalty = sigma**2 / s**2
    fitted, bias = coefficients(Regressor(Normal(scale=sigma), prior=NormalPrior(s), inference=Exact()).fit(X, y))
    peer = Ridge(alpha=penalty, solver="svd").fit(X, y)
    np.testing.assert_allclose(fitted[0], peer.coef_, atol=1e-10)
    np.testing.assert_allclose(bias[0], peer.intercept_, atol=1e-10)
    centred, target = X - X.mean(0), y - y.mean()
    dual = centred.T @ np.linalg.solve(centred @ centred.T + penalty * np.eye(len(X)), target)
    np.testing.assert_allclose(fitted[0], dual, atol=1e-10)


def test_a_prior_on_the_bias_is_a_penalised_column_of_ones(rng):
    X, y = rng.normal(size=(25, 3)) + 1.0, rng.normal(size=25) + 4.0
    prior = NormalPrior(scale=0.8, biases=NormalPrior(scale=0.5))
    fitted, bias = coefficients(Regressor(Normal(scale=0.6), prior=prior, inference=Exact()).fit(X, y))
    design = np.column_stack([X, np.ones(25)])
    penalty = np.diag([0.6**2 / 0.8**2] * 3 + [0.6**2 / 0.5**2])
    theta = np.linalg.solve(design.T @ design + penalty, design.T @ y)
    np.testing.assert_allclose([*fitted[0], *bias], theta, atol=1e-10)


@pytest.mark.parametrize("prior", ["flat", NormalPrior(0.5)], ids=repr)
@pytest.mark.parametrize("posterior", ["point", "full"])
def test_weight_two_is_repetition_and_weight_zero_removal(posterior, prior, rng):
    X, y = rng.normal(size=(24, 3)), rng.normal(size=24)
    count = np.arange(24) % 3
    weighted = Regressor(prior=prior, inference=Exact(posterior)).fit(X, y, sample_weight=count)
    repeated = Regressor(prior=prior, inference=Exact(posterior)).fit(np.repeat(X, count, 0), np.repeat(y, count))
    ours, theirs = weighted.predict_dist(X), repeated.predict_dist(X)
    np.testing.assert_allclose(ours.mean, theirs.mean, rtol=1e-9)
    np.testing.assert_allclose(ours.stddev, theirs.stddev, rtol=1e-7)


@pytest.mark.parametrize("posterior", ["point", "full"])
def test_several_outputs_are_separate_fits_also_with_gaps(posterior, rng):
    X, Y = rng.normal(size=(30, 3)), rng.normal(size=(30, 4)) * [1.0, 10.0, 0.1, 1.0]
    Y[:7, 1] = Y[10:12, 3] = np.nan
    together = Regressor(prior=NormalPrior(1.0), inference=Exact(posterior)).fit(X, Y).predict_dist(X)
    for column in range(4):
        seen = ~np.isnan(Y[:, column])
        alone = Regressor(prior=NormalPrior(1.0), inference=Exact(posterior)).fit(X[seen], Y[seen, column])
        np.testing.assert_allclose(together.mean[:, column], alone.predict_dist(X).mean, rtol=1e-8)
        np.testing.assert_allclose(together.stddev[:, column], alone.predict_dist(X).stddev, rtol=1e-7)


def bayes(design, y, sigma, scales):
    """Posterior mean and covariance, and log p(y), of y ~ N(Aθ, σ²I), θ ~ N(0, diag(scales²))."""
    covariance = np.linalg.inv(design.T @ design / sigma**2 + np.diag(np.asarray(scales) ** -2.0))
    mean = covariance @ design.T @ y / sigma**2
    marginal = sigma**2 * np.eye(len(y)) + design @ np.diag(np.asarray(scales) ** 2) @ design.T
    return mean, covariance, multivariate_normal(np.zeros(len(y)), marginal).logpdf(y)


@pytest.mark.parametrize("shape", [(30, 4), (5, 9)])
@pytest.mark.parametrize("bias", [False, True])
def test_full_posterior_and_evidence_are_the_closed_forms(bias, shape, rng):
    X, y, sigma, s, s_bias = rng.normal(size=shape) + 0.5, rng.normal(size=shape[0]) + 1.0, 0.7, 1.3, 2.0
    prior = NormalPrior(s, biases=NormalPrior(s_bias))
    model = Regressor(Normal(scale=sigma), Linear(bias), prior, Exact("full")).fit(X, y)
    design, scales = X, [s] * shape[1]
    if bias:
        design, scales = np.column_stack([X, np.ones(len(X))]), [*scales, s_bias]
    mean, covariance, evidence = bayes(design, y, sigma, scales)
    weight, intercept = coefficients(model)
    np.testing.assert_allclose([*weight[0], *(intercept if bias else [])], mean, atol=1e-9)
    np.testing.assert_allclose(model.posterior_.covariance[0], covariance, atol=1e-9)
    assert model.posterior_.info["log_evidence"] == pytest.approx(evidence, abs=1e-8)
    predictive = model.predict_dist(X)
    np.testing.assert_allclose(predictive.variance, sigma**2 + np.einsum("ni,ij,nj->n", design, covariance, design))


def test_a_flat_bias_is_the_limit_of_a_wide_prior(rng):
    """Posterior: the limit. Evidence: the same, but for the width √(2π)·s of the bias's own prior.

    What is left of the prior falls as 1/s², and rounding in the evidence grows as s².
    """
    X, y, wide = rng.normal(size=(20, 3)), rng.normal(size=20) + 1.0, 3e3
    flat = Regressor(Normal(scale=0.7), prior=NormalPrior(1.3), inference=Exact("full")).fit(X, y)
    mean, covariance, evidence = bayes(np.column_stack([X, np.ones(20)]), y, 0.7, [1.3] * 3 + [wide])
    np.testing.assert_allclose(np.append(*coefficients(flat)), mean, atol=1e-6)
    np.testing.assert_allclose(flat.posterior_.covariance[0], covariance, atol=1e-6)
    assert flat.posterior_.info["log_evidence"] == pytest.approx(evidence + np.log(wide * np.sqrt(2 * np.pi)), abs=1e-6)


@pytest.mark.parametrize("s", [0.3, 1.0, 30.0])
def test_learned_noise_maximises_the_evidence(s, rng):
    X = rng.normal(size=(40, 3))
    y = X @ [1.0, -1.0, 0.3] + 0.5 * rng.normal(size=40)
    model = Regressor(network=Linear(bias=False), prior=NormalPrior(s), inference=Exact("full")).fit(X, y)
    grid = np.linspace(-3.0, 1.5, 40)  # log σ: the highest peak, then its top

    def loss(log_sigma):
        return -bayes(X, y, np.exp(log_sigma), [s] * 3)[2]

    start = min(grid, key=loss)
    peak = minimize_scalar(loss, bounds=(start - 0.2, start + 0.2), method="bounded", options={"xatol": 1e-10})
    assert model.posterior_.info["log_evidence"] == pytest.approx(-peak.fun, abs=1e-8)
    assert model.posterior_.parameters["shared"].item() == pytest.approx(peak.x, abs=1e-6)


@pytest.mark.parametrize(("posterior", "free"), [("full", 40 - 4), ("point", 40)])
def test_learned_noise_under_flat_weights_is_the_residual_variance(posterior, free, rng):
    """The evidence divides by n − p (unbiased), the most probable σ by n."""
    X = rng.normal(size=(40, 3))
    y = X @ [1.0, -1.0, 0.3] + rng.normal(size=40)
    weight, bias = least_squares(X, y)
    model = Regressor(inference=Exact(posterior)).fit(X, y)
    variance = np.exp(2 * model.posterior_.parameters["shared"].item())
    assert variance == pytest.approx(((y - X @ weight - bias) ** 2).sum() / free, rel=1e-9)


def test_predictive_coverage_is_what_it_says(seed, chances):
    """90 % intervals hold 90 % of 10,000 new targets, by t of 50 independent sets of 10 regressions.

    A false alarm in 1 of 10⁶ seeds. One standard error is 0.3 %: intervals without the uncertainty of the weights,
    which hold 88 %, fail.
    """
    rng = np.random.default_rng(seed)
    inside = []
    for _ in range(50):
        weight = rng.normal(size=(3, 10))
        X, new = rng.normal(size=(25, 3)), rng.normal(size=(20, 3))
        Y, truth = X @ weight + 0.5 * rng.normal(size=(25, 10)), new @ weight + 0.5 * rng.normal(size=(20, 10))
        model = Regressor(Normal(scale=0.5), Linear(bias=False), NormalPrior(1.0), Exact("full")).fit(X, Y)
        lower, upper = model.predict_interval(new, level=0.9)
        inside.append(((lower <= truth) & (truth <= upper)).ravel())
    assert chances(inside, 0.9) > 1e-6


def test_draws_have_the_moments_of_the_posterior(rng, seed):
    """40,000 draws: means within 5 standard errors, covariances within 0.04 of the largest, also over 5 of theirs."""
    X, Y = rng.normal(size=(15, 2)), rng.normal(size=(15, 2))
    posterior = Regressor(inference=Exact("full"), prior=NormalPrior(1.0)).fit(X, Y).posterior_
    assert isinstance(posterior, GaussianPosterior)
    draws = posterior.draw(40_000, torch.Generator().manual_seed(seed))
    assert len(draws) == 40_000
    table = torch.cat([draws.parameters["network.weight"], draws.parameters["network.bias"].unsqueeze(-1)], -1)
    for output, covariance in enumerate(posterior.covariance):
        mean = torch.cat(
            [posterior.parameters["network.weight"][0, output], posterior.parameters["network.bias"][0, [output]]]
        )
        error = covariance.diagonal().sqrt() / 200  # of a mean of 40,000
        assert bool(((table[:, output].mean(0) - mean).abs() < 5 * error).all())
        np.testing.assert_allclose(torch.cov(table[:, output].T), covariance, atol=0.04 * covariance.max().item())


def test_draws_predict_what_the_closed_form_predicts(rng, seed):
    """20,000 draws: means ± 0.0035 (at most 0.5/√20,000), variances ± 0.5 %; more than five of each are allowed."""
    X, y = rng.normal(size=(12, 2)), rng.normal(size=12)
    model = Regressor(Normal(scale=0.5), inference=Exact("full"), prior=NormalPrior(1.0)).fit(X, y)
    mixture = model.posterior_.draw(20_000, torch.Generator().manual_seed(seed)).predictive(
        Normal(scale=0.5), torch.from_numpy(X)
    )
    np.testing.assert_allclose(mixture.mean, model.predict_dist(X).mean, atol=0.02)
    np.testing.assert_allclose(mixture.variance, model.predict_dist(X).variance, rtol=0.03)


@pytest.mark.parametrize("columns", [(), (3,)])
def test_a_file_keeps_the_whole_posterior(columns, rng, tmp_path):
    X, y = rng.normal(size=(15, 2)), rng.normal(size=(15, *columns))
    model = Regressor(inference=Exact("full"), prior=NormalPrior(1.0)).fit(X, y)
    model.save(tmp_path / "model.likely")
    loaded = likely.load(tmp_path / "model.likely")
    assert isinstance(loaded.posterior_, GaussianPosterior)
    assert loaded.posterior_.info == model.posterior_.info
    for name in ("mean", "stddev"):
        assert torch.equal(getattr(loaded.predict_dist(X), name), getattr(model.predict_dist(X), name))


@pytest.mark.filterwarnings("ignore:Newton stopped after 100 steps")  # of a network; both fits end at the same bits
@pytest.mark.parametrize(
    ("likelihood", "network", "prior"),
    [
        (Poisson(), Linear(), "flat"),
        (Normal(scale="input"), Linear(), "flat"),
        (Normal(), Linear(), Laplace(1.0)),
        (Poisson(), MLP((2,), "tanh"), NormalPrior(0.5)),
    ],
    ids=repr,
)
@pytest.mark.parametrize("posterior", ["point", "full"])
def test_without_a_closed_form_newton_takes_over_and_says_so(posterior, likelihood, network, prior, rng):
    X = rng.normal(size=(40, 2))
    y = rng.poisson(np.exp(0.5 * X[:, 0])).astype(float)
    arguments = (likelihood, network, prior)
    with pytest.warns(ApproximationWarning, match=r"no closed form .* Say inference=Newton\(\)"):
        model = Regressor(*arguments, Exact(posterior), random_state=0).fit(X, y)
    newton = Regressor(*arguments, Newton(), random_state=0).fit(X, y)
    assert type(model.posterior_) is Posterior
    np.testing.assert_array_equal(model.predict(X), newton.predict(X))


def test_only_two_words_for_the_posterior():
    with pytest.raises(SpecError, match=r'Exact\(posterior=\'whole\'\): posterior must be "point" or "full"'):
        Exact("whole")


def test_learned_noise_is_integrated_out(rng):
    """With flat weights y | x is Student's t with n − p degrees of freedom and scale s√(1 + x̃ᵀ(X̃ᵀX̃)⁻¹x̃)."""
    X, y, new = rng.normal(size=(8, 2)), rng.normal(size=8), rng.normal(size=(5, 2))
    model = Regressor(inference=Exact("full")).fit(X, y)
    design, at = np.column_stack([X, np.ones(8)]), np.column_stack([new, np.ones(5)])
    theta, rest, *_ = np.linalg.lstsq(design, y, rcond=None)
    scale = np.sqrt(rest[0] / 5 * (1 + np.einsum("ni,ij,nj->n", at, np.linalg.inv(design.T @ design), at)))
    exact = stats.t(5, at @ theta, scale)
    low, high = model.predict_interval(new, 0.9)
    np.testing.assert_allclose(low, exact.ppf(0.05), rtol=1e-6)
    np.testing.assert_allclose(high, exact.ppf(0.95), rtol=1e-6)
    targets = rng.normal(size=5)
    np.testing.assert_allclose(model.log_prob(new, targets), exact.logpdf(targets), rtol=1e-6)
    np.testing.assert_allclose(model.predict(new), at @ theta, rtol=1e-9)


def test_intervals_of_eight_rows_cover_what_they_say(seed):
    """1,000 separate outputs: 90 % ± 4.7 % are five standard errors, a false alarm in 2 of 10⁶ seeds.

    With σ̂ for σ they cover 84.6 %.
    """
    rng = np.random.default_rng(seed)
    X, new, weight = rng.normal(size=(8, 2)), rng.normal(size=(1, 2)), rng.normal(size=(2, 1000))
    model = Regressor(inference=Exact("full")).fit(X, X @ weight + rng.normal(size=(8, 1000)))
    low, high = model.predict_interval(new, 0.9)
    target = new @ weight + rng.normal(size=(1, 1000))
    assert abs(((low <= target) & (target <= high)).mean() - 0.9) < 5 * np.sqrt(0.09 / 1000)


@pytest.mark.parametrize("scale", [1e3, 1e6])
def test_columns_of_very_different_size_all_count(scale):
    rng = np.random.default_rng(0)
    plain = rng.normal(size=(60, 3))
    y = plain @ [1.0, -2.0, 0.5] + 0.1 * rng.normal(size=60)
    units = np.array([scale, 1.0, 1 / scale])
    expected = Regressor().fit(plain, y).predict(plain)
    np.testing.assert_allclose(Regressor().fit(plain * units, y).predict(plain * units), expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("unit", [2.0**-70, 2.0**-100, 2.0**70])
def test_sigma_of_least_squares_is_in_the_units_of_y(unit, rng):
    """Charges in coulombs are near 1e-19: their σ is that of any numbers, in those units."""
    X, noise = rng.normal(size=(40, 2)), rng.normal(size=40)
    y = X.sum(1) + noise
    one, other = (Regressor().fit(X, own) for own in (y, unit * y))
    np.testing.assert_allclose(other.predict_dist(X).stddev, unit * one.predict_dist(X).stddev, rtol=1e-9)
    np.testing.assert_allclose(other.log_prob(X, unit * y) + np.log(unit), one.log_prob(X, y), rtol=1e-9, atol=1e-9)


def test_sigma_of_least_squares_is_that_of_small_differences(rng):
    """Of targets near 1e9 that differ by hundredths."""
    X = rng.normal(size=(200, 2))
    y = 1e9 + 0.01 * (X.sum(1) + rng.normal(size=200))
    residual = (
        y
        - 1e9
        - np.column_stack([X, np.ones(200)])
        @ np.linalg.lstsq(np.column_stack([X, np.ones(200)]), y - 1e9, rcond=None)[0]
    )
    assert Regressor().fit(X, y).constants_["scale"] == pytest.approx(residual.std(), rel=1e-3)
