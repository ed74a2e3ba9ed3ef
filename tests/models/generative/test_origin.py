"""The mean of the rows that a noisy one may have come from."""

from __future__ import annotations

import math

import torch

from likely.core.random import isolated
from likely.models.generative.origin import origin


def test_a_mean_over_origins_has_the_expectation_of_the_one_it_was(seed):
    """Over 3,000 batches of 4 rows, moments of the two agree within 5 standard errors (3 of them: false alarm 2e-6)."""
    with isolated(seed):
        x, z = torch.randn(3000, 4, 2, dtype=torch.float64).sign(), torch.randn(3000, 4, 2, dtype=torch.float64)
    t = torch.tensor([0.2, 0.4, 0.5, 0.7], dtype=torch.float64)
    at = t[:, None] * x + (1 - t)[:, None] * z
    mean = torch.vmap(lambda a, b: origin(a, b, t, 1 - t))(at, x)
    for moment in (mean - x, (mean - x) * at, (mean - x) * at.tanh()):
        own = moment.sum((1, 2))
        assert abs(float(own.mean())) < 5 * float(own.std()) / math.sqrt(3000)
    assert float(mean.var()) < 0.9 * float(x.var())


def test_rows_with_other_conditions_are_no_origins():
    x = torch.tensor([[0.0], [1.0], [2.0]], dtype=torch.float64)
    at, t = torch.ones(3, 1, dtype=torch.float64), torch.full((3,), 0.5, dtype=torch.float64)
    told = torch.tensor([[0.0, 1.0], [1.0, 0.0], [0.0, 1.0]], dtype=torch.float64)
    expected = 2 / (1 + math.exp(-2.0))  # of 0 and 2, with ‖1 − 0‖² and ‖1 − 1‖² over 2 (1/2)²
    torch.testing.assert_close(origin(at, x, t, 1 - t, told).ravel(), torch.tensor([expected, 1.0, expected]).double())
