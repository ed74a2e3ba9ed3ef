"""Models of one size answer for others; tiles agree with the whole; weights of pixels count as so many pixels."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import likely
from likely import Classifier, Regressor
from likely.core.errors import DataError, SpecError
from likely.data.augment import Flip
from likely.inference import MAP
from likely.models.segmentation import Segmented, _spans, segment
from likely.networks import MLP, ConvNet, ResNet, UNet, ViT
from likely.optim import SGD, Adam

RNG = np.random.default_rng(0)


def scene(rows, height, width):
    """Dark discs on noise, and where they are."""
    down, across = np.mgrid[:height, :width]
    images, masks = [], []
    for _ in range(rows):
        centre, radius = RNG.uniform(0.2, 0.8, 2) * [height, width], RNG.uniform(4, 8)
        inside = (down - centre[0]) ** 2 + (across - centre[1]) ** 2 < radius**2
        images.append(RNG.normal(size=(1, height, width)) * 0.3 - inside)
        masks.append(np.where(inside, "disc", "ground"))
    return np.array(images, np.float32), np.array(masks)


@pytest.fixture(scope="module")
def model():
    training = MAP(Adam(0.03), epochs=8, batch_size=4, augment=Flip())
    return Classifier(network=UNet((4, 8)), inference=training, random_state=0).fit(*scene(12, 32, 32))


# --- other sizes ----------------------------------------------------------------------------------------------------
def test_a_unet_answers_for_images_of_other_sizes(model, tmp_path):
    images, masks = scene(3, 45, 70)
    assert model.predict(images).shape == masks.shape
    assert model.score(images, masks) > (masks == "ground").mean()
    assert model.log_prob(images, masks).shape == (3,)
    model.save(tmp_path / "discs.likely")
    np.testing.assert_array_equal(likely.load(tmp_path / "discs.likely").predict(images), model.predict(images))
    with pytest.raises(DataError, match=r"y has targets at \(45, 69\) positions, but X has images of \(45, 70\)"):
        model.score(images, masks[:, :, 1:])


def test_the_mean_over_positions_is_of_any_size():
    """Of a pattern that repeats, with circular padding, the answer is the same at twice the size."""
    X = RNG.normal(size=(12, 2, 8, 8)).astype(np.float32)
    y = X[:, 0].mean((1, 2)) > 0
    for network in (ConvNet((4,), pool="mean", padding="circular"), ResNet((4,), blocks=1, padding="circular")):
        model = Classifier(network=network, inference=MAP(epochs=2), random_state=0).fit(X, y)
        twice = np.tile(X, (1, 1, 2, 2))
        np.testing.assert_allclose(model.predict_proba(twice), model.predict_proba(X), atol=1e-5)


def test_what_answers_for_one_size_alone_says_so(model):
    X, y = RNG.normal(size=(8, 1, 8, 8)).astype(np.float32), [0, 1] * 4
    for network in (ConvNet((2,), hidden=()), ViT(width=4, heads=1, layers=1), MLP((2,))):
        other = Classifier(network=network, inference=MAP(epochs=1), random_state=0).fit(X, y)
        with pytest.raises(DataError, match=r"X has rows of shape \(1, 16, 16\); .*for that size alone; ConvNet\(pool"):
            other.predict(np.zeros((1, 1, 16, 16)))
    flat = Regressor(network=MLP((4,)), inference=MAP(epochs=1)).fit(RNG.normal(size=(9, 3)), np.arange(9.0))
    with pytest.raises(DataError, match="X has 4 features"):
        flat.predict(np.zeros((2, 4)))


def test_colour_where_grey_was_fitted_is_named(model):
    with pytest.raises(DataError, match=r"colour images \(3 channels\); .* grey ones \(1 channel\).*colour='grey'"):
        model.predict(np.zeros((1, 3, 32, 32)))
    with pytest.raises(DataError, match=r"images of 2 channels; the model was fitted on 1 channel"):
        model.predict(torch.zeros(1, 2, 32, 32))


def test_numbers_at_pixels_too():
    X = RNG.normal(size=(6, 1, 8, 8)).astype(np.float32)
    model = Regressor(network=UNet((2, 4)), inference=MAP(epochs=2), random_state=0).fit(X, X[:, 0])
    larger = RNG.normal(size=(2, 1, 12, 9)).astype(np.float32)
    assert model.predict(larger).shape == (2, 12, 9)
    assert model.log_prob(larger, larger[:, 0]).shape == (2,)


def test_masks_of_another_size_than_their_images_are_told_from_them():
    """A network that gives all numbers of a row at once may answer at any positions, so it is not one of those."""
    X, y = RNG.normal(size=(4, 1, 8, 8)).astype(np.float32), RNG.integers(3, size=(4, 16, 8))
    for labels in (y, y > 0):
        with pytest.raises(DataError, match="y has masks of 16 × 8 pixels, but X has images of 8 × 8; each pixel"):
            Classifier(network=UNet((2, 4)), inference=MAP(epochs=1)).fit(X, labels)
    assert Classifier(network=MLP((2,)), inference=MAP(epochs=1)).fit(X, y).predict(X).shape == y.shape


# --- tiles ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("size", "side", "step"), [(200, 64, 48), (65, 64, 48), (129, 64, 64), (500, 96, 64)])
def test_weights_of_tiles_sum_to_one(size, side, step):
    total = np.zeros(size)
    for where, weight in _spans(size, side, step, side - step):
        total[where] += weight
        assert weight.min() >= 0
        assert where.stop - where.start <= side
    np.testing.assert_allclose(total, 1.0)


def test_tiles_are_the_whole_where_their_overlap_is_what_a_pixel_sees(model):
    """Two levels see less than 16 pixels to either side, and an overlap of 64 leaves that many out."""
    images, _ = scene(1, 150, 201)
    whole = model.predict_proba(images)[0]
    tiled = segment(model, images, tile=128, overlap=64).probabilities[0]
    np.testing.assert_allclose(tiled, whole, atol=1e-5)
    np.testing.assert_allclose(segment(model, images, tile=256).probabilities[0], whole, atol=1e-6)


def test_answers_of_any_size_are_probabilities_and_turn_with_the_image(model):
    images = [scene(1, *size)[0][0] for size in ((40, 32), (100, 90))]
    answer = segment(model, images, flips=True)
    assert isinstance(answer, Segmented)
    assert [part.shape for part in answer.probabilities] == [(40, 32, 2), (100, 90, 2)]
    for part in answer.probabilities:
        np.testing.assert_allclose(part.sum(-1), 1, atol=1e-5)
    turned = segment(model, [np.rot90(images[0], 1, (1, 2))], flips=True).probabilities[0]
    np.testing.assert_allclose(np.rot90(turned, -1), answer.probabilities[0], atol=1e-5)
    assert answer.fraction("disc")[0] == pytest.approx(answer.probabilities[0][..., 0].mean())
    assert set(np.unique(answer.labels[1])) <= {"disc", "ground"}


def test_what_cannot_be_segmented_is_named(model):
    with pytest.raises(SpecError, match="model is a Regressor; segment takes"):
        segment(Regressor(), [])
    rows = Classifier(prior="normal(1.0)").fit(RNG.normal(size=(8, 2)), [0, 1] * 4)
    with pytest.raises(SpecError, match="no label for each pixel"):
        segment(rows, [np.zeros((1, 4, 4))])
    with pytest.raises(DataError, match="images is empty"):
        segment(model, [])
    with pytest.raises(DataError, match=r"entry of shape \(4, 4\); an image is \(channels"):
        segment(model, [np.zeros((4, 4))])
    with pytest.raises(DataError, match="colour images"):
        segment(model, [np.zeros((3, 32, 32))])
    with pytest.raises(SpecError, match="tile='a' must be an integer, 1 or more: a number of pixels"):
        segment(model, [np.zeros((1, 99, 99))], tile="a")
    with pytest.raises(SpecError, match=r"overlap=1\.5 must be an integer, 0 or more"):
        segment(model, [np.zeros((1, 99, 99))], overlap=1.5)
    with pytest.raises(SpecError, match="tile=32 and overlap=32 do not fit: an overlap is half a tile or less"):
        segment(model, [np.zeros((1, 99, 99))], tile=32, overlap=32)
    with pytest.raises(DataError, match="is not one of the classes disc, ground"):
        segment(model, [np.zeros((1, 32, 32))]).fraction("sky")


# --- weights of pixels ----------------------------------------------------------------------------------------------
def test_a_pixel_of_weight_zero_does_not_count_and_one_of_two_counts_twice():
    """One step of gradient descent from the same start: weights of pixels are those of its sum."""
    X, y = RNG.normal(size=(4, 1, 4, 4)).astype(np.float32), RNG.integers(2, size=(4, 4, 4))
    training = MAP(SGD(0.1), epochs=3, batch_size=None)

    def fitted(labels, weight):
        model = Classifier(network=UNet((2,), norm=None), inference=training, random_state=0, missing_label=-1)
        return model.fit(X, labels, sample_weight=weight).predict_proba(X)

    weight = RNG.integers(2, size=y.shape)
    np.testing.assert_allclose(fitted(y, weight), fitted(np.where(weight > 0, y, -1), None), atol=1e-6)
    alike = np.repeat([0.5, 2.0, 1.0, 0.0], 16).reshape(4, 4, 4)
    np.testing.assert_allclose(fitted(y, alike), fitted(y, alike[:, 0, 0]), atol=1e-6)
    with pytest.raises(
        DataError, match=r"sample_weight has shape \(4, 4\); it needs .* or for each target \(4, 4, 4\)"
    ):
        fitted(y, np.ones((4, 4)))
    with pytest.raises(DataError, match="finite numbers, 0 or more"):
        fitted(y, -np.ones(y.shape))


def test_scores_take_weights_of_pixels(model):
    images, masks = scene(2, 32, 32)
    right = model.predict(images) == masks
    assert model.score(images, masks, sample_weight=right.astype(float)) == 1.0
