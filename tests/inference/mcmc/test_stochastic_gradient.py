"""Schedules of step sizes and which steps are kept, as counted by hand."""

from __future__ import annotations

import math

import pytest

from likely.core.errors import SpecError
from likely.inference import SGHMC, SGLD

SIZES = {"chains": 2, "draws": 10, "warmup": 20, "thin": 8}
TOTAL = 20 + 10 * 8


@pytest.mark.parametrize("kind", [SGLD, SGHMC])
def test_a_constant_step_keeps_every_thin_th_after_the_warmup(kind):
    spec = kind(**SIZES)
    assert sorted(spec._kept()) == [20 + 8 * (k + 1) - 1 for k in range(10)]
    assert {spec._factor(t) for t in range(TOTAL)} == {1.0}


def test_decreasing_steps_fall_by_the_cube_root():
    """εₜ/ε = (1 + t/τ)^(−1/3) with τ a twentieth of the run: Σε diverges and Σε² grows slower, as theory asks."""
    spec = SGLD(**SIZES, schedule="decreasing")
    assert spec._factor(0) == 1.0
    assert spec._factor(TOTAL // 20) == pytest.approx(2 ** (-1 / 3), rel=1e-12)
    assert all(spec._factor(t + 1) < spec._factor(t) for t in range(TOTAL - 1))


@pytest.mark.parametrize("cycles", [1, 4, 5])
def test_cycles_begin_wide_and_are_kept_in_their_later_half(cycles):
    spec = SGLD(**SIZES, schedule="cyclical", cycles=cycles)
    length = TOTAL / cycles
    assert spec._factor(0) == 1.0
    assert spec._factor(round(length / 2)) == pytest.approx(0.5, abs=math.pi / length)
    kept = sorted(spec._kept())
    assert len(kept) == 10
    assert all((t + 1) % length > length / 2 - 1e-9 or (t + 1) % length < 1e-9 for t in kept)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"draws": 0}, "draws must be"),
        ({"step_size": 0.0}, "step_size must be a positive number"),
        ({"schedule": "slow"}, 'schedule must be "constant", "decreasing" or "cyclical"'),
        ({"schedule": "cyclical", "cycles": 11, "draws": 10}, "cycles must be at most draws=10"),
    ],
)
def test_values_that_will_not_do_are_refused(options, text):
    with pytest.raises(SpecError, match=text):
        SGLD(**options)
