"""Chain: the labels of a sequence, coupled; without couplings, and alone, a `Categorical`."""

from __future__ import annotations

import pytest
import torch

from likely.likelihoods import Categorical, Chain, Target
from likely.probability.chains import label_log_prob

CLASSES, OFFSETS = 3, torch.tensor([0, 4, 5, 8])


@pytest.fixture
def eta(generator):
    """η of two members, whose constants are the same at all positions."""
    constants = torch.randn(2, 1, CLASSES * (CLASSES + 2)).double()
    return torch.cat([torch.randn(2, 8, CLASSES).double(), constants.expand(2, 8, -1)], -1)


@pytest.fixture
def y(generator):
    return torch.randint(CLASSES, (8,)).double()


def test_it_counts_the_scores_of_first_last_and_neighbouring_labels():
    assert Chain().coupling(Target(classes=13)) == 13 + 13 + 169
    assert Categorical().coupling(Target(classes=13)) == 0
    with pytest.raises(NotImplementedError, match="Categorical does not couple the positions of a row"):
        Categorical().joint_log_prob(torch.zeros(1, 2), torch.zeros(1), torch.tensor([0, 1]))


def test_each_member_has_its_own_field(eta, y):
    together = Chain().joint_log_prob(eta, y, OFFSETS)
    assert together.shape == (2, 3)
    for own, value in zip(eta, together, strict=True):
        torch.testing.assert_close(Chain().joint_log_prob(own, y, OFFSETS), value)
        first, last, pairs = own[0, 3:].split([3, 3, 9])
        by_hand = label_log_prob(first, last, pairs.view(3, 3), own[:, :3], y, OFFSETS)
        torch.testing.assert_close(value, by_hand)


def test_members_may_have_labels_of_their_own(eta, y):
    other = (y + 1) % CLASSES
    both = Chain().joint_log_prob(eta, torch.stack([y, other]), OFFSETS)
    torch.testing.assert_close(both[1], Chain().joint_log_prob(eta[1], other, OFFSETS))


def test_a_distribution_averages_its_members(eta, y):
    weights = torch.tensor([0.25, 0.75])
    rows = Chain().joint(eta, weights, OFFSETS)
    by_member = Chain().joint_log_prob(eta, y, OFFSETS)
    torch.testing.assert_close(rows.log_prob(y), (by_member + weights.log().unsqueeze(1)).logsumexp(0))


def test_without_couplings_labels_are_categorical(eta, y):
    eta[..., CLASSES:] = 0
    alone = Categorical().log_prob(eta[0, :, :CLASSES], y)
    rows = torch.stack([part.sum() for part in alone.split([4, 1, 3])])
    torch.testing.assert_close(Chain().joint_log_prob(eta[0], y, OFFSETS), rows)
    probabilities = Categorical().probabilities(eta[:1, :, :CLASSES])[0]
    torch.testing.assert_close(Chain().joint(eta[:1], torch.ones(1), OFFSETS).probs, probabilities)


def test_the_gradient_reaches_scores_and_constants(eta, y):
    point = eta[0].clone().requires_grad_()
    (gradient,) = torch.autograd.grad(Chain().joint_log_prob(point, y, OFFSETS).sum(), point)
    step = 1e-6
    for t, j in ((0, 0), (3, 2), (7, 1)):
        change = torch.zeros_like(point)
        change[t, j] = step
        up, down = (Chain().joint_log_prob(point.detach() + s * change, y, OFFSETS).sum() for s in (1, -1))
        assert gradient[t, j].item() == pytest.approx((up - down).item() / (2 * step), rel=1e-5, abs=1e-8)
    constants = torch.zeros_like(point)
    constants[:, CLASSES + 7] = step  # of every position, since they are one number
    up, down = (Chain().joint_log_prob(point.detach() + s * constants, y, OFFSETS).sum() for s in (1, -1))
    assert gradient[:, CLASSES + 7].sum().item() == pytest.approx((up - down).item() / (2 * step), rel=1e-5, abs=1e-8)
