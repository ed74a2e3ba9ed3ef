from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import integrate, stats

from likely.core.errors import DataError, SpecError
from likely.inference import beta_binomial

CASES = [(0, 0, 1.0, 1.0), (7, 10, 1.0, 1.0), (0, 5, 0.5, 0.5), (5, 5, 2.0, 3.0), (3, 40, 4.5, 0.25)]


@pytest.mark.parametrize(("successes", "trials", "a", "b"), CASES)
def test_posterior_is_prior_times_likelihood(successes, trials, a, b):
    shares = np.linspace(0.01, 0.99, 50)
    updated = beta_binomial(successes, trials, a, b)
    unnormalised = (
        stats.beta(a, b).logpdf(shares) + successes * np.log(shares) + (trials - successes) * np.log1p(-shares)
    )
    posterior = updated.posterior.log_prob(torch.from_numpy(shares)).numpy()
    np.testing.assert_allclose(unnormalised - posterior, updated.log_evidence, rtol=1e-10, atol=1e-10)  # Bayes' rule


@pytest.mark.parametrize(("successes", "trials"), [(7, 10), (0, 5), (12, 12)])
def test_evidence_is_the_integral_over_the_share(successes, trials):
    prior = stats.beta(2.0, 3.0)
    whole, _ = integrate.quad(lambda t: prior.pdf(t) * t**successes * (1 - t) ** (trials - successes), 0, 1)
    assert beta_binomial(successes, trials, 2.0, 3.0).log_evidence == pytest.approx(np.log(whole), abs=1e-9)


@pytest.mark.parametrize(("successes", "trials", "a", "b"), CASES)
def test_predictive_is_scipys_beta_binomial(successes, trials, a, b):
    predictive = beta_binomial(successes, trials, a, b).predictive(12)
    peer = stats.betabinom(12, a + successes, b + trials - successes)
    np.testing.assert_allclose(predictive.probs.numpy(), peer.pmf(np.arange(13)), rtol=1e-9, atol=1e-15)
    np.testing.assert_allclose(predictive.logits.numpy(), peer.logpmf(np.arange(13)), atol=1e-9)


def test_evidence_chains_over_the_trials():
    """log p(both halves) = log p(first) + log p(second | first), whatever the order."""
    first = beta_binomial(3, 8, 1.5, 2.5)
    a, b = first.posterior.concentration1.item(), first.posterior.concentration0.item()
    assert beta_binomial(7, 13, 1.5, 2.5).log_evidence == pytest.approx(
        first.log_evidence + beta_binomial(4, 5, a, b).log_evidence
    )


def test_no_further_trials_have_no_successes():
    assert beta_binomial(2, 3).predictive(0).probs.tolist() == [1.0]


def test_many_trials_keep_their_digits():
    updated = beta_binomial(300_000, 1_000_000)
    assert updated.posterior.mean.item() == pytest.approx(300_001 / 1_000_002, rel=1e-12)
    assert updated.predictive(1).probs[1].item() == pytest.approx(300_001 / 1_000_002, rel=1e-8)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((5, 3), DataError, "successes must be at most the number of trials; found 5 in 3"),
        ((-1, 3), DataError, "successes must be an integer, 0 or more; found -1"),
        ((1, 2.5), DataError, "trials must be an integer, 0 or more; found 2.5"),
        ((1, True), DataError, "trials must be an integer"),
        ((1, 2, 0.0), SpecError, "a must be a positive number; found 0.0"),
        ((1, 2, 1.0, float("inf")), SpecError, "b must be a positive number; found inf"),
    ],
)
def test_bad_arguments_are_named(arguments, error, message):
    with pytest.raises(error, match=message):
        beta_binomial(*arguments)


def test_a_negative_number_of_further_trials_is_refused():
    with pytest.raises(DataError, match="n must be an integer, 0 or more; found -2"):
        beta_binomial(1, 2).predictive(-2)
