"""What a regressor answers: every verb is a question put to one predictive distribution."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch
from scipy import stats
from sklearn.metrics import r2_score

import likely
from likely import Regressor
from likely.core.errors import DataError, LikelyWarning, SpecError
from likely.inference import MAP, Ensemble, Exact
from likely.likelihoods import (
    Binomial,
    Exponential,
    Gamma,
    MultivariateNormal,
    NegativeBinomial,
    Normal,
    Poisson,
    Product,
    StudentT,
)
from likely.networks import MLP
from likely.optim import Adam
from likely.probability.quantiles import cdf

ENSEMBLE = Ensemble(3, by=MAP(Adam(0.02), epochs=60, batch_size=None))


def draw(likelihood, rows, seed):
    """x uniform on [−1, 1], and y from the likelihood at η₁ = ½ + x, other numbers of η 0: truth known, any family."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        x = 2 * torch.rand(rows, 1, dtype=torch.float64) - 1
        eta = torch.zeros(rows, likelihood.size(likelihood.example_target()), dtype=torch.float64)
        eta[:, 0] = 0.5 + x[:, 0]
        return x.numpy(), likelihood.distribution(eta).sample().numpy()


FAMILIES = [
    Normal(),
    Normal(scale="input"),
    StudentT(),
    Gamma(),
    Exponential(),
    Poisson(),
    NegativeBinomial(),
    Binomial(total=5),
]


@pytest.mark.parametrize("likelihood", FAMILIES, ids=repr)
def test_the_verbs_agree_with_one_distribution(likelihood):
    X, y = draw(likelihood, 200, 0)
    model = Regressor(likelihood).fit(X, y)
    forecast = model.predict_dist(X)
    np.testing.assert_array_equal(model.predict(X), forecast.mean.numpy())
    np.testing.assert_allclose(model.log_prob(X, y), forecast.log_prob(torch.tensor(y)).numpy(), rtol=1e-12)
    lower, upper = model.predict_interval(X, level=0.8)
    assert (lower <= upper).all()
    low, high = cdf(forecast, torch.tensor(lower)).numpy(), cdf(forecast, torch.tensor(upper)).numpy()
    if forecast.support.is_discrete:  # the smallest y with P(Y ≤ y) ≥ p
        assert (low >= 0.1 - 1e-12).all()
        assert (high >= 0.9 - 1e-12).all()
        assert (cdf(forecast, torch.tensor(upper - 1)).numpy() < 0.9).all()
    else:
        np.testing.assert_allclose([low.mean(), high.mean()], [0.1, 0.9], atol=1e-9)
    assert model.score(X, y) == pytest.approx(r2_score(y, model.predict(X)))


@pytest.mark.parametrize(
    ("likelihood", "network", "inference"),
    [
        (Normal(), "linear", "auto"),
        (Poisson(), "linear", "auto"),
        (Gamma(), "linear", "auto"),
        (StudentT(), "linear", "auto"),
        (Normal(), MLP((16,)), ENSEMBLE),
        (Poisson(), MLP((16,)), ENSEMBLE),
    ],
    ids=str,
)
def test_intervals_hold_what_they_promise(likelihood, network, inference, seed):
    """Of 4,000 new targets, the fraction inside 90 % intervals is that of the truth. Its standard error is 0.0047, that
    of an interval fitted on 4,000 rows about as large, and members that differ widen it a little (the largest gap in 50
    seeds was 0.031): one above 0.04 (6 of both) has probability below 1e-8 for an interval that is right.
    """
    X, y = draw(likelihood, 4000, 2 * seed)
    fresh, targets = draw(likelihood, 4000, 2 * seed + 1)
    model = Regressor(likelihood, network, inference=inference, random_state=seed).fit(X, y)
    lower, upper = model.predict_interval(fresh)
    forecast = model.predict_dist(fresh)
    promise = np.full(len(fresh), 0.9)
    if forecast.support.is_discrete:  # then an interval of integers holds somewhat more
        promise = (cdf(forecast, torch.tensor(upper)) - cdf(forecast, torch.tensor(lower - 1))).numpy()
        assert (promise >= 0.9 - 1e-6).all()
    inside = (lower <= targets) & (targets <= upper)
    assert abs(inside.mean() - promise.mean()) < 0.04


