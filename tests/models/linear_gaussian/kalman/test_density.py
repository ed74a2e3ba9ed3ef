"""The differentiable density of series: that of the filter, with its gradient."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from likely.data.rows import Ragged
from likely.models.linear_gaussian.kalman.density import series_log_prob
from likely.models.linear_gaussian.kalman.recursion import System, observe, run_filter


@pytest.fixture
def systems(make_system):
    return [make_system(0), make_system(1)]


def stacked(systems):
    return {name: torch.from_numpy(np.stack([getattr(s, name) for s in systems])) for name in System._fields}


def test_it_is_the_filter_of_two_systems_with_missing_values(systems, holes):
    x, starts = holes
    values = series_log_prob(stacked(systems), Ragged(torch.from_numpy(x), torch.from_numpy(starts)))
    expected = np.stack([run_filter(observe(Ragged.from_numpy(x, starts)), system).log_prob for system in systems], 1)
    np.testing.assert_allclose(values, expected, rtol=1e-10)


def test_what_is_missing_everywhere_says_nothing(systems):
    nothing = Ragged(torch.full((3, 2), torch.nan, dtype=torch.float64), torch.tensor([0, 3]))
    np.testing.assert_allclose(series_log_prob(stacked(systems), nothing), np.zeros((1, 2)), atol=1e-14)


@pytest.mark.parametrize("name", System._fields)
def test_the_gradient_is_that_of_differences(systems, holes, name):
    x = Ragged(torch.from_numpy(holes[0]), torch.from_numpy(holes[1]))
    params = stacked(systems)
    start = params[name].clone().requires_grad_()
    series_log_prob(params | {name: start}, x).sum().backward()
    step = torch.randn_like(start)
    if name.endswith("covariance"):
        step = step + step.mT
    there, back = (series_log_prob(params | {name: params[name] + h * step}, x).sum() for h in (1e-6, -1e-6))
    assert float((start.grad * step).sum()) == pytest.approx(float(there - back) / 2e-6, rel=1e-5, abs=1e-5)
