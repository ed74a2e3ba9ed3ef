import math

import pytest
import torch

from likely.core.errors import SpecError
from likely.core.spec import Spec
from likely.sampling import HMC, Langevin, sample


def normal(x):
    return -0.5 * x.square().sum(1)


def test_adjusted_is_hamiltonian_with_one_step():
    """The same seed and step give the same bits."""
    mala = sample(normal, torch.zeros(2), Langevin(step_size=0.9), 300, 0, chains=16, random_state=0)
    hmc = sample(normal, torch.zeros(2), HMC(step_size=0.9, max_steps=1), 300, 0, chains=16, random_state=0)
    assert torch.equal(mala.draws, hmc.draws)


@pytest.mark.parametrize("warmup", [200, 400, 1200])
@pytest.mark.parametrize("size", [1, 10])
def test_warm_up_reaches_the_best_acceptance(size, warmup, seed):
    """A short one, too: over 50 seeds 0.575 to 0.584 on average, each with a standard deviation below 0.025."""
    chains = sample(normal, torch.zeros(size), Langevin(), draws=200, warmup=warmup, chains=16, random_state=seed)
    assert float(chains.acceptance.mean()) == pytest.approx(0.574, abs=0.1)


def test_the_bias_of_the_unadjusted_chain_is_what_is_said(seed):
    """x′ = (1 − ε²/2)x + εξ has the variance 1/(1 − ε²/4): 1.190 for ε = 0.8, within 5 standard errors."""
    chains = sample(
        normal, torch.zeros(1), Langevin(step_size=0.8, adjusted=False), 300, 50, chains=100, random_state=seed
    )
    squares = chains.draws.square()
    correlation = (1 - 0.8**2 / 2) ** 2  # of squares, from one draw to the next
    effective = squares.numel() * (1 - correlation) / (1 + correlation)
    assert float(squares.mean()) == pytest.approx(1 / (1 - 0.8**2 / 4), abs=5 * 1.19 * math.sqrt(2 / effective))
    assert float(chains.acceptance.min()) == 1


def test_the_unadjusted_chain_chooses_small_steps_by_itself(seed):
    chains = sample(
        normal, torch.zeros(10), Langevin(adjusted=False), draws=2000, warmup=500, chains=32, random_state=seed
    )
    assert float(chains.draws.var((0, 1)).mean()) == pytest.approx(1, abs=0.06)


def test_it_is_a_value_with_checked_arguments():
    assert Spec.from_json(Langevin(adjusted=False).to_json()) == Langevin(adjusted=False)
    with pytest.raises(SpecError, match="step_size"):
        Langevin(step_size=-0.1)
