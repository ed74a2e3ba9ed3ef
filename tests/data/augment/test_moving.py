"""Augmentations that move pixels: flips, windows, turns and fields, and targets and boxes that move with them."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits
from tests.data.augment.conftest import some

from likely import Classifier
from likely.core.errors import DataError
from likely.data.augment import (
    Crop,
    Cutout,
    Elastic,
    Flip,
    Jitter,
    QuarterTurn,
    Rotate,
    Shift,
)
from likely.data.augment.moving import turned
from likely.inference import MAP
from likely.networks import MLP
from likely.optim import Adam

MOVERS = [Flip(), Flip(1.0, "vertical"), Crop(3), Crop(3, "reflect"), Shift(4), QuarterTurn()]


def boxed(count=20, width=20):
    """Images that are 1 in a box of 3 × 5 pixels and 0 elsewhere, with the box, its class, and one that is none."""
    x, boxes = torch.zeros(count, 1, 16, width), torch.full((count, 2, 5), torch.nan)
    for i in range(count):
        left, top = 6 + i % 4, 5 + i % 3
        x[i, 0, top : top + 3, left : left + 5] = 1
        boxes[i, 0] = torch.tensor([left, top, left + 5, top + 3, i])
    return x, boxes


@pytest.mark.parametrize("direction", ["horizontal", "vertical"])
def test_flips(direction):
    x, always = some((6, 3, 8, 10)), Flip(1.0, direction)
    assert torch.equal(always(x), x.flip(3 if direction == "horizontal" else 2))
    assert torch.equal(always(always(x)), x)
    images = Flip(0.5, direction)(x.repeat(100, 1, 1, 1))
    flipped = (images != x.repeat(100, 1, 1, 1)).flatten(1).any(1)
    assert abs(flipped.float().mean() - 0.5) < 5 * (0.25 / 600) ** 0.5


@pytest.mark.parametrize(("fill", "mode"), [("zeros", "constant"), ("edge", "replicate"), ("reflect", "reflect")])
def test_a_crop_is_a_window_of_the_padded_image(fill, mode):
    x = some((40, 2, 6, 7))
    padded = torch.nn.functional.pad(x, (2, 2, 2, 2), mode=mode)
    cropped, places = Crop(2, fill)(x), set()
    for row in range(40):
        windows = {(i, j): padded[row, :, i : i + 6, j : j + 7] for i in range(5) for j in range(5)}
        match = [place for place, window in windows.items() if torch.equal(window, cropped[row])]
        assert match
        places.add(match[0])
    assert len(places) > 12


def test_a_shift_is_a_roll_of_every_row():
    x = some((30, 2, 9))
    shifted = Shift(3)(x)
    rolls = [{k for k in range(-3, 4) if torch.equal(x[i].roll(k, 1), shifted[i])} for i in range(30)]
    assert all(len(fitting) == 1 for fitting in rolls)
    assert set.union(*rolls) == set(range(-3, 4))


@pytest.mark.parametrize("quarters", [0, 1, 2, 3, -1])
def test_a_turn_by_right_angles_is_rot90(quarters):
    x = some((3, 2, 9, 9), torch.float64)
    rotated = turned(x, torch.full((3,), 90.0 * quarters))
    torch.testing.assert_close(rotated, torch.rot90(x, quarters, (2, 3)), rtol=0, atol=1e-6)


def test_a_half_turn_of_an_oblong_image_and_a_turn_back():
    x = some((2, 1, 8, 12), torch.float64)
    torch.testing.assert_close(turned(x, torch.full((2,), 180.0)), x.flip(2, 3), rtol=0, atol=1e-6)
    row, column = torch.meshgrid(torch.arange(32.0) - 15.5, torch.arange(48.0) - 23.5, indexing="ij")
    smooth = torch.exp(-(row**2 + (column - 4) ** 2) / 30).expand(1, 1, 32, 48)
    back = turned(turned(smooth, torch.tensor([20.0])), torch.tensor([-20.0]))
    assert (back - smooth).abs().max() < 0.03  # interpolated twice
    quarter = torch.exp(-((row + 4) ** 2 + column**2) / 30)  # what was at the right is at the top, and not stretched
    assert (turned(smooth, torch.tensor([90.0])) - quarter).abs().max() < 1e-3


def test_angles_stay_within_their_range():
    """A bright point at radius 10 to the right; its angle after the turn is that of the turn, to a pixel."""
    x = torch.zeros(200, 1, 31, 31)
    x[:, :, 15, 25] = 1
    rotated = Rotate(30.0)(x)[:, 0]
    axis = torch.arange(31.0) - 15
    up, right = -(rotated.sum(2) @ axis) / rotated.sum((1, 2)), (rotated.sum(1) @ axis) / rotated.sum((1, 2))
    angle = torch.rad2deg(torch.atan2(up, right))
    assert 24 < angle.max() < 31
    assert -31 < angle.min() < -24


def test_shifts_raise_accuracy_on_few_digits():
    """Digits that may stand anywhere: 100 to learn from, two seeds, the difference is many points."""
    X, y = load_digits(return_X_y=True)
    images = np.zeros((len(X), 1, 12, 12), dtype=np.float32)
    for row, place in enumerate(np.random.default_rng(0).integers(5, size=(len(X), 2))):
        i, j = place
        images[row, 0, i : i + 8, j : j + 8] = X[row].reshape(8, 8) / 16
    order = np.random.default_rng(1).permutation(len(X))
    gains = []
    for seed in range(2):
        train, test = order[100 * seed : 100 * (seed + 1)], order[300:]
        scores = []
        for augment in (None, Crop(3)):
            training = MAP(Adam(0.005), epochs=80, batch_size=50, augment=augment)
            model = Classifier(network=MLP((64,)), inference=training, random_state=seed)
            scores.append(model.fit(images[train], y[train]).score(images[test], y[test]))
        gains.append(scores[1] - scores[0])
    assert min(gains) > 0.05


def test_crops_raise_accuracy_on_few_handwritten_digits(shared_data):
    """MNIST, 200 digits to learn from."""
    with np.load(shared_data / "mnist.npz", allow_pickle=False) as file:
        x, y, new, truth = (file[name][:1000] for name in ("x_train", "y_train", "x_test", "y_test"))
    images, new = ((pixels / np.float32(255))[:, None] for pixels in (x, new))
    scores = []
    for augment in (None, Crop(2)):
        training = MAP(Adam(0.003), epochs=80, batch_size=50, augment=augment)
        model = Classifier(network=MLP((64,)), inference=training, random_state=0).fit(images[:200], y[:200])
        scores.append(model.score(new, truth))
    assert scores[1] > scores[0] + 0.02


@pytest.mark.parametrize("augment", MOVERS, ids=repr)
def test_targets_move_with_their_pixels(augment):
    """A target that is what its pixel shows still is after every move; what came in from outside has no weight."""
    x = some((12, 1, 9, 9)) + 1
    moved, y, weight = augment.batch(x, x[:, 0].clone(), None, (9, 9))
    assert torch.equal(moved[:, 0], y)
    assert torch.equal(weight, (y != 0).float())
    assert not torch.equal(moved, x)


@pytest.mark.parametrize("augment", [Rotate(40.0), Elastic(2.0, 8)], ids=repr)
def test_labels_between_pixels_are_those_of_the_nearest(augment):
    """Labels stay labels, and lie where a bright region does, but for its border."""
    labels = torch.zeros(8, 40, 40)
    labels[:, 8:30, 12:34] = 3.0
    moved, y, weight = augment.batch(labels[:, None] / 3, labels, torch.full((8, 40, 40), 2.0), (40, 40))
    assert set(y.unique().tolist()) == {0.0, 3.0}
    assert set(weight.unique().tolist()) <= {0.0, 2.0}
    assert not torch.equal(y, labels)
    assert ((moved[:, 0] > 0.5) == (y > 0)).float().mean() > 0.99


def test_targets_of_several_numbers_move_together():
    x = some((6, 2, 5, 5))
    both = x.movedim(1, -1)
    moved, y, _ = (Flip() + QuarterTurn()).batch(x, both, None, (5, 5))
    assert torch.equal(moved.movedim(1, -1), y)


def test_quarter_turns_are_rot90_and_all_four_come():
    x = some((60, 2, 5, 5))
    turns = QuarterTurn()(x)
    quarters = [{k for k in range(4) if torch.equal(torch.rot90(x[i], k, (1, 2)), turns[i])} for i in range(60)]
    assert set.union(*quarters) == {0, 1, 2, 3}
    assert all(quarters)
    with pytest.raises(DataError, match="needs square images; X has images of 4 × 6 pixels"):
        QuarterTurn()(torch.ones(1, 1, 4, 6))


def test_an_elastic_field_has_the_reach_asked_for():
    """Of a ramp, values say where pixels come from; the bounds are 8 standard errors from the mean of many seeds."""
    ramp = torch.arange(96.0).expand(64, 1, 96, 96)
    moved = (Elastic(2.0, 24)(ramp) - ramp)[:, 0, 16:-16, 16:-16]
    assert 1.1 < moved.square().mean().sqrt() < 2.4  # between the points the field is a mean of several
    assert moved.diff(dim=-1).abs().mean() < 0.3  # and smooth


@pytest.mark.parametrize(
    "augment",
    [Flip(0.5), Flip(0.5, "vertical"), Crop(4), Flip() + Crop(3) + Jitter(0.0), Cutout(0), QuarterTurn()],
    ids=repr,
)
def test_boxes_stay_around_what_they_hold(augment):
    x, boxes = boxed(width=16 if isinstance(augment, QuarterTurn) else 20)
    changed, moved = augment.with_boxes(x, boxes)
    for image, (own, none) in zip(changed[:, 0], moved, strict=True):
        rows, columns = (image > 0.5).nonzero().T
        assert own[:4].tolist() == [columns.min(), rows.min(), columns.max() + 1, rows.max() + 1]
        assert bool(none.isnan().all())
    assert moved[:, 0, 4].tolist() == boxes[:, 0, 4].tolist()
    assert isinstance(augment, Cutout) or not torch.equal(moved[:, 0], boxes[:, 0])


def test_boxes_are_cut_at_the_border_and_gone_where_half_of_one_is_outside():
    x, boxes = torch.zeros(200, 1, 8, 8), torch.tensor([[[0.0, 0.0, 4.0, 8.0]]]).repeat(200, 1, 1)
    _, moved = Crop(3).with_boxes(x, boxes)
    left = moved[..., 0].isnan()
    assert bool(left.any())
    assert not bool(left.all())
    assert float(moved[~left].min()) == 0
    assert float(moved[~left].max()) <= 8
    assert bool(((moved[..., 2:] - moved[..., :2])[~left].prod(-1) > 16).all())


@pytest.mark.parametrize("augment", [Rotate(), Shift()], ids=repr)
def test_what_does_not_tell_where_boxes_go_says_so(augment):
    with pytest.raises(DataError, match="does not tell where boxes go; use Flip, Q"):
        augment.with_boxes(*boxed())
