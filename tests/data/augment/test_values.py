"""Augmentations of values: noise, holes, grey as chance, and rows between rows."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from tests.data.augment.conftest import some

from likely import Regressor
from likely.core.errors import DataError
from likely.core.random import isolated
from likely.data.augment import (
    Binarise,
    Cutout,
    Jitter,
    Mixup,
)
from likely.data.rows import Ragged
from likely.inference import MAP
from likely.likelihoods import Normal
from likely.networks import Linear
from likely.optim import SGD


def test_a_hole_is_a_square_of_the_size_asked_for():
    holes = Cutout(3)(torch.ones(300, 2, 9, 9)) == 0
    assert torch.equal(holes[:, 0], holes[:, 1])
    heights, widths = holes[:, 0].any(2).sum(1), holes[:, 0].any(1).sum(1)
    assert torch.equal(heights * widths, holes[:, 0].sum((1, 2)))
    assert {2, 3} == set(heights.tolist()) == set(widths.tolist())
    assert bool(holes.any(0).all())  # anywhere


def test_noise_has_its_standard_deviation(seed):
    """Of 40,000 numbers it is within 5 standard errors, but for 1 of 10⁶ seeds."""
    torch.manual_seed(seed)
    noise = Jitter(0.5)(torch.zeros(100, 400))
    assert abs(float(noise.std()) - 0.5) < 5 * 0.5 / (2 * 40_000) ** 0.5
    ragged = Jitter(0.5)(Ragged.of([[[1.0], [2.0]], [[3.0]]]))
    assert ragged.values.shape == (3, 1)


def test_mixup_gives_two_copies_of_rows_between_rows():
    x, y = some((50, 3)), torch.arange(50.0)
    weight = torch.rand(50)
    mixed, targets, weights = Mixup(1.0).batch(x, y, weight)
    first, second = targets.long().split(50)
    assert torch.equal(first, torch.arange(50))
    share = weights[:50] / weight
    torch.testing.assert_close(weights[50:], (1 - share) * weight[second])
    torch.testing.assert_close(mixed[:50], share[:, None] * x[first] + (1 - share[:, None]) * x[second])
    assert torch.equal(mixed[:50], mixed[50:])


def test_mixup_weighs_positions_alike():
    _, y, weights = Mixup(1.0).batch(some((5, 3)), some((5, 4)), None, (4,))
    assert y.shape == weights.shape == (10, 4)
    torch.testing.assert_close(weights[:5] + weights[5:], torch.ones(5, 4))


def test_mixup_trains_on_the_weighted_sum_of_both_losses():
    """One step of gradient descent on Σ λ(y₁ − f)²/2 + (1 − λ)(y₂ − f)²/2, written out."""

    class _Fixed(Mixup):
        def batch(self, x, y, weight, positions=()):
            with isolated(3):
                return super().batch(x, y, weight, positions)

    X, y = some((8, 2)).double().numpy(), np.arange(8.0)
    training = MAP(SGD(0.1), epochs=1, batch_size=None, augment=_Fixed(1.0))
    model = Regressor(Normal(1.0), Linear(), inference=training, random_state=0).fit(X, y)
    rows, targets, weights = (part.double() for part in _Fixed(1.0).batch(*map(torch.tensor, (X, y)), None))
    design = torch.cat([rows, torch.ones(16, 1)], 1)
    start = torch.tensor([0.0, 0.0, 3.5])
    expected = start - 0.1 * design.T @ (weights * (design @ start.double() - targets)) / 8
    np.testing.assert_allclose([*model.coef_, float(model.intercept_)], expected, atol=1e-5)


def test_rows_between_rows_need_rows_of_one_shape():
    with pytest.raises(DataError, match="needs rows of one shape; X has sequences"):
        Mixup().batch(Ragged.of([[1.0, 2.0], [3.0]]), torch.ones(2), None)


def test_binarised_pixels_have_the_means_of_grey_ones(seed):
    """Means of 40,000 draws, 6 standard errors (a false alarm in 4 of 10⁹ seeds); values outside [0, 1] are refused."""
    x = torch.tensor([[0.0, 0.25, 0.9, 1.0]]).expand(40_000, 4)
    with isolated(seed):
        drawn = Binarise()(x)
    assert set(drawn.unique().tolist()) == {0.0, 1.0}
    torch.testing.assert_close(drawn.mean(0), x[0], rtol=0, atol=6 * 0.5 / 200)
    for bad in (torch.tensor([[2.0]]), torch.tensor([[-0.1]]), torch.tensor([[float("nan")]])):
        with pytest.raises(DataError, match="needs numbers between 0 and 1"):
            Binarise()(bad)
