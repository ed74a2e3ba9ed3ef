"""First guesses: what points mean, and weights that give each component rows of its own."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from likely.models.emissions.starts import MOST, features, first_weights


def test_features_are_standardised_with_missing_ones_in_the_middle():
    rng = np.random.default_rng(0)
    x = rng.normal(5, 3, size=(200, 4))
    x[::3, 1] = np.nan
    points = features(torch.from_numpy(x))
    np.testing.assert_allclose(points.mean(0), 0, atol=1e-12)
    known = ~np.isnan(x)
    np.testing.assert_allclose((points**2).sum(0) / known.sum(0), 1)
    assert bool((points[~known] == 0).all())


def test_features_do_not_depend_on_units():
    x = torch.randn(50, 2, dtype=torch.float64)
    moved = x * torch.tensor([1e-6, 1e8], dtype=torch.float64) + torch.tensor([3.0, -1e9], dtype=torch.float64)
    np.testing.assert_allclose(features(moved), features(x), atol=1e-6)


def test_constant_and_empty_columns_are_0():
    x = torch.tensor([[1.0, torch.nan], [1.0, torch.nan]])
    np.testing.assert_array_equal(features(x), np.zeros((2, 2)))


def test_labels_become_indicators():
    """Two labels are as far apart as any other two, whatever their numbers."""
    x = torch.tensor([[0.0, 7.0], [1.0, 7.0], [5.0, 9.0], [torch.nan, 9.0]])
    points = features(x, torch.tensor([True, False]))
    np.testing.assert_array_equal(points[:, 1:], [[1, 0, 0], [0, 1, 0], [0, 0, 1], [0, 0, 0]])
    np.testing.assert_allclose(points[:, 0], [-1, -1, 1, 1])


@pytest.mark.parametrize("how", ["k-means++", "random"])
def test_each_row_has_one_component_and_each_component_a_row(how):
    points = np.random.default_rng(0).normal(size=(100, 3))
    weights = first_weights(points, 5, 3, how)
    assert weights.shape == (100, 5)
    torch.testing.assert_close(weights.sum(1), torch.ones(100, dtype=torch.float64))
    assert bool((weights.sum(0) > 0).all())
    assert bool(((weights == 0) | (weights == 1)).all())
    torch.testing.assert_close(first_weights(points, 5, 3, how), weights)
    assert not torch.equal(first_weights(points, 5, 4, how), weights)


def test_clusters_far_apart_are_found():
    rng = np.random.default_rng(1)
    label = rng.integers(3, size=300)
    points = 50.0 * label[:, None] + rng.normal(size=(300, 2))
    weights = first_weights(points, 3, 0, "k-means++")
    counts = torch.tensor([[weights[label == k, j].sum() for j in range(3)] for k in range(3)])
    assert sorted(counts.max(1).values.tolist()) == sorted(np.bincount(label).tolist())
    assert int((counts > 0).sum()) == 3


@pytest.mark.parametrize("how", ["k-means++", "random"])
def test_rows_without_weight_do_not_count_and_others_count_by_it(how):
    points = np.random.default_rng(0).normal(size=(60, 2))
    weight = torch.arange(60, dtype=torch.float64) % 3
    weights = first_weights(points, 4, 0, how, weight)
    torch.testing.assert_close(weights.sum(1), weight)


@pytest.mark.parametrize("how", ["k-means++", "random"])
def test_more_components_than_distinct_rows(how):
    weights = first_weights(np.zeros((5, 1)), 3, 0, how)
    assert bool((weights.sum(0) > 0).all())


@pytest.mark.parametrize("how", ["k-means++", "random"])
def test_of_very_many_rows_some_are_enough(how):
    points = np.random.default_rng(0).normal(size=(MOST + 500, 1))
    weights = first_weights(points, 2, 0, how)
    assert int(weights.sum()) == MOST
    assert bool((weights.sum(1) <= 1).all())
