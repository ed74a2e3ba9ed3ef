"""Sufficient statistics, and the distributions of many components at once, for every likelihood by its registration."""

from __future__ import annotations

import pytest
import torch

from likely.core.spec import registered
from likely.likelihoods import Beta, Categorical, Gamma, Likelihood, MultivariateNormal, Normal, Poisson
from likely.likelihoods.mle import maximise

EXAMPLES = [
    *(cls.example() for cls in registered(Likelihood).values()),
    *(Normal(scale=0.5), Gamma(concentration="input"), Beta(precision=5.0), Categorical(classes=4)),
]
WITHOUT = ("StudentT", "Laplace", "NegativeBinomial", "NormalMixture", "Product", "ZeroInflated")
"""Families for which no statistics of fixed size are sufficient."""
NUMBERS = [family for family in EXAMPLES if not family.event_dim]
EXPONENTIAL = [family for family in EXAMPLES if type(family).__name__ not in WITHOUT]


def settled(likelihood):
    """Labels know how many there are."""
    target = likelihood.example_target()
    known = likelihood.get_params(deep=False)
    return likelihood.replace(classes=target.classes) if "classes" in known else likelihood


def middle(y):
    return y.mean(0)


def has_statistics(likelihood, y):
    return settled(likelihood).statistics(y, middle(y)) is not None


def weights(n, k, generator_seed=0):
    return torch.rand(n, k, dtype=torch.float64, generator=torch.Generator().manual_seed(generator_seed)) + 0.01


# --- many components at once ----------------------------------------------------------------------------------------
def test_each_log_prob_is_log_prob_of_all_pairs(likelihood, draw):
    eta, y = draw(likelihood, 12)
    table = likelihood.each_log_prob(eta[:5], y)
    assert table.shape == (12, 5)
    torch.testing.assert_close(table, Likelihood.each_log_prob(likelihood, eta[:5], y), atol=1e-10, rtol=1e-10)


@pytest.mark.parametrize("family", NUMBERS, ids=repr)
def test_row_log_prob_is_the_sum_over_targets(family, draw):
    eta, y = draw(family, 24)
    rows, etas = y.reshape(8, 3), eta[:12].reshape(4, 3, -1)
    expected = sum(family.each_log_prob(etas[:, j], rows[:, j]) for j in range(3))
    torch.testing.assert_close(family.row_log_prob(etas, rows), expected, atol=1e-10, rtol=1e-10)
    torch.testing.assert_close(Likelihood.row_log_prob(family, etas, rows), expected, atol=1e-10, rtol=1e-10)


# --- sufficient statistics ------------------------------------------------------------------------------------------
def test_which_likelihoods_have_statistics(likelihood, draw):
    """Those of exponential families; a Student t, a Laplace and a negative binomial have none of fixed size."""
    _, y = draw(likelihood, 10)
    assert has_statistics(likelihood, y) == (type(likelihood).__name__ not in WITHOUT)


def test_the_estimate_follows_from_the_means_of_the_statistics(likelihood, draw):
    _, y = draw(likelihood, 300, same=True)
    likelihood = settled(likelihood)
    if not has_statistics(likelihood, y):
        with pytest.raises(NotImplementedError, match="has no sufficient statistics"):
            likelihood.from_statistics(torch.zeros(1, 1), torch.zeros(()))
        return
    weight = weights(300, 4)
    share = weight / weight.sum(0)
    mean = share.T @ likelihood.statistics(y, middle(y))
    estimate = likelihood.from_statistics(mean, middle(y))
    torch.testing.assert_close(estimate, likelihood.weighted_mle(y, weight), atol=1e-8, rtol=1e-8)


@pytest.mark.parametrize("family", EXPONENTIAL, ids=repr)
def test_the_estimate_from_statistics_is_the_numeric_optimum(family, draw):
    _, y = draw(family, 200, same=True)
    likelihood = settled(family)
    weight = weights(200, 3)
    share = weight / weight.sum(0)
    estimate = likelihood.from_statistics(share.T @ likelihood.statistics(y, middle(y)), middle(y))
    numeric = maximise(likelihood, y, weight)

    def value(eta):
        return (share * likelihood.each_log_prob(eta, y)).sum(0)

    gain = value(estimate) - value(numeric)
    assert bool((gain.abs() < 1e-9).all())
    rows = [likelihood.each_log_prob(eta, y) for eta in (estimate, numeric)]
    torch.testing.assert_close(rows[0], rows[1], atol=1e-5, rtol=0)


@pytest.mark.parametrize("family", EXPONENTIAL, ids=repr)
def test_leading_axes_are_free(family, draw):
    """Statistics of many columns at once are those of each, with an origin for each."""
    _, y = draw(family, 60, same=True)
    likelihood = settled(family)
    columns = y.reshape(20, 3, *y.shape[1:])
    origin = columns.mean(0)
    together = likelihood.statistics(columns, origin)
    by_column = [likelihood.statistics(columns[:, j], origin[j]) for j in range(3)]
    torch.testing.assert_close(together, torch.stack(by_column, 1))
    mean = together.unflatten(0, (4, 5)).mean(1)  # (4, 3, m)
    estimate = likelihood.from_statistics(mean, origin)
    for j in range(3):
        torch.testing.assert_close(estimate[:, j], likelihood.from_statistics(mean[:, j], origin[j]))


