"""HMC as an inference: its fields are those of the sampler, and a whitened posterior needs no learned trajectory."""

from __future__ import annotations

import math

import pytest

from likely.core.errors import SpecError
from likely.inference import HMC
from likely.sampling import hmc


def test_the_sampler_has_the_values_that_were_given():
    spec = HMC(step_size=0.1, trajectory=2.0, acceptance=0.9, max_steps=7)
    assert spec.sampler() == hmc.HMC(step_size=0.1, trajectory=2.0, acceptance=0.9, max_steps=7)
    assert spec.sampler(whitened=True) == spec.sampler()


def test_the_trajectory_of_a_whitened_posterior_is_up_to_half_a_turn():
    """x(t) = x cos t + v sin t: lengths spread over (0, π] have mean correlation ∫₀^π cos t dt / π = 0."""
    assert HMC().sampler(whitened=True).trajectory == math.pi
    assert HMC().sampler().trajectory is None
    assert HMC(step_size=0.1).sampler(whitened=True).trajectory is None  # fixed steps, in the units that were asked for


@pytest.mark.parametrize("options", [{"step_size": 0.0}, {"acceptance": 1.0}, {"max_steps": 0}, {"trajectory": -1.0}])
def test_what_the_sampler_refuses_the_inference_refuses(options):
    (name,) = options
    with pytest.raises(SpecError, match=f"{name} must be"):
        HMC(**options)
