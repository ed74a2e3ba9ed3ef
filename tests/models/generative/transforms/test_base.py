"""Elementwise transforms as a family: increasing, invertible, and with parameters that name their number."""

from __future__ import annotations

import pytest
import torch

from likely.models.generative.transforms import Affine, Spline, Transform
from likely.models.generative.transforms.base import _Elementwise

ELEMENTWISE = [Affine(), Spline(bins=5)]


@pytest.mark.parametrize("map", ELEMENTWISE)
def test_each_number_is_moved_by_its_own_parameters(map):
    """Of k numbers, `columns` says whose each raw parameter is: changing those of one number moves that one alone."""
    random = torch.Generator().manual_seed(0)
    x = torch.randn(4, 3, dtype=torch.float64, generator=random)
    raw = torch.randn(4, 3 * map.size, dtype=torch.float64, generator=random)
    owners = torch.tensor(list(map.columns(3)))
    assert owners.bincount().tolist() == [map.size] * 3
    z = map.forward(x, raw)[0]
    changed = map.forward(x, torch.where(owners == 1, raw + 0.5, raw))[0]
    assert torch.equal(z[:, [0, 2]], changed[:, [0, 2]])
    assert bool((z[:, 1] != changed[:, 1]).all())


@pytest.mark.parametrize("map", ELEMENTWISE)
def test_maps_increase(map):
    x = torch.linspace(-6, 6, 201, dtype=torch.float64)[:, None]
    raw = torch.randn(1, map.size, dtype=torch.float64, generator=torch.Generator().manual_seed(1)).expand(201, -1)
    z, log_gradient = map.forward(x, raw)
    assert bool((z.diff(dim=0) > 0).all())
    torch.testing.assert_close(map.inverse(z, raw), x)
    assert log_gradient.shape == x.shape


def test_the_axis_knows_its_values_by_name():
    assert Transform.parse("spline(bins=5)") == Spline(bins=5)
    assert isinstance(Transform.parse("affine"), _Elementwise)
