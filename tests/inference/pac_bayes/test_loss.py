"""Bounded losses: exact ones of labels are 0 or 1, smooth ones lie above them, others compare with the baseline."""

from __future__ import annotations

import math

import torch
from scipy.stats import norm

from likely.inference.pac_bayes.loss import LEAST, BoundedLoss
from likely.likelihoods import Bernoulli, Categorical, Normal

ETA = torch.randn(4, 30, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0)) * 5
LABELS = torch.arange(30) % 3


def test_the_exact_loss_of_labels_is_the_error():
    loss = BoundedLoss(Categorical(), torch.zeros(3))
    expected = (ETA.argmax(-1) != LABELS).double()
    assert torch.equal(loss.exact(ETA, LABELS.double()), expected)
    two = BoundedLoss(Bernoulli(), torch.zeros(1)).exact(ETA[..., :1], (LABELS > 0).double())
    assert torch.equal(two, ((ETA[..., 0] > 0) != (LABELS > 0)).double())


def test_the_smooth_loss_is_above_the_exact_one_and_bounded():
    """A wrong label has p(y) ≤ 1/2, and −log₂ of that is at least 1."""
    loss = BoundedLoss(Bernoulli(), torch.zeros(1))
    y = (LABELS > 0).double()
    smooth, exact = loss.smooth(ETA[..., :1], y), loss.exact(ETA[..., :1], y)
    assert bool((smooth >= exact).all())
    assert float(smooth.max()) <= -math.log2(LEAST) + 1e-9
    likely = -torch.log2(torch.sigmoid(ETA[..., 0] * (2 * y - 1)))
    torch.testing.assert_close(smooth, likely.clamp_max(-math.log2(LEAST)))


def test_quantities_are_compared_with_the_density_without_x():
    """p₀ / (p₀ + p): 1/2 at the baseline itself, less where the prediction is better."""
    reference = torch.tensor([1.0], dtype=torch.float64)
    loss, y = BoundedLoss(Normal(0.7), reference), torch.linspace(-2, 3, 30, dtype=torch.float64)
    eta = ETA[..., :1]
    values = loss.exact(eta, y)
    without, density = norm.pdf(y, 1.0, 0.7), norm.pdf(y, eta[..., 0], 0.7)
    torch.testing.assert_close(values, torch.from_numpy(without / (without + density)))
    assert torch.equal(loss.smooth(eta, y), values)
    torch.testing.assert_close(loss.exact(reference.expand(1, 30, 1), y), torch.full((1, 30), 0.5, dtype=torch.float64))