@pytest.mark.parametrize("inference", ["auto", ENSEMBLE], ids=["one", "ensemble"])
@pytest.mark.parametrize("likelihood", [Normal(), Poisson(), Gamma()], ids=repr)
def test_samples_have_the_moments_of_the_distribution(likelihood, inference, seed):
    """20,000 draws per row: means within 5 standard errors, for 6 × 5 rows a false alarm has probability below 2e-5."""
    X, y = draw(likelihood, 300, 3)
    network = "linear" if inference == "auto" else MLP((8,))
    model = Regressor(likelihood, network, inference=inference, random_state=seed).fit(X, y)
    forecast = model.predict_dist(X[:5])
    draws = model.sample(X[:5], n=20_000, random_state=seed + 1)
    assert draws.shape == (20_000, 5)
    mean, variance = forecast.mean.numpy(), forecast.variance.numpy()
    assert (np.abs(draws.mean(0) - mean) < 5 * np.sqrt(variance / 20_000)).all()
    fourth = ((draws - draws.mean(0)) ** 4).mean(0)
    assert (np.abs(draws.var(0) - variance) < 5 * np.sqrt((fourth - variance**2) / 20_000)).all()
    np.testing.assert_array_equal(draws, model.sample(X[:5], n=20_000, random_state=seed + 1))


