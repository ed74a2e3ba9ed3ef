"""The losses of adversarial games at their optimal critics, on densities that are known."""

from __future__ import annotations

import math

import pytest
import torch
from torch.distributions import Normal

from likely.models.generative.gan_losses import LOSSES, weighted_mean

GRID = torch.linspace(-30.0, 30.0, 8001, dtype=torch.float64)
WIDTH = float(GRID[1] - GRID[0])
P, Q = (Normal(torch.tensor(mean, dtype=torch.float64), scale) for mean, scale in ((-1.0, 1.0), (1.5, 2.0)))
DENSITY, OTHER = P.log_prob(GRID).exp(), Q.log_prob(GRID).exp()


def critic_loss(name, scores):
    """E of the critic's loss under both densities, by the trapezium rule."""
    loss = LOSSES[name]
    return ((DENSITY * loss.real(scores) + OTHER * loss.generated(scores)) * WIDTH).sum()


def divergence(p, q):
    return float((p * (p / q).log()).sum() * WIDTH)


@pytest.mark.parametrize("name", ["minimax", "non_saturating", "least_squares"])
def test_the_best_critic_is_the_fraction_of_the_real_density(name):
    """Its loss has no gradient there, and any other critic has a larger one."""
    ratio = P.log_prob(GRID) - Q.log_prob(GRID)
    best = (ratio.sigmoid() if name == "least_squares" else ratio).requires_grad_()
    loss = critic_loss(name, best)
    (gradient,) = torch.autograd.grad(loss, best)
    assert gradient.abs().max() < 1e-12
    generator = torch.Generator().manual_seed(0)
    for size in (1e-2, 1.0):
        other = best + size * torch.randn(len(GRID), generator=generator, dtype=torch.float64)
        assert critic_loss(name, other) > loss


def test_the_minimax_value_at_the_best_critic_is_twice_jsd_less_log_4():
    middle = 0.5 * (DENSITY + OTHER)
    jsd = 0.5 * divergence(DENSITY, middle) + 0.5 * divergence(OTHER, middle)
    value = -critic_loss("minimax", P.log_prob(GRID) - Q.log_prob(GRID))
    assert value.item() == pytest.approx(2 * jsd - math.log(4), rel=1e-8)


def test_least_squares_at_the_best_critic_is_a_chi_squared_divergence():
    """½ E_p(D − 1)² + ½ E_q D² at D = p/(p+q) is ½ ∫ pq/(p+q)."""
    ratio = P.log_prob(GRID) - Q.log_prob(GRID)
    expected = 0.5 * (DENSITY * OTHER / (DENSITY + OTHER)).sum() * WIDTH
    assert critic_loss("least_squares", ratio.sigmoid()).item() == pytest.approx(expected.item(), rel=1e-10)


def test_the_wasserstein_loss_of_the_best_slope_is_the_distance_of_means():
    """Of N(0, 1) and N(2, 1) the 1-Lipschitz critic d(x) = −x is best: W₁ = 2."""
    near, far = (Normal(torch.tensor(mean, dtype=torch.float64), 1.0) for mean in (0.0, 2.0))
    loss = LOSSES["wasserstein"]
    terms = near.log_prob(GRID).exp() * loss.real(-GRID) + far.log_prob(GRID).exp() * loss.generated(-GRID)
    assert float(terms.sum() * WIDTH) == pytest.approx(-2.0, rel=1e-6)


def test_a_saturated_generator_has_no_gradient_where_the_critic_is_sure():
    score = torch.tensor([-20.0, -20.0], requires_grad=True)
    (saturated,) = torch.autograd.grad(LOSSES["minimax"].generator(score).sum(), score)
    (pulled,) = torch.autograd.grad(LOSSES["non_saturating"].generator(score).sum(), score)
    assert saturated.abs().max() < 1e-8
    torch.testing.assert_close(pulled, torch.full((2,), -1.0))


def test_weights_count_as_repeated_rows():
    values = torch.tensor([1.0, 5.0, 2.0])
    repeated = torch.tensor([1.0, 5.0, 5.0, 5.0, 2.0, 2.0])
    torch.testing.assert_close(weighted_mean(values, torch.tensor([1.0, 3.0, 2.0])), weighted_mean(repeated, None))
