"""Distributions as tables and log-probabilities, with the true −∞ where there is no mass."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy import stats
from torch.distributions import (
    Bernoulli,
    Binomial,
    Categorical,
    Dirichlet,
    Exponential,
    Normal,
    OneHotCategorical,
    Poisson,
)

from likely.core.errors import DataError
from likely.probability.density import as_distribution, as_table, draw, is_discrete, log_prob, outcomes

P = torch.tensor([0.2, 0.0, 0.8], dtype=torch.float64)


def test_all_outcomes_of_finite_distributions():
    """Probabilities of 0 have log −∞, which torch's own logits do not."""
    with np.errstate(divide="ignore"):
        expected = np.log(P.numpy())
    for distribution in (Categorical(P), OneHotCategorical(P)):
        np.testing.assert_allclose(outcomes(distribution).log_probs, expected, rtol=1e-12)
    assert outcomes(OneHotCategorical(P)).values.tolist() == np.eye(3).tolist()
    np.testing.assert_allclose(outcomes(Bernoulli(torch.tensor(0.3))).log_probs, np.log([0.7, 0.3]), rtol=1e-6)
    binomial = outcomes(Binomial(4, torch.tensor(0.3, dtype=torch.float64)))
    np.testing.assert_allclose(binomial.log_probs, stats.binom.logpmf(range(5), 4, 0.3), rtol=1e-12)
    assert outcomes(Poisson(2.0)) is None


def test_a_probability_that_underflows_keeps_its_logit():
    categorical = outcomes(Categorical(logits=torch.tensor([0.0, -2000.0], dtype=torch.float64)))
    np.testing.assert_allclose(categorical.log_probs, [0.0, -2000.0])


@pytest.mark.parametrize(
    ("distribution", "values", "expected"),
    [
        (Exponential(torch.tensor(2.0, dtype=torch.float64)), [-1.0, 0.5], [-math.inf, math.log(2) - 1]),
        (Categorical(P), [0.0, 1.0, 2.0, 3.0], [math.log(0.2), -math.inf, math.log(0.8), -math.inf]),
        (Dirichlet(torch.ones(2, dtype=torch.float64)), [[0.3, 0.7], [0.3, 0.3]], [0.0, -math.inf]),
    ],
)
def test_log_prob_is_minus_infinity_outside_the_support(distribution, values, expected):
    answer = log_prob(distribution, torch.tensor(values, dtype=torch.float64))
    np.testing.assert_allclose(answer, expected, rtol=1e-6, atol=1e-9)


def test_tables_are_checked_and_sum_to_one():
    assert as_table([1, 0], "p").tolist() == [1.0, 0.0]
    assert as_distribution([[0.1, 0.2], [0.3, 0.4]], "p").probs.tolist() == pytest.approx([0.1, 0.2, 0.3, 0.4])
    for wrong, text in (
        ([0.5, 0.4], r"p sums to 0\.9; probabilities sum to 1"),
        ([1.5, -0.5], "p must hold probabilities, which are 0 or more; found -0.5"),
        ("half", "p must be a torch distribution or a vector or table"),
        (Normal(torch.zeros(2), 1.0), r"p is a batch of \(2,\) distributions"),
    ):
        with pytest.raises(DataError, match=text):
            as_distribution(wrong, "p")


def test_draws_leave_the_global_seed_alone():
    before = torch.get_rng_state()
    first, second = (draw(Normal(0.0, 1.0), 5, 3) for _ in range(2))
    assert torch.equal(first, second)
    assert torch.equal(torch.get_rng_state(), before)
    with pytest.raises(DataError, match="draws must be"):
        draw(Normal(0.0, 1.0), 1, 0)
    assert [is_discrete(d) for d in (Normal(0.0, 1.0), Poisson(1.0))] == [False, True]
