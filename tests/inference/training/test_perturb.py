"""What training does to a batch: augmentations of each member apart, and noise of the scale that was asked for."""

from __future__ import annotations

import math

import torch

from likely.inference.dataset import Batch
from likely.inference.training.perturb import augmented, noisy

X, Y, WEIGHT = torch.arange(12.0).reshape(6, 2), torch.arange(6.0), torch.ones(6)


class Doubled:
    """Each row twice, with half of its weight."""

    def batch(self, x, y, weight, positions):
        return torch.cat([x, -x]), torch.cat([y, y]), torch.cat([weight, weight]) / 2


def test_a_function_changes_x_alone():
    changed = augmented(lambda x: 2 * x, Batch(X, Y, WEIGHT), (), 1)
    assert torch.equal(changed.x, 2 * X)
    assert changed.y is Y
    assert changed.weight is WEIGHT


def test_a_method_may_give_more_rows_of_the_same_total_weight():
    changed = augmented(Doubled(), Batch(X, Y, WEIGHT), (), 1)
    assert torch.equal(changed.x, torch.cat([X, -X]))
    assert float(changed.weight.sum()) == float(WEIGHT.sum())


def test_members_are_augmented_apart():
    calls = []

    def shift(x):
        calls.append(x)
        return x + len(calls)

    together = Batch(torch.stack([X, X]), torch.stack([Y, Y]), None)
    changed = augmented(shift, together, (), 2)
    assert torch.equal(changed.x, torch.stack([X + 1, X + 2]))
    assert torch.equal(changed.y, torch.stack([Y, Y]))
    assert changed.weight is None
    wide = augmented(Doubled(), Batch(torch.stack([X, X]), torch.stack([Y, Y]), torch.stack([WEIGHT, WEIGHT])), (), 2)
    assert wide.x.shape == (2, 12, 2)
    assert wide.weight.shape == (2, 12)


def test_noise_has_its_scale_and_leaves_x_alone():
    """40,000 numbers: the deviation is off by less than 6/√80,000 of itself."""
    x = torch.zeros(200, 200)
    changed = noisy(x, 0.3)
    assert float(x.abs().max()) == 0.0
    assert abs(float(changed.std()) / 0.3 - 1) < 6 / math.sqrt(80_000)
    assert abs(float(changed.mean())) < 6 * 0.3 / 200
