"""Negatives: what training adds up has the gradient of the log-probability; noise is told from rows as Bayes does."""

from __future__ import annotations

import itertools
import math

import pytest
import torch

from likely.core.errors import SpecError
from likely.core.random import drawing
from likely.models.generative.energy_model import EnergyModule
from likely.models.generative.negatives import CD, NCE, PCD, Langevin, Negatives
from likely.models.generative.rbm import RBMModule

STATES = torch.tensor(list(itertools.product([0.0, 1.0], repeat=3)), dtype=torch.float64)


def density(negatives, seed):
    """A small machine whose chains have forgotten their start."""
    with drawing(seed):
        torch.manual_seed(seed)
        rbm = RBMModule((3,), 2).double()
        with torch.no_grad():
            for value in rbm.parameters():
                value.normal_(std=0.7, generator=torch.Generator().manual_seed(seed))
        return EnergyModule(rbm, negatives, 1).double()


@pytest.mark.parametrize("negatives", [PCD(30, chains=20_000), CD(30)])
def test_the_surrogate_has_the_gradient_of_the_log_probability(negatives, seed):
    """In each parameter within 5 standard errors of 20,000 negatives: features of them are at most 1 wide."""
    module = density(negatives, seed)
    rows = STATES.repeat(2500, 1)
    with drawing(seed):
        module(rows).mean().backward()
    gradients = [value.grad.clone() for value in module.energy.parameters()]
    module.zero_grad()
    rbm = module.energy
    (-rbm.free_energy(STATES).mean() - torch.logsumexp(-rbm.free_energy(STATES), 0)).backward()
    for own, value in zip(gradients, rbm.parameters(), strict=True):
        torch.testing.assert_close(own, value.grad, atol=5 * 0.5 / math.sqrt(20_000), rtol=0)


def test_nce_is_at_rest_where_the_energy_and_its_normaliser_are_right(seed):
    """With rows of the model itself and its own log Z, the expected gradient is 0: 5 standard errors of 20,000 rows."""
    module, count = density(NCE(1), seed), 20_000
    rbm = module.energy
    with torch.no_grad():
        log_z = torch.logsumexp(-rbm.free_energy(STATES), 0)
        module.log_z.copy_(log_z)
        p = (-rbm.free_energy(STATES) - log_z).exp()
    with drawing(seed) as generator:  # noise that shares no number with the rows
        rows = STATES[torch.multinomial(p, count, replacement=True, generator=generator)]
        module(rows).mean().backward()
    assert all(float(value.grad.abs().max()) < 5 / math.sqrt(count) for value in module.parameters())


def test_chains_go_on_in_training_and_rest_in_questions():
    module = density(PCD(1, chains=50), 0)
    before = module.chain.clone()
    with drawing(0):
        module.eval()(STATES)
        assert torch.equal(module.chain, before)
        module.train()(STATES)
    assert not torch.equal(module.chain, before)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Langevin(0), "steps must be a positive integer"),
        (lambda: Langevin(restart=1.5), r"Langevin\(restart=1.5\): restart must be a fraction, from 0 to 1"),
        (lambda: Langevin(penalty=-1.0), r"Langevin\(penalty=-1.0\): penalty must be a number, 0 or more"),
        (lambda: NCE(0), r"NCE\(ratio=0\): ratio must be a positive integer"),
    ],
)
def test_negatives_that_mean_nothing_are_refused(make, message):
    with pytest.raises(SpecError, match=message):
        make()


def test_negatives_are_read_from_text():
    assert Negatives.parse("langevin(5, chains=9)") == Langevin(5, chains=9)
    assert Negatives.parse("nce") == NCE()