@pytest.mark.parametrize(
    ("family", "far"),
    [(Normal(), 1e6), (Normal(), -1e9), (MultivariateNormal(), 1e6), (Gamma(), 1e5), (Gamma(), 1e-100)],
    ids=repr,
)
def test_an_origin_in_the_data_keeps_the_digits(family, far):
    """Data with a spread of 1 around `far` (for Gamma: of a millionth of it) have the variance that two passes find."""
    generator = torch.Generator().manual_seed(0)
    noise = torch.randn(500, *((2,) if family.event_dim else ()), dtype=torch.float64, generator=generator)
    y = far * (1 + 1e-6 * noise) if isinstance(family, Gamma) else far + noise
    origin = middle(y) + 0.3 * (y[0] - middle(y))
    estimate = family.from_statistics(family.statistics(y, origin).mean(0, keepdim=True), origin)
    variance = y.var(0, correction=0)
    if isinstance(family, Gamma):
        expected = -2 * torch.log(variance.sqrt() / y.mean())  # log α ≈ log μ²/σ², up to order 1/√α
        torch.testing.assert_close(estimate[0, 1], expected, atol=1e-5, rtol=0)
        torch.testing.assert_close(estimate[0, 0].exp(), y.mean(), atol=0, rtol=1e-12)
    else:
        spread = family.distribution(estimate).variance[0]
        torch.testing.assert_close(spread, variance, atol=0, rtol=1e-9)


@pytest.mark.parametrize("family", [Normal(), Gamma(), Beta(), Poisson(), Categorical(3)], ids=repr)
def test_equal_values_have_finite_estimates(family):
    y = torch.full((10,), 1.0 if family.labels or isinstance(family, Poisson) else 0.3, dtype=torch.float64)
    mean = family.statistics(y, y[0]).mean(0, keepdim=True)
    eta = family.from_statistics(mean, y[0])
    assert bool(eta.isfinite().all())
    assert bool(family.log_prob(eta, y[:1]).isfinite().all())


def test_tiny_values_of_a_gamma_keep_their_logarithms():
    """α = 0.02 gives values down to 1e-100, far below what 1 + (y − origin)/origin can hold."""
    generator = torch.Generator().manual_seed(0)
    y = torch.logspace(-100, 0, 200, dtype=torch.float64)
    y = y[torch.randperm(200, generator=generator)]
    estimate = Gamma().from_statistics(Gamma().statistics(y, y.mean()).mean(0, keepdim=True), y.mean())
    torch.testing.assert_close(
        estimate[0], maximise(Gamma(), y, torch.ones(200, dtype=torch.float64)), rtol=1e-8, atol=0
    )


@pytest.mark.parametrize("concentration", [1e-3, 0.1, 1.0, 49.0, 51.0, 1e4, 1e9])
def test_the_concentration_of_a_gamma_solves_its_equation(concentration):
    """E[y] = 1 and E[log y] = ψ(α) − log α are the statistics of Gamma(α) itself."""
    alpha = torch.tensor(concentration, dtype=torch.float64)
    # log α − ψ(α) without cancellation: its integral form would do; here Stirling's series where α is large
    series = 1 / (2 * alpha) + 1 / (12 * alpha**2) - 1 / (120 * alpha**4) + 1 / (252 * alpha**6)
    gap = alpha.log() - torch.digamma(alpha) if concentration < 50 else series
    mean = torch.stack([torch.zeros_like(gap), -gap]).unsqueeze(0)
    log_alpha = Gamma().from_statistics(mean, torch.ones((), dtype=torch.float64))[0, 1]
    torch.testing.assert_close(log_alpha, alpha.log(), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize(
    ("a", "b"), [(0.01, 0.02), (1e-3, 5.0), (0.3, 1e-4), (1.0, 1.0), (2.0, 5.0), (300.0, 0.5), (1e4, 3e4)]
)
def test_the_estimate_of_a_beta_solves_its_equations(a, b):
    """E[log y] = ψ(a) − ψ(a + b) and E[log(1 − y)] = ψ(b) − ψ(a + b) are the statistics of Beta(a, b) itself."""
    first, second = torch.tensor(a, dtype=torch.float64), torch.tensor(b, dtype=torch.float64)
    mean = torch.stack([torch.digamma(first), torch.digamma(second)]) - torch.digamma(first + second)
    logit, log_precision = Beta().from_statistics(mean.unsqueeze(0), mean[0])[0]
    torch.testing.assert_close(logit, (first / second).log(), rtol=1e-7, atol=1e-7)
    torch.testing.assert_close(log_precision, (first + second).log(), rtol=1e-7, atol=1e-7)
