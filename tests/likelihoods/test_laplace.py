from __future__ import annotations

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from likely.likelihoods import Laplace


def test_agrees_with_scipy(generator):
    eta, y = torch.randn(50, 2, dtype=torch.float64), torch.randn(50, dtype=torch.float64)
    expected = stats.laplace(eta[:, 0].numpy(), eta[:, 1].exp().numpy()).logpdf(y.numpy())
    np.testing.assert_allclose(Laplace().log_prob(eta, y).numpy(), expected, rtol=1e-12)


@settings(deadline=None, max_examples=50)
@given(st.lists(st.tuples(st.integers(-20, 20), st.integers(1, 3)), min_size=2, max_size=12))
def test_estimate_is_the_median_of_repeated_values(pairs):
    y, weight = (torch.tensor(column, dtype=torch.float64) for column in zip(*pairs, strict=True))
    repeated = np.repeat(y.numpy(), weight.long().numpy())
    location, log_scale = Laplace().weighted_mle(y, weight).tolist()
    assert location == np.median(repeated)
    distance = np.abs(repeated - np.median(repeated)).mean()
    np.testing.assert_allclose(np.exp(log_scale), distance if distance > 0 else np.exp(log_scale), rtol=1e-9)


def test_no_location_does_better_than_the_estimate(generator):
    # −log-likelihood is convex and piecewise linear in the location, so its optimum is one of the values of y
    y, weight = torch.randn(60, dtype=torch.float64), torch.rand(60, dtype=torch.float64)
    best = Laplace(scale=1.0).weighted_mle(y, weight)
    reached = (weight * Laplace(scale=1.0).log_prob(best.expand(60, 1), y)).sum()
    others = (weight * Laplace(scale=1.0).log_prob(y.reshape(-1, 1, 1), y)).sum(-1)
    assert float(others.max() - reached) < 1e-9
