"""Energies by networks: tilts whose normalisers and draws are known."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from likely.core.random import drawing
from likely.models.generative.energy_function import log_mean
from likely.models.generative.features import Features
from likely.models.generative.network_energy import NetworkEnergy
from likely.models.generative.observed import columns_of


class Known(nn.Module):
    """f(z) = ½Σ(aᵢ − 1)zᵢ² − bᵢzᵢ: p = Π N(bᵢ/aᵢ, 1/aᵢ)."""

    def forward(self, z):
        a, b = torch.tensor([4.0, 1.0]), torch.tensor([1.0, -1.5])
        return (0.5 * (a - 1) * z.square() - b * z).sum(1, keepdim=True)


def energy() -> NetworkEnergy:
    rows = torch.tensor([[0.0, 10.0], [4.0, 30.0]])
    units = Features(columns_of("normal", rows), (2,), missing=False)
    made = NetworkEnergy(Known(), units, (2,))
    made.adapt(rows, None)
    return made


def test_the_normaliser_is_found_in_the_units_of_the_data(seed):
    """log Z = Σ log scale + ½ log(2π/a) + ½b²/a, within 4.5 standard errors: a false alarm in 10⁵ runs."""
    exact = math.log(2.0 * 10.0) + sum(0.5 * math.log(2 * math.pi / a) + 0.5 * b**2 / a for a, b in ((4, 1), (1, 1.5)))
    with drawing(seed):
        mean, error = log_mean(energy().annealed(400, 100)[1])
        known = math.log(2 * math.pi) + math.log(20.0)
    assert 0 < float(error) < 0.1
    assert abs(float(mean) + known - exact) < 4.5 * float(error)


def test_draws_and_fillings_have_the_density(seed):
    """4,000 chains of 200 steps: means and variances within 5 standard errors, twice for what the start left."""
    made = energy()
    with drawing(seed):
        new = made.drawn(4000, 200)
        gaps = torch.tensor([[True, False]]).expand(4000, 2)
        filled = made.filled(torch.full((4000, 2), 7.0), gaps, 200)
    assert bool((filled[:, 1] == 7.0).all())
    for drawn, mean, variance in ((new[:, 0], 0.25, 0.25), (new[:, 1], -1.5, 1.0), (filled[:, 0], 0.25, 0.25)):
        assert abs(float(drawn.mean()) - mean) < 10 * math.sqrt(variance / 4000)
        assert abs(float(drawn.var()) / variance - 1) < 10 * math.sqrt(2 / 4000)


def test_the_noise_is_a_density_in_states():
    made = energy()
    grid = torch.linspace(-8, 8, 161)
    states = torch.cartesian_prod(grid, grid)
    assert made.noise_log_prob(states).exp().sum().item() * 0.01 == pytest.approx(1.0, rel=1e-4)


def test_states_and_rows_are_each_others_inverse():
    made, rows = energy(), torch.tensor([[1.0, 12.0]])
    torch.testing.assert_close(made.decode(made.encode(rows)), rows)


def test_steps_follow_their_acceptance_in_training_alone():
    made = energy()
    with drawing(0):
        before = float(made.step_scale)
        made.eval().moved(torch.zeros(50, 2), 3)
        assert float(made.step_scale) == before
        made.train().moved(torch.zeros(50, 2), 3)
    assert float(made.step_scale) != before
