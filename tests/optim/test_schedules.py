"""Schedules: their values, and what all of them promise."""

from __future__ import annotations

import math

import pytest
import torch

from likely.core.errors import SpecError
from likely.core.spec import Spec, registered
from likely.optim import Constant, Cosine, Exponential, InverseSqrt, Linear, OneCycle, Schedule, StepDecay

EVERY = [cls.example() for cls in registered(Schedule).values() if cls.__module__.startswith("likely.")]
WARM = [Linear(warmup=10), Cosine(warmup=10), Linear(warmup=0.1), Cosine(warmup=0.1)]


@pytest.mark.parametrize("schedule", [*EVERY, *WARM], ids=str)
@pytest.mark.parametrize("total", [1, 2, 3, 7, 100])
def test_factors_lie_between_zero_and_one(schedule, total):
    factors = [schedule.factor(step, total) for step in range(total + 3)]
    assert all(isinstance(factor, float) and 0 <= factor <= 1 for factor in factors)
    assert max(factors) > 0


@pytest.mark.parametrize("schedule", [*EVERY, *WARM], ids=str)
def test_text_and_json_round_trip(schedule):
    assert Schedule.parse(repr(schedule)) == schedule
    assert Spec.from_json(schedule.to_json()) == schedule


@pytest.mark.parametrize("schedule", [Constant(), StepDecay(), Exponential(), Linear(), Cosine()], ids=str)
def test_without_warm_up_they_start_at_one_and_never_rise(schedule):
    factors = [schedule.factor(step, 50) for step in range(50)]
    assert factors[0] == 1
    assert factors == sorted(factors, reverse=True)


@pytest.mark.parametrize("schedule", WARM, ids=str)
def test_warm_up_rises_in_a_line_to_one(schedule):
    """10 steps of 100, given as a number or as a fraction."""
    factors = [schedule.factor(step, 100) for step in range(100)]
    assert factors[:10] == pytest.approx([(step + 1) / 11 for step in range(10)])
    assert factors[10] == 1
    assert factors[10:] == sorted(factors[10:], reverse=True)


@pytest.mark.parametrize(("schedule", "half"), [(Linear(final=0.2), 0.6), (Cosine(final=0.2), 0.6)])
def test_half_way_down_is_the_mean_of_the_ends_and_the_end_is_final(schedule, half):
    assert schedule.factor(50, 100) == pytest.approx(half)
    assert schedule.factor(100, 100) == pytest.approx(0.2)
    assert schedule.factor(500, 100) == pytest.approx(0.2)


def test_cosine_agrees_with_torch():
    optimizer = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=1.0)
    peer = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=40, eta_min=0.1)
    for step in range(40):
        assert Cosine(final=0.1).factor(step, 40) == pytest.approx(peer.get_last_lr()[0], abs=1e-12)
        optimizer.step()
        peer.step()


@pytest.mark.parametrize("total", [10, 37, 200])
def test_one_cycle_agrees_with_torch(total):
    optimizer = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=1.0)
    peer = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=1.0, total_steps=total, cycle_momentum=False)
    for step in range(total):
        assert OneCycle().factor(step, total) == pytest.approx(peer.get_last_lr()[0], abs=1e-12)
        optimizer.step()
        if step + 1 < total:
            peer.step()


def test_step_decay_counts_steps_or_fractions():
    assert [StepDecay(3, 0.5).factor(step, 9) for step in (0, 2, 3, 5, 6)] == [1, 1, 0.5, 0.5, 0.25]
    assert [StepDecay(0.1, 0.5).factor(step, 30) for step in (2, 3, 5, 6, 9)] == [1, 0.5, 0.5, 0.25, 0.125]


def test_exponential_falls_by_e_rate_times():
    assert Exponential(3.0).factor(10, 30) == pytest.approx(math.exp(-1))
    assert Exponential(3.0).factor(30, 30) == pytest.approx(math.exp(-3))


def test_inverse_sqrt_is_that_of_the_transformer():
    """√w·min(s^−½, s·w^−1½) at step s = 1, 2, …"""
    for s in (1, 5, 16, 17, 100):
        expected = math.sqrt(16) * min(s**-0.5, s * 16**-1.5)
        assert InverseSqrt(warmup=16).factor(s - 1, 1_000) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: StepDecay(every=0), "every must be positive: a number of steps, or a fraction of them when below 1"),
        (lambda: StepDecay(decay=2), "decay must be above 0 and at most 1"),
        (lambda: Exponential(rate=-1), "rate must be 0 or more"),
        (lambda: Cosine(final=2), r"Cosine\(final=2\): final must be 0 or more and at most 1"),
        (lambda: Linear(warmup=-3), "warmup must be 0 or more: a number of steps"),
        (lambda: OneCycle(warmup=10), "warmup must be a fraction of the steps"),
        (lambda: OneCycle(start="low"), "start must be 0 or more and at most 1"),
        (lambda: InverseSqrt(warmup=None), "warmup must be 0 or more"),
    ],
)
def test_a_wrong_argument_is_named(make, message):
    with pytest.raises(SpecError, match=message):
        make()
