"""Independent normals: closed forms against torch, and products against their densities."""

from __future__ import annotations

import torch
from torch.distributions import Independent, Normal, kl_divergence

from likely.core.random import drawing
from likely.models.generative.normals import divergence, drawn, log_normal, noise, product, to_standard

RANDOM = torch.Generator().manual_seed(0)
M, S, N, T = (torch.randn(4, 3, dtype=torch.float64, generator=RANDOM) for _ in range(4))


def normal(mean, log_scale):
    return Independent(Normal(mean, log_scale.exp()), 1)


def test_densities_and_divergences_are_those_of_torch():
    z = torch.randn(5, 4, 3, dtype=torch.float64, generator=RANDOM)
    torch.testing.assert_close(log_normal(z, M, S), normal(M, S).log_prob(z))
    torch.testing.assert_close(divergence(M, S, N, T), kl_divergence(normal(M, S), normal(N, T)))
    standard = normal(torch.zeros_like(M), torch.zeros_like(M))
    torch.testing.assert_close(to_standard(M, S), kl_divergence(normal(M, S), standard))


def test_a_product_of_densities_is_in_proportion_to_a_normal():
    """log N(z; m, s) + log N(z; n, t) − log N(z; product) is the same at every z."""
    z = torch.randn(6, 4, 3, dtype=torch.float64, generator=RANDOM)
    ratio = log_normal(z, M, S) + log_normal(z, N, T) - log_normal(z, *product(M, S, N, T))
    torch.testing.assert_close(ratio, ratio[:1].expand_as(ratio))


def test_draws_pass_gradients_and_come_from_the_own_generator():
    mean, log_scale = M.clone().requires_grad_(), S.clone().requires_grad_()
    with drawing(0):
        z = drawn(mean, log_scale, 2)
    with drawing(0):
        standard = noise(2, 4, 3, like=mean)
    torch.testing.assert_close(z, M + S.exp() * standard)
    z.sum().backward()
    torch.testing.assert_close(mean.grad, torch.full_like(M, 2.0))
    torch.testing.assert_close(log_scale.grad, (S.exp() * standard).sum(0))
