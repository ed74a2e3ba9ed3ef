"""Bounds on log p(x): both forms of the ELBO, and importance weights, on a model whose log p is known."""

from __future__ import annotations

import math

import pytest
import torch

from likely.core.errors import SpecError
from likely.models.generative.bounds import ELBO, IWAE
from likely.models.generative.normals import divergence, drawn, log_normal, product, to_standard

ZERO = torch.zeros(2, dtype=torch.float64)


def known_model(draws, seed):
    """z ~ N(0, I), x | z ~ N(z, I) at x = (1, −1), a q that is off: log p(x | z), log p(z) − log q(z), log p(x), q."""
    torch.manual_seed(seed)
    x = torch.tensor([1.0, -1.0], dtype=torch.float64)
    mean, log_scale = 0.3 * x, torch.full_like(x, -0.5)
    z = drawn(mean, log_scale, draws, 1)
    evidence = log_normal(x, ZERO, ZERO + 0.5 * math.log(2.0))
    return (
        log_normal(x, z, ZERO),
        log_normal(z, ZERO, ZERO) - log_normal(z, mean, log_scale),
        evidence,
        (mean, log_scale),
    )


def test_divergences_are_the_means_of_log_ratios(seed):
    """The mean of 200,000 draws is within 6 standard errors: false alarm below 1e-8."""
    torch.manual_seed(seed)
    mean, log_scale = torch.randn(3, dtype=torch.float64), 0.5 * torch.randn(3, dtype=torch.float64)
    other, other_scale = torch.randn(3, dtype=torch.float64), 0.5 * torch.randn(3, dtype=torch.float64)
    z = drawn(mean, log_scale, 200_000)
    for to, to_scale in ((other, other_scale), (torch.zeros_like(mean), torch.zeros_like(mean))):
        ratios = log_normal(z, mean, log_scale) - log_normal(z, to, to_scale)
        error = ratios.std() / math.sqrt(len(ratios))
        assert abs(ratios.mean() - divergence(mean, log_scale, to, to_scale)) < 6 * error
    torch.testing.assert_close(to_standard(mean, log_scale), divergence(mean, log_scale, 0 * mean, 0 * mean))


def test_a_product_of_normals_has_the_sum_of_their_precisions():
    mean, log_scale, other, other_scale = torch.randn(4, 5, dtype=torch.float64).unbind()
    joint, joint_scale = product(mean, log_scale, other, other_scale)
    z = torch.randn(7, 5, dtype=torch.float64)
    gaps = log_normal(z, mean, log_scale) + log_normal(z, other, other_scale) - log_normal(z, joint, joint_scale)
    torch.testing.assert_close(gaps, gaps[:1].expand(7))  # densities differ by a constant


def test_both_forms_of_the_elbo_have_one_mean(seed):
    """The mean of 200,000 draws is within 6 standard errors: false alarm below 1e-8."""
    likelihood, ratio, _, (mean, log_scale) = known_model(200_000, seed)
    by_draws = ELBO(kl="draws").of(likelihood, ratio)
    closed = ELBO().of(likelihood, -to_standard(mean, log_scale))
    error = ratio.std() / math.sqrt(len(ratio))
    assert abs(float(by_draws - closed)) < 6 * error


def test_bounds_rise_with_the_number_of_draws_to_log_p(seed):
    """Means of 4,000 bounds each, which differ by 6 standard errors or more in expectation: one alarm in 10⁸ seeds.

    None exceeds log p by 6 standard errors.
    """
    rows = 40_000
    values = []
    for k in (1, 10, 100):
        likelihood, ratio, evidence, _ = known_model(rows * k // 10, 1000 * seed + k)
        own = IWAE(k).of(*(part.view(k, -1) for part in (likelihood, ratio)))
        values.append((float(own.mean()), float(own.std() / math.sqrt(len(own)))))
    assert values[0][0] < values[1][0] < values[2][0]
    assert values[-1][0] <= float(evidence) + 6 * values[-1][1]
    assert float(evidence) - values[-1][0] < 0.02


def test_beta_weighs_the_code():
    likelihood, ratio = torch.tensor([[-3.0]]), torch.tensor([[-2.0]])
    assert ELBO(beta=0.5).of(likelihood, ratio).item() == -4.0
    assert ELBO().of(likelihood, ratio) == IWAE(1).of(likelihood, ratio)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ELBO(beta=-1.0), "beta must be 0 or more"),
        (lambda: ELBO(kl="exact"), 'kl must be "analytic" or "draws"'),
        (lambda: IWAE(0), "k must be a positive integer"),
    ],
)
def test_bad_values_are_named(make, message):
    with pytest.raises(SpecError, match=message):
        make()