def test_an_ensembles_distribution_is_the_average_of_its_members():
    X, y = draw(Normal(), 200, 4)
    model = Regressor(network=MLP((8,)), inference=ENSEMBLE, random_state=0).fit(X, y)
    members = [
        model._likelihood().distribution(model.posterior_.module_of(i)(torch.tensor(X, dtype=torch.float32)))
        for i in range(3)
    ]
    means = torch.stack([member.mean for member in members])
    np.testing.assert_allclose(model.predict(X), means.mean(0).numpy(), rtol=1e-5, atol=1e-6)
    densities = torch.stack([member.log_prob(torch.tensor(y)).exp() for member in members])
    np.testing.assert_allclose(model.log_prob(X, y), densities.mean(0).log().numpy(), rtol=1e-4, atol=1e-5)
    spread = model.predict_dist(X).variance
    within = torch.stack([member.variance for member in members]).mean(0)
    np.testing.assert_allclose(spread, within + means.var(0, correction=0), rtol=1e-4)


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("likelihood", [Normal(), Poisson(), Binomial(total=5)], ids=repr)
def test_residuals_of_a_canonical_link_are_orthogonal_to_inputs(likelihood, weighted):
    """∇ −log p = Xᵀ(mean − y) for canonical links: it is 0 at the optimum, for each column and the intercept."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(150, 3))
    eta = torch.tensor(X @ [0.4, -0.3, 0.2]).unsqueeze(-1)
    with torch.random.fork_rng():
        torch.manual_seed(5)
        known = likelihood.distribution(torch.cat([eta, torch.zeros_like(eta)], -1)[..., : likelihood.size(None)])
        y = known.sample().numpy()
    weight = rng.uniform(0.5, 2, size=150) if weighted else np.ones(150)
    model = Regressor(likelihood).fit(X, y, sample_weight=weight if weighted else None)
    residual = weight * (model.predict(X) - y)
    design = np.column_stack([X, np.ones(150)])
    np.testing.assert_allclose(design.T @ residual, 0, atol=1e-8)


def test_closed_form_agrees_with_numpy():
    rng = np.random.default_rng(0)
    X, weight = rng.normal(size=(60, 4)), rng.uniform(size=60)
    y = rng.normal(size=60)
    design = np.column_stack([X, np.ones(60)])
    root = np.sqrt(weight)
    theta = np.linalg.lstsq(design * root[:, None], y * root)[0]
    model = Regressor().fit(X, y, sample_weight=weight)
    np.testing.assert_allclose(model.predict(X), design @ theta, rtol=1e-10)
    sigma = np.sqrt((weight * (y - design @ theta) ** 2).sum() / weight.sum())
    np.testing.assert_allclose(model.log_prob(X, y), stats.norm.logpdf(y, design @ theta, sigma), rtol=1e-10)


@pytest.mark.parametrize("likelihood", [Normal(), StudentT(), Poisson()], ids=repr)
def test_a_missing_target_is_a_row_left_out(likelihood):
    X, y = draw(likelihood, 120, 6)
    gaps = y.copy()
    gaps[::4] = np.nan
    kept = ~np.isnan(gaps)
    model, alone = Regressor(likelihood).fit(X, gaps), Regressor(likelihood).fit(X[kept], y[kept])
    np.testing.assert_allclose(model.predict(X), alone.predict(X), rtol=1e-6)
    assert (model.log_prob(X, gaps)[::4] == 0).all()
    np.testing.assert_allclose(model.log_prob(X, gaps)[kept], alone.log_prob(X[kept], y[kept]), rtol=1e-5)
    assert model.score(X, gaps) == pytest.approx(alone.score(X[kept], y[kept]), rel=1e-6)


def test_score_averages_outputs_and_weights_rows_as_scikit_learn_does():
    rng = np.random.default_rng(7)
    X, Y, weight = rng.normal(size=(50, 2)), rng.normal(size=(50, 3)), rng.uniform(size=50)
    model = Regressor().fit(X, Y)
    assert model.score(X, Y, weight) == pytest.approx(r2_score(Y, model.predict(X), sample_weight=weight))
    with pytest.raises(DataError, match="y has no target to score: every one is missing"):
        model.score(X, np.full((50, 3), np.nan))


def test_vectors_are_one_target_and_keep_their_length(tmp_path):
    rng = np.random.default_rng(8)
    X = rng.normal(size=(80, 2))
    Y = X @ rng.normal(size=(2, 2)) + rng.multivariate_normal([0, 0], [[1, 0.8], [0.8, 1]], size=80)
    model = Regressor(MultivariateNormal()).fit(X, Y)
    assert model.positions_ == ()
    assert model.predict(X).shape == (80, 2)
    residual = Y - model.predict(X)
    covariance = model.predict_dist(X[:1]).covariance_matrix[0].numpy()
    np.testing.assert_allclose(covariance, residual.T @ residual / 80, rtol=1e-5)
    with pytest.raises(DataError, match=r"y has shape \(80, 3\); the model was fitted on targets \(n, 2\)"):
        model.log_prob(X, rng.normal(size=(80, 3)))
    with pytest.raises(DataError, match=r"y has shape \(80,\); MultivariateNormal\(\) needs a vector for each row"):
        Regressor(MultivariateNormal()).fit(X, Y[:, 0])
    model.save(tmp_path / "vectors.likely")
    np.testing.assert_array_equal(likely.load(tmp_path / "vectors.likely").predict(X), model.predict(X))


def test_parts_of_a_product_may_be_missing_one_by_one():
    """Parts are independent given x, so each is the model of its own column where it is seen."""
    rng = np.random.default_rng(9)
    X = rng.normal(size=(100, 2))
    Y = np.column_stack([X[:, 0] + rng.normal(size=100), rng.poisson(np.exp(0.3 * X[:, 1]))])
    Y[::2, 0], Y[1::2, 1] = np.nan, np.nan  # every row lacks one of the two
    model = Regressor(Product({"height": Normal(), "visits": Poisson()})).fit(X, Y)
    np.testing.assert_allclose(model.predict(X)[:, 0], Regressor().fit(X[1::2], Y[1::2, 0]).predict(X), rtol=1e-5)
    counts = Regressor(Poisson()).fit(X[::2], Y[::2, 1])
    np.testing.assert_allclose(model.predict(X)[:, 1], counts.predict(X), rtol=1e-5)


def test_classes_are_not_for_a_regressor():
    with pytest.raises(SpecError, match=r"likelihood=Categorical\(\) describes classes, not numbers; use Classifier"):
        Regressor("categorical").fit([[0.0], [1.0]], [0, 1])


def test_a_known_scale_is_kept():
    X, y = draw(Normal(), 100, 10)
    model = Regressor(Normal(scale=0.25), inference=Exact()).fit(X, y)
    np.testing.assert_allclose(model.predict_dist(X).stddev, 0.25)


def test_a_network_has_no_coefficients():
    X, y = draw(Normal(), 50, 12)
    for model in (Regressor(), Regressor(network=MLP((4,)), inference=MAP(epochs=1)).fit(X, y)):
        with pytest.raises(AttributeError, match="Regressor has coefficients once it is fitted with a linear network"):
            model.coef_  # noqa: B018


def test_a_target_that_is_the_same_everywhere_is_noticed():
    X = np.arange(8.0).reshape(4, 2)
    with pytest.warns(LikelyWarning, match=r"y is 3\.0 in every row, so there is nothing to explain"):
        model = Regressor().fit(X, [3.0, 3.0, np.nan, 3.0])
    np.testing.assert_allclose(model.predict(X), 3.0, rtol=1e-6)


def test_a_target_that_decides_the_fit_is_named():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y = X.sum(1) + rng.normal(size=60)
    typo = y.copy()
    typo[7] = 5000.0
    words = r"1 of the 60 targets in y has .* % of their squares .*furthest is 5000 at row 7\): least squares"
    with pytest.warns(LikelyWarning, match=words):
        Regressor().fit(X, typo)
    with pytest.warns(LikelyWarning, match="column 1 of y"):
        Regressor().fit(X, np.column_stack([y, typo]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Regressor().fit(X, y)
        Regressor().fit(X, typo, sample_weight=(typo < 100) * 1.0)
        Regressor().fit(X, np.column_stack([y, typo]), sample_weight=np.column_stack([y < np.inf, typo < 100]) * 1.0)
        Regressor(StudentT()).fit(X, typo)
        Regressor(Normal(1.0)).fit(X, typo)
        Regressor().fit(X, (np.arange(60) == 7) * 1.0)  # a rare event is not an error
