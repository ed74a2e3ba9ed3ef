"""A sampler of one's own: `init`, `step` and `adapt` are all that the driver asks for."""

from __future__ import annotations

from typing import ClassVar

import pytest
import torch
from torch.distributions import Normal

from likely.sampling import Info, Sampler, State, sample


class _Shift(Sampler):
    """x → x + tuning (mod 4): leaves the uniform density on a ring of four invariant; warm-up sets the shift."""

    calls: ClassVar[list[tuple[int, int]]] = []

    def init(self, position, log_prob):
        return State(position, log_prob(position), tuning=3.0)

    def step(self, state, log_prob, generator):
        position = torch.remainder(state.position + state.tuning, 4.0)
        return State(position, log_prob(position), state.tuning), Info(torch.full((len(position),), 0.5))

    def adapt(self, state, info, index, total):
        self.calls.append((index, total))
        return State(state.position, state.log_prob, tuning=1.0) if index == total - 1 else state


def flat(x):
    return torch.zeros(len(x), dtype=torch.float64)


def test_the_driver_runs_init_adapt_and_step_in_their_order():
    """Two warm-up steps of 3 lead from 0 to 2; then each step adds 1."""
    _Shift.calls.clear()
    chains = sample(flat, 0.0, _Shift(), draws=5, warmup=2, chains=2)
    assert _Shift.calls == [(0, 2), (1, 2)]
    assert chains.draws.tolist() == [[3.0, 0.0, 1.0, 2.0, 3.0]] * 2
    assert chains.acceptance.tolist() == [0.5, 0.5]


def test_by_default_the_state_knows_its_density_and_nothing_adapts():
    position = torch.tensor([0.5, -1.0], dtype=torch.float64)
    state = Sampler.init(_Shift(), position, Normal(0.0, 1.0).log_prob)
    torch.testing.assert_close(state.log_prob, Normal(0.0, 1.0).log_prob(position))
    assert Sampler.adapt(_Shift(), state, Info(torch.ones(2)), 0, 10) is state
    with pytest.raises(NotImplementedError):
        Sampler.step(_Shift(), state, flat, torch.Generator())


def test_methods_see_the_support_as_it_is_unless_they_follow_gradients():
    assert not Sampler.unbounded
    from likely.sampling import HMC

    assert HMC.unbounded
