import math

import numpy as np
import pytest

from likely.sampling.dual_averaging import CALM, DualAveraging


@pytest.mark.parametrize("target", [0.5, 0.8, 0.95])
@pytest.mark.parametrize("first", [1e-4, 1.0, 1e4])
def test_the_settled_step_is_accepted_as_often_as_asked(first, target):
    """Acceptance exp(−ε) has the one solution ε = −log target, wherever the search begins."""
    state = DualAveraging.start(first)
    for _ in range(2000):
        state = state.after(math.exp(-state.step), target)
    assert math.exp(-state.settled) == pytest.approx(target, abs=0.02)


def test_a_step_that_is_never_accepted_falls_and_one_that_always_is_grows():
    falling = growing = DualAveraging.start(1.0)
    for _ in range(50):
        falling, growing = falling.after(0.0, 0.8), growing.after(1.0, 0.8)
    assert falling.settled < 1e-3
    assert growing.settled > 10
    for _ in range(10_000):
        falling, growing = falling.after(0.0, 0.8), growing.after(1.0, 0.8)
    assert 0 < falling.step < growing.step < math.inf


def test_a_calm_pace_is_not_misled_by_noise(seed):
    """Acceptances are 0 or 1 with the mean exp(−ε²): after 200 steps, 0.574 is met within 0.04 on average.

    Runs end at 0.589 ± 0.048, so the mean of 100 is farther off with a probability of 2e-7; at a bold pace it is 0.635.
    """
    rng, settled = np.random.default_rng(seed), []
    for _ in range(100):
        state = DualAveraging.start(1.0, CALM)
        for _ in range(200):
            state = state.after(float(rng.random() < math.exp(-(state.step**2))), 0.574)
        settled.append(math.exp(-(state.settled**2)))
    assert np.mean(settled) == pytest.approx(0.574, abs=0.04)
