"""An offset joins η: in pairs (y, offset) where a model is fitted, and for rows where it is asked."""

import pytest
import torch

from likely.likelihoods import Bernoulli, Gamma, NegativeBinomial, NormalMixture, Poisson
from likely.likelihoods.offset import Moved, _WithOffset

ETA = torch.tensor([[0.2], [-1.0], [0.7]], dtype=torch.float64)
OFFSET = torch.tensor([[1.0], [0.0], [-2.0]], dtype=torch.float64)
Y = torch.tensor([1.0, 0.0, 1.0], dtype=torch.float64)
PAIRS = torch.cat([Y.unsqueeze(-1), OFFSET], -1)


@pytest.mark.parametrize("family", [Poisson(), Bernoulli(), Gamma(2.0), NegativeBinomial(0.5)], ids=repr)
def test_pairs_have_log_prob_and_derivatives_at_the_moved_eta(family):
    y = PAIRS.clone()
    y[:, 0] = y[:, 0] + (1.0 if isinstance(family, Gamma) else 0.0)
    paired, moved = _WithOffset(family), ETA + OFFSET
    for name in ("log_prob", "value_and_grad", "smooth_value_and_grad", "derivatives"):
        torch.testing.assert_close(getattr(paired, name)(ETA, y), getattr(family, name)(moved, y[:, 0]))
    total, gradient, _ = paired.total_and_grad(ETA, y, None, 2.0)
    assert total == pytest.approx(float(family.log_prob(moved, y[:, 0]).sum()))
    torch.testing.assert_close(gradient, 2 * family.value_and_grad(moved, y[:, 0])[1])


def test_a_rate_is_the_sum_of_counts_over_the_sum_of_exposures():
    time, count = torch.tensor([0.01, 5.0, 300.0]).double(), torch.tensor([0.0, 9.0, 650.0]).double()
    rate = _WithOffset(Poisson()).weighted_mle(torch.stack([count, time.log()], -1), torch.ones(3).double()).exp()
    torch.testing.assert_close(rate[0], count.sum() / time.sum())


def test_members_and_single_answers_are_moved_alike():
    family, members = Moved(Poisson(), OFFSET), torch.stack([ETA, ETA + 1])
    torch.testing.assert_close(family.distribution(members.movedim(0, -2)).mean, (members + OFFSET)[..., 0].exp().T)
    torch.testing.assert_close(family.mean(ETA), (ETA + OFFSET).exp()[:, 0])


def test_all_components_of_a_mixture_move_alike():
    eta = torch.randn(3, 6, generator=torch.Generator().manual_seed(0)).double()
    family = NormalMixture(2)
    torch.testing.assert_close(family.mean(family.shifted(eta, OFFSET)), family.mean(eta) + OFFSET[:, 0])
