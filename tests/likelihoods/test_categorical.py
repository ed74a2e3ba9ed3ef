from __future__ import annotations

import pytest
import torch

from likely.core.errors import DataError, SpecError
from likely.likelihoods import Bernoulli, Categorical, Target


def test_probabilities_are_the_softmax(generator):
    eta = torch.randn(20, 4, dtype=torch.float64)
    table = Categorical().log_prob(eta.unsqueeze(1), torch.arange(4)).exp()
    torch.testing.assert_close(table, eta.exp() / eta.exp().sum(-1, keepdim=True))


def test_two_classes_are_a_bernoulli(generator):
    logit, y = torch.randn(20, 1, dtype=torch.float64), torch.randint(0, 2, (20,))
    eta = torch.cat([torch.zeros_like(logit), logit], -1)
    torch.testing.assert_close(Categorical().log_prob(eta, y), Bernoulli().log_prob(logit, y))


def test_slope_of_the_nll_is_mean_minus_y_times_x(generator):
    x, y = torch.randn(30, 4, dtype=torch.float64), torch.randint(0, 3, (30,))
    w = torch.randn(4, 3, dtype=torch.float64, requires_grad=True)
    (slope,) = torch.autograd.grad(-Categorical().log_prob(x @ w, y).sum(), w)
    residual = torch.softmax(x @ w, -1) - torch.nn.functional.one_hot(y, 3)
    torch.testing.assert_close(slope, (x.T @ residual).detach())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_exact_at_logits_of_ten_thousand(dtype):
    eta = torch.tensor([[1e4, -1e4, 0.0]], dtype=dtype).expand(3, 3).clone().requires_grad_()
    log_prob = Categorical().log_prob(eta, torch.arange(3))
    assert log_prob.tolist() == [0.0, -2e4, -1e4]
    (slope,) = torch.autograd.grad(log_prob.sum(), eta)
    assert slope.tolist() == [[0.0, 0.0, 0.0], [-1.0, 1.0, 0.0], [-1.0, 0.0, 1.0]]


def test_estimate_is_the_frequencies():
    eta = Categorical().weighted_mle(torch.tensor([0.0, 0.0, 2.0, 2.0]), torch.tensor([1.0, 2.0, 3.0, 4.0]))
    torch.testing.assert_close(torch.softmax(eta, -1), torch.tensor([0.3, 0.0, 0.7]))
    assert bool(eta.isfinite().all())


def test_classes_are_counted_unless_given():
    y = torch.tensor([0.0, 2.0, torch.nan])
    assert Categorical().target(y) == Target(classes=3)
    assert Categorical(classes=5).target(y) == Target(classes=5)
    assert Categorical().target(torch.zeros(3)) == Target(classes=2)
    assert Categorical(classes=5).weighted_mle(y, torch.ones(3)).shape == (5,)


def test_labels_beyond_the_classes_are_refused():
    with pytest.raises(DataError, match=r"y has a value outside the support \(3 at row 0\); Categorical needs labels"):
        Categorical(classes=3).check(torch.tensor([3, 0]))
    with pytest.raises(DataError, match=r"y has a negative value \(-1 at row 1\)"):
        Categorical().check(torch.tensor([3, -1]))


def test_classes_are_checked():
    with pytest.raises(SpecError, match=r"Categorical\(classes=1\): classes must be an integer above 1, or None"):
        Categorical(classes=1)
