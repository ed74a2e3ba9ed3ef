"""A run of gradient training: rates, averages of weights, and a state from which it goes on to the same bits."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch

from likely import Regressor
from likely.core.errors import SpecError
from likely.inference import MAP
from likely.inference.training.averaging import EMA
from likely.inference.training.descent import Descent
from likely.networks import MLP
from likely.optim import Adam, AdamW
from likely.optim.schedules import Cosine

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(20, 2)), RNG.normal(size=20)


@pytest.fixture
def run(problem_of):
    def run(seeds=(0,), **options):
        problem = problem_of(Regressor(network=MLP((4,)), random_state=0), X, Y)
        return Descent(problem, MAP(**{"optimizer": Adam(0.01), "epochs": 4, "batch_size": 8, **options}), list(seeds))

    return run


def advance(descent, first, last):
    for at in range(first, last):
        descent.advance(at)


def test_the_rate_follows_the_schedule(run):
    descent = run(schedule=Cosine())
    for at in (0, 5, descent.length - 1):
        descent._set_rates(at)
        assert descent.rate == pytest.approx(0.01 * Cosine().factor(at, descent.length))


@pytest.mark.parametrize("seeds", [(0,), (0, 1)])
@pytest.mark.parametrize("average", [None, EMA(0.9)])
def test_a_state_goes_on_to_the_same_bits(run, seeds, average):
    """Also from the middle of an epoch, when rows of later steps may have been gathered already."""
    whole, first, second = (run(seeds, average=average) for _ in range(3))
    advance(whole, 0, whole.length)
    advance(first, 0, 5)
    second.restore(copy.deepcopy(first.state()))
    advance(second, 5, second.length)
    assert torch.equal(second.program.flat, whole.program.flat)
    assert second.history == whole.history
    for name, value in whole.posterior().parameters.items():
        assert torch.equal(second.posterior().parameters[name], value)


def test_the_posterior_is_averaged_and_training_goes_on_from_its_own(run):
    descent = run(average=EMA(0.9))
    advance(descent, 0, 6)
    own = descent.program.flat.clone()
    with descent._averaged():
        torch.testing.assert_close(descent.program.flat.double(), descent.average.mean.double())
    assert torch.equal(descent.program.flat, own)
    flat = torch.cat([value.flatten() for value in descent.posterior().parameters.values()])
    assert not torch.allclose(flat, own)
    torch.testing.assert_close(flat.double().norm(), descent.average.mean.double().norm())


def test_steps_stand_in_for_epochs(run):
    """20 rows in batches of 8 are epochs of 3 steps, and without 4 held-out rows of 2: 7 are four reports then."""
    descent = run(steps=7)
    assert (descent.length, descent.every) == (7, 4)
    model = Regressor(
        network=MLP((4,)), inference=MAP(Adam(0.01), steps=7, batch_size=8, validation=0.2), random_state=0
    )
    history = model.fit(X, Y).history_
    assert [len(history[name]) for name in ("loss", "validation")] == [4, 4]
    assert run(steps=2).every == 2
    assert run(epochs=2).length == 2 * run().every
    with pytest.raises(SpecError, match="steps must be a positive integer, or None for whole epochs"):
        MAP(steps=0)


@pytest.mark.parametrize("only_weights", [False, True])
@pytest.mark.parametrize("seeds", [(0,), (0, 1)])
def test_what_decays_are_weights_or_all_but_constants(run, seeds, only_weights):
    """A step with and one without decay differ by ηλθ there, and nowhere else: log σ is in units of y."""
    rate, decay = 0.1, 0.5
    plain, sparing = (
        run(seeds, optimizer=AdamW(rate, weight_decay=own, only_weights=only_weights), batch_size=None)
        for own in (0.0, decay)
    )
    before = {name: value.detach().clone() for name, value in sparing.program.parameters.items()}
    assert "shared" in before
    for descent in (plain, sparing):
        descent.advance(0)
    for name, value in before.items():
        gone = plain.program.parameters[name] - sparing.program.parameters[name]
        decays = name != "shared" and (not only_weights or value.ndim - (len(seeds) > 1) >= 2)
        torch.testing.assert_close(gone, rate * decay * value if decays else torch.zeros_like(value))
