from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import stats

from likely.core.errors import DataError, SpecError
from likely.likelihoods import Bernoulli, Binomial


def test_agrees_with_scipy(generator):
    eta, y = torch.randn(50, 1, dtype=torch.float64), torch.randint(0, 11, (50,))
    expected = stats.binom(10, torch.sigmoid(eta[:, 0]).numpy()).logpmf(y.numpy())
    np.testing.assert_allclose(Binomial(total=10).log_prob(eta, y).numpy(), expected, rtol=1e-10)


def test_one_trial_is_a_bernoulli(generator):
    eta, y = torch.randn(50, 1, dtype=torch.float64), torch.randint(0, 2, (50,))
    torch.testing.assert_close(Binomial().log_prob(eta, y), Bernoulli().log_prob(eta, y))


def test_slope_of_the_nll_is_mean_minus_y_times_x(generator):
    x, y = torch.randn(30, 4, dtype=torch.float64), torch.randint(0, 6, (30,)).double()
    w = torch.randn(4, dtype=torch.float64, requires_grad=True)
    likelihood = Binomial(total=5)
    (slope,) = torch.autograd.grad(-likelihood.log_prob((x @ w).unsqueeze(-1), y).sum(), w)
    mean = likelihood.distribution((x @ w).unsqueeze(-1)).mean
    torch.testing.assert_close(slope, ((mean - y) @ x).detach())


def test_exact_at_logits_of_ten_thousand():
    assert Binomial(total=3).log_prob(torch.tensor([[1e4], [-1e4]]), torch.tensor([3, 3])).tolist() == [0.0, -3e4]


def test_messages():
    with pytest.raises(
        DataError, match=r"y has a value outside the support \(4 at row 0\); Binomial needs counts 0, …, 3\."
    ):
        Binomial(total=3).check(torch.tensor([4]))
    with pytest.raises(SpecError, match=r"Binomial\(total=0\): total must be an integer of trials, 1 or more"):
        Binomial(total=0)
