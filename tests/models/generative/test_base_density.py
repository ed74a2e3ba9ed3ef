"""Where a flow ends: densities that integrate to 1, and draws that follow them."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import stats

from likely.core.random import drawing
from likely.models.generative.base_density import BASES, START, BaseDensity

PEERS = {"normal": stats.norm(), "logistic": stats.logistic(), "student_t": stats.t(START)}


@pytest.mark.parametrize("name", BASES)
def test_log_p_is_that_of_scipy(name):
    z = torch.linspace(-30, 30, 101, dtype=torch.float64)[:, None]
    density = BaseDensity(name, (1,)).double()
    np.testing.assert_allclose(density.log_prob(z).detach(), PEERS[name].logpdf(z[:, 0]), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", BASES)
def test_draws_follow_the_density(name, seed):
    """Kolmogorov and Smirnov at 1e-6: one false alarm in a million."""
    density = BaseDensity(name, (2, 3)).double()
    with drawing(seed):
        z = density.sample(1_000, torch.zeros(1, dtype=torch.float64))
    assert z.shape == (1_000, 2, 3)
    assert stats.kstest(z.ravel().numpy(), PEERS[name].cdf).pvalue > 1e-6


def test_the_tails_of_a_student_t_are_learned():
    density = BaseDensity("student_t", (1,))
    density.log_prob(torch.full((1, 1), 50.0)).sum().backward()
    assert float(density.freedom.grad) < 0  # far rows ask for heavier tails
