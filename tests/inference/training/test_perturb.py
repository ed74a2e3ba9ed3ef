"""What training does to a batch: augmentations of each member apart, and noise of the scale that was asked for."""

from __future__ import annotations

import math

import torch

from likely.data.augment import Binarise, Flip
from likely.inference.dataset import Batch, Dataset
from likely.inference.training.perturb import as_held_out, augmented, noisy

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


def test_noise_has_its_scale_and_leaves_x_alone(seed):
    """40,000 numbers: the deviation is off by less than 6/√80,000 of itself, the mean by less than 6 standard errors: a
    false alarm in 4 of 10⁹ seeds.
    """
    torch.manual_seed(seed)
    x = torch.zeros(200, 200)
    changed = noisy(x, 0.3)
    assert float(x.abs().max()) == 0.0
    assert abs(float(changed.std()) / 0.3 - 1) < 6 / math.sqrt(80_000)
    assert abs(float(changed.mean())) < 6 * 0.3 / 200


def test_held_out_rows_are_drawn_once_where_the_model_is_one_of_draws(seed):
    """Half of 400 grey pixels become 1, within 6 standard errors; without `Binarise` rows stay what they are.

    A false alarm in 1 of 10⁸ seeds, by the binomial distribution.
    """
    grey = torch.tensor([0.0, 0.5, 0.5, 1.0]).expand(300, 4)
    data = Dataset(grey, None, None, torch.float32, condition=torch.arange(300.0)[:, None]).subset(
        torch.arange(200) + 9
    )
    for augment in (Binarise(), Flip(0.5) + Binarise()):
        held = as_held_out(augment, data, seed)
        assert set(held.x.unique().tolist()) == {0.0, 1.0}
        assert torch.equal(held.x[:, [0, 3]], grey[:200, [0, 3]])  # flips are for training alone
        assert abs(float(held.x[:, 1:3].mean()) - 0.5) < 6 * 0.5 / 20
        assert torch.equal(held.batch(slice(None)).condition, torch.arange(9.0, 209.0)[:, None])
        assert torch.equal(as_held_out(augment, data, seed).x, held.x)
    for augment in (None, Flip(), Flip() + Flip(), torch.sin):
        assert as_held_out(augment, data, 0) is data
