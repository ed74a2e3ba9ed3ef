"""The step that a column was recorded to."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from likely.models.generative.rounding import on_grid, step_of


@settings(deadline=None, max_examples=100)
@given(st.lists(st.integers(-10_000, 10_000), min_size=2, max_size=20), st.sampled_from([1.0, 5.0, 0.1, 0.005, 0.0025]))
def test_values_are_multiples_of_the_step_and_stay_as_they_are(counts, step):
    values = torch.tensor([round(count * step, 4) for count in counts], dtype=torch.float64)
    coarse = step_of(values)
    assert coarse is not None
    assert coarse >= step - 1e-12 or not any(counts)
    np.testing.assert_array_equal(on_grid(values, coarse), values)
    np.testing.assert_array_equal(on_grid(values.float().double(), coarse), values)


@pytest.mark.parametrize(
    ("values", "step"), [([0.455, 0.365], 0.005), ([3.0, 7.0], 1.0), ([0.0, 0.0], 1.0), ([1.23456, 1.0], None)]
)
def test_known_steps(values, step):
    assert step_of(torch.tensor(values, dtype=torch.float64)) == (step if step is None else pytest.approx(step))
