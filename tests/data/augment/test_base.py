"""What holds for every augmentation: shapes, seeds, sums, and what is said of rows that it cannot take."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits
from tests.data.augment.conftest import some

from likely import Classifier
from likely.core.errors import DataError, SpecError
from likely.core.spec import Spec, registered
from likely.data.augment import (
    Augment,
    Compose,
    Crop,
    Cutout,
    Elastic,
    Flip,
    Jitter,
    Mixup,
    QuarterTurn,
    Rotate,
    Shift,
)
from likely.data.rows import Ragged
from likely.inference import MAP, Ensemble
from likely.networks import MLP

SHAPES = {"images": (6, 3, 8, 10), "signals": (6, 2, 12), "plain signals": (6, 12)}
STILL = [
    Flip(0.0),
    Flip(0.0, "vertical"),
    Crop(0),
    Crop(0, "edge"),
    Crop(0, "reflect"),
    Shift(0),
    Rotate(0.0),
    Elastic(0.0),
    Jitter(0.0),
    Cutout(0),
    Mixup(0.0),
    Compose(),
]


def takes(augment, shape):
    flat = (Rotate(), Rotate(0.0), Elastic(), Elastic(0.0), Flip(0.0, "vertical"))
    return augment != QuarterTurn() and (len(shape) == 4 or augment not in flat)


def every():
    return [cls.example() for name, cls in registered(Augment).items() if name != "Mixup"]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("augment", every(), ids=repr)
def test_shape_and_dtype_are_kept_and_x_stays_as_it_was(augment, shape, dtype):
    if not takes(augment, shape):
        return
    x = some(shape, dtype)
    before = x.clone()
    changed = augment(x)
    assert (changed.shape, changed.dtype) == (x.shape, dtype)
    assert torch.equal(x, before)
    assert not torch.equal(changed, x)


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("augment", STILL, ids=repr)
def test_without_strength_nothing_changes(augment, shape):
    if not takes(augment, shape):
        return
    x, y = some(shape), torch.arange(6.0)
    assert torch.equal(augment(x), x)
    batch = augment.batch(x, y, None)
    assert torch.equal(batch[0], x)
    assert torch.equal(batch[1], y)
    assert batch[2] is None


@pytest.mark.parametrize("augment", [*every(), Mixup()], ids=repr)
def test_the_same_seed_gives_the_same_batch(augment):
    def drawn(seed):
        torch.manual_seed(seed)
        return augment.batch(some((6, 1, 8, 8)), torch.arange(6.0), None)[0]

    assert torch.equal(drawn(1), drawn(1))
    assert not torch.equal(drawn(1), drawn(2))


def test_sums_are_one_after_the_other():
    both = Flip(1.0) + Shift(0) + Crop(0)
    assert both == Compose((Flip(1.0), Shift(0), Crop(0))) == Spec.from_json(both.to_json())
    x = some((2, 5))
    assert torch.equal(both(x), x.flip(1))
    batch = (Flip(1.0) + Mixup(1.0)).batch(x, torch.zeros(2), None)
    assert len(batch[0]) == 4


def test_specs_are_replaced_by_a_call_too():
    assert Flip()(probability=0.1) == Flip(0.1)


# --- in training ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("augment", [Crop(1), Mixup(0.5), torch.sin], ids=["crop", "mixup", "sine"])
def test_members_of_an_ensemble_are_augmented_like_one_model(augment):
    X, y = load_digits(n_class=3, return_X_y=True)
    images = (X[:60] / 16).reshape(-1, 1, 8, 8)
    training = Ensemble(3, by=MAP(epochs=2, batch_size=20, augment=augment))
    models = [Classifier(network=MLP((8,)), inference=training, random_state=0).fit(images, y[:60]) for _ in range(2)]
    assert "history" in models[0].posterior_.info  # one stacked program
    np.testing.assert_array_equal(*(model.predict_proba(images) for model in models))


# --- bad input ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Flip(1.5), r"probability must be between 0 and 1"),
        (lambda: Crop(-1), r"padding must be 0 or more positions"),
        (lambda: Shift(-1), "reach must be 0 or more"),
        (lambda: Rotate(270.0), "degrees must be between 0 and 180"),
        (lambda: Cutout(-2), "size must be 0 or more"),
        (lambda: Mixup(-1.0), "alpha must be 0 or a positive number"),
        (lambda: Compose((3,)), "parts must be a list of augmentations"),
        (lambda: Mixup()(torch.ones(2, 2)), "changes targets too"),
    ],
)
def test_bad_arguments_are_named(make, message):
    with pytest.raises(SpecError, match=message):
        make()


@pytest.mark.parametrize(
    ("augment", "x", "message"),
    [
        (Rotate(), torch.ones(2, 3, 4), r"Rotate\(\) needs images \(n, c, h, w\); X has shape \(2, 3, 4\)"),
        (Flip(direction="vertical"), torch.ones(2, 3), "needs images"),
        (Crop(), Ragged.of([[1.0, 2.0], [3.0]]), "or signals .*; X has sequences of any size"),
        (Crop(4), torch.ones(1, 1, 4, 4), "needs more than 4 positions"),
        (Jitter(), torch.ones(2, 2, dtype=torch.uint8), "needs real numbers; X has torch.uint8"),
        (Shift(), torch.ones(1, 1, 1, 1, 1), "needs images"),
    ],
)
def test_rows_that_it_cannot_take(augment, x, message):
    with pytest.raises(DataError, match=message):
        augment(x)
