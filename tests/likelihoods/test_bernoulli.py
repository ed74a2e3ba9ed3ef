from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import stats

from likely.core.errors import DataError
from likely.likelihoods import Bernoulli


def test_agrees_with_scipy(generator):
    eta, y = torch.randn(50, 1, dtype=torch.float64), torch.randint(0, 2, (50,))
    expected = stats.bernoulli(torch.sigmoid(eta[:, 0]).numpy()).logpmf(y.numpy())
    np.testing.assert_allclose(Bernoulli().log_prob(eta, y).numpy(), expected, rtol=1e-10)


def test_slope_of_the_nll_is_mean_minus_y_times_x(generator):
    x, y = torch.randn(30, 4, dtype=torch.float64), torch.randint(0, 2, (30,)).double()
    w = torch.randn(4, dtype=torch.float64, requires_grad=True)
    (slope,) = torch.autograd.grad(-Bernoulli().log_prob((x @ w).unsqueeze(-1), y).sum(), w)
    torch.testing.assert_close(slope, ((torch.sigmoid(x @ w) - y) @ x).detach())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_exact_at_logits_of_ten_thousand(dtype):
    eta = torch.tensor([[1e4], [1e4], [-1e4], [-1e4]], dtype=dtype, requires_grad=True)
    y = torch.tensor([1.0, 0.0, 1.0, 0.0], dtype=dtype)
    log_prob = Bernoulli().log_prob(eta, y)
    assert log_prob.tolist() == [0.0, -1e4, -1e4, 0.0]
    (slope,) = torch.autograd.grad(log_prob.sum(), eta)
    assert slope[:, 0].tolist() == [0.0, -1.0, 1.0, 0.0]


def test_small_probabilities_of_both_labels_keep_their_digits():
    """1 − p of a p near 1 is what p is rounded by: in float32 0 from a logit of 17 on."""
    eta = torch.tensor([[-30.0], [-12.0], [0.5], [12.0], [30.0]])
    exact = torch.cat([(-eta.double()).sigmoid(), eta.double().sigmoid()], 1)
    torch.testing.assert_close(Bernoulli().probabilities(eta).double(), exact, rtol=1e-5, atol=0)


@pytest.mark.parametrize("label", [0.0, 1.0])
def test_one_label_alone_has_a_finite_estimate(label):
    estimate = Bernoulli().weighted_mle(torch.full((9,), label), torch.ones(9))
    assert bool(estimate.isfinite().all())
    assert torch.sigmoid(estimate).item() == pytest.approx(label, abs=1e-6)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (-1.0, r"a negative value \(-1.0 at row 1\)"),
        (0.5, r"a value that is not an integer \(0.5 at row 1\)"),
        (2.0, r"a value outside the support \(2.0 at row 1\)"),
    ],
)
def test_other_values_are_refused(value, words):
    with pytest.raises(DataError, match=rf"y has {words}; Bernoulli needs labels 0 and 1\."):
        Bernoulli().check(torch.tensor([1.0, value]))


def test_booleans_are_labels():
    Bernoulli().check(torch.tensor([True, False]))
