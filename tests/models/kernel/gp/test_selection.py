"""Whether all rows are used, or inducing points stand for them."""

from __future__ import annotations

import pytest
import torch

from likely.core.errors import DataError
from likely.models.kernel.gp import selection
from likely.models.kernel.gp.selection import choose_inducing, inducing_points, refuse_many


def test_inducing_points_are_rows_without_repetition():
    x = torch.randn(50, 2, dtype=torch.float64)
    points = choose_inducing(x, 10, seed=0)
    assert points.shape == (10, 2)
    assert len(points.unique(dim=0)) == 10
    assert all(bool((x == point).all(1).any()) for point in points)
    assert torch.equal(points, choose_inducing(x, 10, seed=0))


def test_each_of_some_far_clusters_has_a_point():
    x = torch.arange(5.0).repeat_interleave(20).unsqueeze(-1) * 1e6 + torch.rand(100, 1)
    points = choose_inducing(x.double(), 5, seed=1)
    assert sorted((points / 1e6).floor().ravel().tolist()) == [0, 1, 2, 3, 4]


def test_as_many_points_as_rows_are_the_rows_themselves():
    x = torch.randn(4, 3)
    points = choose_inducing(x, 4, seed=0)
    assert torch.equal(points, x)
    assert points.data_ptr() != x.data_ptr()


def test_auto_uses_all_rows_as_long_as_they_are_few(monkeypatch):
    monkeypatch.setattr(selection, "AUTO_ROWS", 8)
    monkeypatch.setattr(selection, "AUTO_POINTS", 3)
    x = torch.randn(9, 1, dtype=torch.float64)
    assert inducing_points(x[:8], "auto", seed=0) is None
    assert inducing_points(x, "auto", seed=0).shape == (3, 1)
    assert inducing_points(x, 5, seed=0).shape == (5, 1)
    assert inducing_points(x, None, seed=0) is None


def test_too_many_rows_are_refused_with_a_remedy():
    with pytest.raises(DataError, match=r"X has 10,001 rows; .* takes up to 10,000 .*inducing=500 or \"auto\""):
        inducing_points(torch.zeros(10_001, 1), None, seed=0)
    with pytest.raises(DataError, match="X has 6,000 rows and 2 latent functions"):
        refuse_many(6_000, 2, "take fewer")
    refuse_many(5_000, 2, "take fewer")
