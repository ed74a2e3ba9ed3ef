"""The restricted Boltzmann machine: its sums by enumeration, and log Z by annealing."""

from __future__ import annotations

import itertools

import pytest
import torch

from likely.core.random import drawing
from likely.models.generative.rbm import RBMModule, bernoulli


def machine(visible, hidden, seed, scale=0.7):
    generator = torch.Generator().manual_seed(seed)
    rbm = RBMModule((visible,), hidden).double()
    with torch.no_grad():
        for value in rbm.parameters():
            value.copy_(scale * torch.randn(value.shape, generator=generator, dtype=torch.float64))
    return rbm


def states(size):
    return torch.tensor(list(itertools.product([0.0, 1.0], repeat=size)), dtype=torch.float64)


def joint(rbm):
    """−E(x, h) of all states, (2^visible, 2^hidden)."""
    x, h = states(rbm.weight.shape[0]), states(rbm.weight.shape[1])
    return (x @ rbm.visible_bias)[:, None] + h @ rbm.hidden_bias + x @ rbm.weight @ h.T


@pytest.mark.parametrize(("visible", "hidden"), [(6, 4), (4, 6)])
def test_free_energy_and_log_normaliser_are_sums_over_all_states(visible, hidden, seed):
    rbm = machine(visible, hidden, seed)
    with torch.no_grad():
        all_states = joint(rbm)
        torch.testing.assert_close(-rbm.free_energy(states(visible)), all_states.logsumexp(1))
        torch.testing.assert_close(rbm.summed_log_normaliser(), all_states.logsumexp((0, 1)))


def test_conditionals_are_those_of_the_joint(seed):
    rbm = machine(5, 3, seed)
    with torch.no_grad():
        table = joint(rbm).softmax(1)  # p(h | x)
        torch.testing.assert_close(rbm.hidden_input(states(5)).sigmoid(), table @ states(3))
        table = joint(rbm).softmax(0)  # p(x | h)
        torch.testing.assert_close(rbm.visible_input(states(3)).sigmoid(), table.T @ states(5))


def test_gibbs_steps_leave_the_density_as_it_is(seed):
    """Moments of 20,000 rows drawn exactly stay within 5 standard errors: a false alarm in 10⁵ runs or fewer."""
    rbm = machine(4, 3, seed)
    with torch.no_grad(), drawing(seed) as generator:
        p = joint(rbm).logsumexp(1).softmax(0)
        start = states(4)[torch.multinomial(p, 20_000, replacement=True, generator=generator)]
        mean = rbm.moved(start, 3).mean(0)
    exact = p @ states(4)
    assert bool(((mean - exact).abs() < 5 * (exact * (1 - exact) / 20_000).sqrt()).all())


def test_annealing_agrees_with_the_exact_log_normaliser(seed):
    """Within 4.5 standard errors (a false alarm in 10⁵ runs), and the errors are small."""
    rbm = machine(16, 8, seed, scale=0.4)
    with drawing(seed):
        value, error = rbm.annealed_log_normaliser(200, 300)
    assert 0 < float(error) < 0.1
    assert abs(float(value - rbm.summed_log_normaliser())) < 4.5 * float(error)


def test_bernoulli_draws_have_their_probability(seed):
    with drawing(seed):
        draws = bernoulli(torch.full((40_000,), 1.0))
    chance = torch.sigmoid(torch.tensor(1.0))
    assert abs(float(draws.mean() - chance)) < 5 * float((chance * (1 - chance) / 40_000).sqrt())


def test_chains_that_go_on_by_hidden_units_leave_the_density_as_it_is(seed):
    """Hidden units drawn exactly stay so within 5 standard errors, and negatives have the density of rows."""
    rbm, count = machine(4, 3, seed), 20_000
    with torch.no_grad(), drawing(seed) as generator:
        p = joint(rbm).logsumexp(1).softmax(0)
        rows = states(4)[torch.multinomial(p, count, replacement=True, generator=generator)]
        chain = bernoulli(rbm.hidden_input(rows))
        own, other, after = rbm.contrast(states(4), chain, 2)
    torch.testing.assert_close(own, rbm.free_energy(states(4)))
    exact = joint(rbm).logsumexp(0).softmax(0) @ states(3)
    assert bool(((after.mean(0) - exact).abs() < 5 * (exact * (1 - exact) / count).sqrt()).all())
    energy = rbm.free_energy(states(4)).detach()
    mean = p @ energy
    assert abs(float(other.mean() - mean)) < 5 * float((p @ (energy - mean).square() / count).sqrt())


def test_noise_has_the_means_of_the_rows_and_its_density_sums_to_1():
    rows = torch.tensor([[0.0, 1.0], [0.0, 1.0], [1.0, 1.0], [0.0, 0.0]])
    rbm = RBMModule((2,), 3)
    rbm.adapt(rows, None)
    assert rbm.noise_log_prob(states(2).float()).exp().sum().item() == pytest.approx(1.0, rel=1e-6)
    torch.testing.assert_close(rbm.noise_logit.sigmoid(), (rows.sum(0) + 0.5) / 5)
    weighted = RBMModule((2,), 3)
    weighted.adapt(rows[[0, 2, 3]], torch.tensor([2.0, 1.0, 1.0]))
    torch.testing.assert_close(weighted.noise_logit, rbm.noise_logit)
