from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from likely.core.errors import DataError
from likely.likelihoods import Bernoulli, Ordinal, Target


def test_probabilities_are_differences_of_the_logistic(generator):
    eta = torch.randn(20, 5, dtype=torch.float64)
    cuts = torch.cat([eta[:, 1:2], eta[:, 1:2] + eta[:, 2:].exp().cumsum(-1)], -1)
    below = torch.sigmoid(cuts - eta[:, :1])
    ends = torch.zeros(20, 1, dtype=torch.float64)
    expected = torch.cat([ends, below, ends + 1], -1).diff(dim=-1)
    torch.testing.assert_close(Ordinal().distribution(eta).probs, expected)
    table = Ordinal().log_prob(eta.unsqueeze(1), torch.arange(5))
    torch.testing.assert_close(table.exp(), expected)


@settings(deadline=None, max_examples=50)
@given(st.lists(st.floats(-60, 60), min_size=2, max_size=6))
def test_probabilities_sum_to_one(eta):
    table = Ordinal().log_prob(torch.tensor(eta, dtype=torch.float64), torch.arange(len(eta)))
    assert torch.logsumexp(table, 0).item() == pytest.approx(0.0, abs=1e-9)


@settings(deadline=None, max_examples=50)
@given(st.lists(st.floats(-5, 5), min_size=3, max_size=6), st.floats(0.1, 5))
def test_a_higher_location_raises_the_label(eta, rise):
    low = torch.tensor(eta, dtype=torch.float64)
    high = low.clone()
    high[0] += rise
    below = [Ordinal().distribution(e).probs.cumsum(-1)[:-1] for e in (low, high)]
    assert bool((below[1] <= below[0] + 1e-12).all())
    assert below[1][0] < below[0][0]


@settings(deadline=None, max_examples=50)
@given(st.lists(st.floats(-5, 5), min_size=3, max_size=6), st.floats(0.1, 3))
def test_a_wider_gap_raises_the_probability_below_the_last_cut(eta, rise):
    narrow = torch.tensor(eta, dtype=torch.float64)
    wide = narrow.clone()
    wide[-1] += rise
    last = [Ordinal().distribution(e).probs[-1] for e in (narrow, wide)]
    assert last[1] < last[0]


def test_two_labels_are_a_bernoulli(generator):
    eta, y = torch.randn(20, 2, dtype=torch.float64), torch.randint(0, 2, (20,))
    torch.testing.assert_close(Ordinal().log_prob(eta, y), Bernoulli().log_prob(eta[:, :1] - eta[:, 1:], y))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("location", [1e4, -1e4])
def test_exact_at_logits_of_ten_thousand(dtype, location):
    eta = torch.tensor([location, 0.0, 0.0], dtype=dtype).expand(3, 3).clone().requires_grad_()
    log_prob = Ordinal().log_prob(eta, torch.arange(3))
    far = 0 if location > 0 else 2
    assert log_prob[2 - far].item() == 0.0
    assert log_prob[far].item() == pytest.approx(-1e4, rel=1e-3)
    (slope,) = torch.autograd.grad(log_prob.sum(), eta)
    assert bool(slope.isfinite().all())
    assert slope[far, 0].item() == pytest.approx(-1.0 if far == 0 else 1.0)


def test_estimate_gives_the_frequencies():
    y = torch.tensor([0.0, 1.0, 1.0, 3.0])
    eta = Ordinal().weighted_mle(y, torch.tensor([1.0, 2.0, 3.0, 4.0]))
    assert bool(eta.isfinite().all())
    torch.testing.assert_close(Ordinal().distribution(eta).probs, torch.tensor([0.1, 0.5, 0.0, 0.4]), atol=1e-6, rtol=0)


def test_classes_and_support():
    assert Ordinal().target(torch.tensor([0.0, 4.0])) == Target(classes=5)
    assert Ordinal().shared(Target(classes=5)) == 4
    with pytest.raises(DataError, match=r"y has a value that is not an integer \(1.5 at row 0\); Ordinal needs labels"):
        Ordinal().check(torch.tensor([1.5]))
