"""MetropolisHastings as an inference: it needs values of log p only, and its fields are those of the sampler."""

from __future__ import annotations

import pytest

from likely.core.errors import SpecError
from likely.inference import MetropolisHastings
from likely.sampling import metropolis_hastings


def test_the_sampler_has_the_values_that_were_given():
    spec = MetropolisHastings(step_size=0.3, acceptance=0.4)
    assert spec.sampler() == metropolis_hastings.MetropolisHastings(step_size=0.3, acceptance=0.4)
    assert MetropolisHastings().sampler() == metropolis_hastings.MetropolisHastings()


def test_steps_that_resemble_one_another_are_thinned_by_default():
    assert MetropolisHastings().thin > 10
    assert MetropolisHastings().warmup >= 1000


@pytest.mark.parametrize("options", [{"step_size": 0.0}, {"acceptance": 1.5}])
def test_what_the_sampler_refuses_the_inference_refuses(options):
    (name,) = options
    with pytest.raises(SpecError, match=f"{name} must be"):
        MetropolisHastings(**options)
