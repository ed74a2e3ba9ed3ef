from __future__ import annotations

import torch

from likely.inference import Problem, RowDensity
from likely.inference.coordinates import CoordinateDensity, Coordinates
from likely.inference.dataset import Dataset
from likely.inference.log_posterior import LogPosterior
from likely.inference.mode import descended, initialised, mode_of
from likely.priors import Flat


class TwoHills(torch.nn.Module):
    """log p of θ alone: a low hill around −3 and a high one around 3."""

    def __init__(self, seed):
        super().__init__()
        generator = torch.Generator().manual_seed(seed)
        self.place = torch.nn.Parameter(4 * torch.randn(1, 1, generator=generator, dtype=torch.float64))

    def forward(self, x):
        low = -0.5 * (self.place + 3).square() - 2.0
        high = -0.5 * (self.place - 3).square()
        return torch.logaddexp(low, high).reshape(1) + 0 * x[:, 0]


def hills():
    data = Dataset(torch.zeros(1, 1, dtype=torch.float64), None, None, torch.float64)
    return LogPosterior(Problem(TwoHills, RowDensity("TwoHills"), Flat(), data, seed=0))


def test_the_higher_of_two_modes_is_found():
    torch.testing.assert_close(mode_of(hills()), torch.tensor([3.0], dtype=torch.float64), rtol=1e-4, atol=0)


def test_no_point_descends_to_a_lower_one():
    target = hills()
    start = initialised(target, 6)
    density = CoordinateDensity(target, Coordinates(torch.zeros(1, dtype=torch.float64)))
    end = descended(density, start, 20)
    assert len({float(value) for value in start}) == 6
    assert bool((target(end) >= target(start)).all())
