"""What every energy shares: means of weights with their errors, and chains that contrast with rows."""

from __future__ import annotations

import math

import torch

from likely.models.generative.energy_function import EnergyFunction, log_mean


def test_the_mean_of_weights_and_its_error_are_those_of_the_weights():
    weights = torch.tensor([1.0, 2.0, 3.0, 6.0], dtype=torch.float64)
    mean, error = log_mean(weights.log() + 700.0)  # whose exponentials would overflow
    assert math.isclose(float(mean), math.log(3.0) + 700.0)
    assert math.isclose(float(error), float(weights.std()) / 3.0 / 2.0)


def test_chains_go_on_and_are_set_against_states():
    class Shifted(EnergyFunction):
        def free_energy(self, state):
            return state.sum(1)

        def moved(self, state, steps):
            return state + steps

    own, other, chain = Shifted().contrast(torch.ones(3, 1), torch.zeros(2, 1), 4)
    assert own.tolist() == [1.0] * 3
    assert other.tolist() == [4.0] * 2
    assert chain.tolist() == [[4.0]] * 2
