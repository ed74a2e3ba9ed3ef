"""NUTS as an inference: its fields are those of the sampler, and a tree of depth k has at most 2^k − 1 steps."""

from __future__ import annotations

import pytest

from likely.core.errors import SpecError
from likely.inference import NUTS
from likely.sampling import nuts


def test_the_sampler_has_the_values_that_were_given():
    spec = NUTS(step_size=0.1, acceptance=0.9, max_depth=3)
    assert spec.sampler() == nuts.NUTS(step_size=0.1, acceptance=0.9, max_depth=3)
    assert spec.sampler(whitened=True) == spec.sampler()


def test_the_example_is_short():
    example = NUTS.example()
    assert example.chains * (example.draws * example.thin + example.warmup) * 2**example.max_depth < 100


@pytest.mark.parametrize("options", [{"step_size": 0.0}, {"acceptance": 0.0}, {"max_depth": 0}])
def test_what_the_sampler_refuses_the_inference_refuses(options):
    (name,) = options
    with pytest.raises(SpecError, match=f"{name} must be"):
        NUTS(**options)
