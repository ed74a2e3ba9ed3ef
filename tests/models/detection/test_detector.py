from __future__ import annotations

import numpy as np
import pytest
import torch
from tests.models.detection.conftest import FEW, TINY

from likely import Detector
from likely.core.errors import DataError, SpecError
from likely.core.random import isolated
from likely.data.augment import Rotate
from likely.data.geometry import overlaps
from likely.evaluate import average_precision
from likely.inference import MAP, Ensemble, MCDropout
from likely.inference.dataset import Batch
from likely.likelihoods import Laplace, MultivariateNormal, Poisson
from likely.models.detection.cells import cell_likelihood
from likely.models.detection.detections import drawn
from likely.models.detection.grids import Grids
from likely.networks import MLP, ConvNet, ResNet, ViT
from likely.optim import SGD


# --- what it is for -----------------------------------------------------------------------------------------------
def test_it_finds_what_is_there(fitted):
    model, (images, boxes, labels) = fitted
    assert average_precision(model.detect(images, threshold=0.01), boxes, labels).at(0.5) > 0.8


def test_edges_are_as_far_off_as_their_scales_say(fitted):
    """Of edges that are right, errors are of the size of the scales: their ratio's middle is within a factor of 5."""
    model, (images, boxes, _) = fitted
    ratios = []
    for own, true in zip(model.detect(images), boxes, strict=True):
        if not len(own) or not len(true):
            continue
        iou = overlaps(torch.from_numpy(own.boxes), torch.from_numpy(true)).numpy()
        right = iou.max(1) > 0.5
        errors = np.abs(own.boxes - true[iou.argmax(1)])
        ratios += list((errors / own.scales)[right].ravel())
    assert 1 / 5 < np.median(ratios) / 0.69 < 5


def test_log_prob_is_the_sum_over_cells_averaged_over_members(fitted):
    model, (images, boxes, labels) = fitted
    x = torch.from_numpy(images[:3])
    eta = model.posterior_.eta(x)
    objects = model._objects(x, boxes[:3], labels[:3]).float()
    expected = model.objective_.log_prob(eta[0], Batch(x, objects, None))
    np.testing.assert_allclose(model.log_prob(images[:3], boxes[:3], labels[:3]), expected.numpy(), rtol=1e-4)
    assert model.score(images[:3], boxes[:3], labels[:3]) == pytest.approx(float(expected.mean()), rel=1e-4)


def test_true_boxes_are_more_probable_than_moved_ones(fitted):
    model, (images, boxes, labels) = fitted
    moved = [np.clip(own + 4, 0, [32, 24, 32, 24]) for own in boxes]
    kept = [(own[:, 2:] > own[:, :2]).all(1) for own in moved]
    moved = [own[there] for own, there in zip(moved, kept, strict=True)]
    words = [np.array(own)[there] for own, there in zip(labels, kept, strict=True)]
    assert model.score(images, boxes, labels) > model.score(images, moved, words) + 5


def test_draws_are_as_cells_say(fitted, seed):
    """The mean number of boxes is the sum of probabilities, and edges spread as they should: 1 false alarm in 10⁵."""
    model, (images, _, _) = fitted
    n, image = 300, images[:1]
    draws = model.sample(image, n, random_state=seed)
    eta = model.posterior_.eta(torch.from_numpy(image))
    marginals = model.likelihood_.distribution(eta[0, 0]).marginals
    present = marginals["presence"].probs
    counts = np.array([len(own) for own in draws[:, 0]])
    error = float((present * (1 - present)).sum() / n) ** 0.5
    lost = 0.02 * float(present.sum())  # boxes without area, which a cell that is unsure may draw
    assert -lost - 4.5 * error <= counts.mean() - float(present.sum()) <= 4.5 * error
    place = int(present.argmax())
    dark = float(marginals["label"].probs[place, 1] > 0.5)
    detections = [own for own in draws[:, 0] if len(own)]
    assert {own.labels.dtype for own in detections} == {model.classes_.dtype}
    assert all((own.probabilities == 1).all() and (own.scales == 0).all() for own in detections)
    inside = np.concatenate([own.boxes for own in detections])
    assert ((inside >= 0) & (inside <= [32, 24, 32, 24])).all()
    labels = np.concatenate([own.labels for own in detections])
    assert (labels == model.classes_[int(dark)]).any()
    np.testing.assert_allclose(model.log_prob(image, [detections[0].boxes], [detections[0].labels]).shape, (1,))


def test_members_that_disagree_draw_different_scenes(seed):
    """η of one cell under two members, one of which sees an object: about half of 400 draws do, to 5 deviations.

    A false alarm in 1 of 10⁶ seeds.
    """
    likelihood, grids = cell_likelihood(1, Laplace("input")), Grids((4,), (4, 4))
    eta = torch.zeros(2, 1, 1, likelihood.size(likelihood.known_target()))
    eta[0, ..., 0], eta[1, ..., 0] = 30.0, -30.0
    eta[..., 2::2] = -9.0  # edges that are all but certain, one cell away from its far sides
    with isolated(seed):
        draws = [drawn(likelihood, grids, eta, torch.tensor([0.5, 0.5]), (4, 4))[0] for _ in range(400)]
    seen = [boxes for boxes, _ in draws if len(boxes)]
    assert abs(len(seen) - 200) < 5 * 10
    torch.testing.assert_close(seen[0], torch.tensor([[0.0, 0.0, 4.0, 4.0]]), atol=0.1, rtol=0)


def test_images_of_another_size_are_answered(fitted):
    """A wider image that has the old one on its left has the same objects there."""
    model, (images, _, _) = fitted
    wide = np.concatenate([images[:3], np.random.default_rng(0).normal(size=(3, 1, 24, 16))], -1)
    for own, other in zip(model.detect(images[:3]), model.detect(wide), strict=True):
        inside = other.boxes[:, 2] < 30
        before = own.boxes[:, 2] < 24
        if before.any():
            iou = overlaps(torch.from_numpy(own.boxes[before]), torch.from_numpy(other.boxes[inside]))
            assert float(iou.max(1).values.min()) > 0.8


# --- the axes -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("inference", [Ensemble(2, by=TINY), MCDropout(3, by=TINY)], ids=["ensemble", "dropout"])
def test_members_are_averaged(inference):
    model = Detector(ResNet((4, 8), blocks=1, dropout=0.2), strides=(4,), inference=inference, random_state=0).fit(*FEW)
    eta, weights = model.posterior_.members(torch.from_numpy(FEW[0]))
    assert len(eta) == len(weights) == (2 if isinstance(inference, Ensemble) else 3)
    objects = model._objects(torch.from_numpy(FEW[0]), *FEW[1:]).float()
    cells, jacobian = model.objective_.cell_log_prob(eta, Batch(torch.from_numpy(FEW[0]), objects, None))
    by_hand = cells.exp().mean(0).log().sum(-1) + jacobian
    np.testing.assert_allclose(model.log_prob(*FEW), by_hand.numpy(), rtol=1e-4)
    assert np.isfinite(np.asarray(model.detect(FEW[0], threshold=0.0)[0])).all()


def test_boxes_without_labels_are_of_one_class():
    model = Detector(ConvNet((4, 4)), strides=(4,), inference=TINY, random_state=0).fit(FEW[0][:, 0], FEW[1])
    assert model.classes_.tolist() == ["object"]
    assert set(model.detect(FEW[0], threshold=0.0)[0].labels) == {"object"}
    assert model.log_prob(FEW[0], FEW[1]).shape == (8,)


def test_a_weight_of_two_is_an_image_twice():
    """Full batches, one seed: the same units, the same start and the same gradients, but for rounding."""
    (images, boxes, labels), weight = FEW, np.array([2.0, 1.0, 0.0, 1.0, 3.0, 1.0, 1.0, 1.0])
    own = np.repeat(np.arange(8), weight.astype(int))
    repeated = [images[own], [boxes[i] for i in own], [labels[i] for i in own]]
    whole = MAP(SGD(0.003), epochs=10, batch_size=None)
    models = [Detector(ConvNet((4,)), strides=(4, 8), inference=whole, random_state=0) for _ in range(2)]
    models[0].fit(*FEW, sample_weight=weight)
    models[1].fit(*repeated)
    first, second = (model.log_prob(*FEW) for model in models)
    np.testing.assert_allclose(first, second, rtol=1e-4)
    bare = [np.zeros((0, 4)), *boxes[1:]]
    with pytest.raises(DataError, match="No image with a box has weight"):
        Detector(ConvNet((4,)), inference=TINY).fit(images, bare, [[], *labels[1:]], sample_weight=np.eye(8)[0])


def test_held_out_images_choose_the_weights():
    inference = TINY.replace(epochs=2, validation=(FEW[0], (FEW[1], FEW[2])))
    model = Detector(ConvNet((4, 4)), strides=(4,), inference=inference, random_state=0).fit(*FEW)
    assert len(model.history_["validation"]) == 2


# --- what will not do ---------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"strides": (8, 4)}, SpecError, r"strides=\(8, 4\) must be rising integers"),
        ({"strides": ()}, SpecError, "strides"),
        ({"strides": (3, 4), "network": ConvNet((4, 4))}, SpecError, r"does not fit cells of strides=\(3, 4\)"),
        ({"network": MLP()}, SpecError, "MLP gives no map of features of an image; ConvNet, ResNet, UNet or ViT do"),
        ({"edge": MultivariateNormal()}, SpecError, "edge=MultivariateNormal"),
        (
            {"edge": Poisson()},
            SpecError,
            r"edge=Poisson\(\) is a likelihood of counts .*may be any real number; use La",
        ),
        ({"edge": "laplace"}, SpecError, r'own scale: Laplace\("input"\)'),
        ({"inference": TINY.replace(augment=Rotate())}, DataError, "does not tell where boxes go; use Flip, Q"),
        ({"network": torch.nn.Flatten()}, SpecError, "map of features"),
    ],
)
def test_arguments_that_will_not_do(arguments, error, words):
    with pytest.raises(error, match=words):
        Detector(**{"strides": (4,), "inference": TINY, **arguments}).fit(*FEW)


def test_questions_that_will_not_do(fitted):
    model, (images, _, _) = fitted
    for threshold in (2, "a", None):
        with pytest.raises(DataError, match=f"threshold={threshold!r} must be a number between 0 and 1"):
            model.detect(images, threshold=threshold)
    with pytest.raises(DataError, match="most=0 must be an integer, 1 or more"):
        model.detect(images, most=0)
    with pytest.raises(DataError, match="in colour; the model was fitted on grey images"):
        model.detect(np.zeros((1, 3, 24, 32)))
    with pytest.raises(DataError, match=r"labels\[0\] has the class 'green'"):
        model.log_prob(images[:1], [[[0, 0, 4, 4]]], [["green"]])
    crowd = [[[0, 0, 4, 4 - i / 100] for i in range(20)]]
    with pytest.raises(DataError, match="20 boxes, more at one place than there are cells"):
        Detector(ConvNet((4, 4)), strides=(4,), inference=TINY).fit(images[:1], crowd)
    for question in (model.log_prob, model.score):  # a box that no cell tells would count for nothing
        with pytest.raises(
            DataError, match=r"boxes\[1\] has 20 boxes, more at one place than there are cells \(\d+ find"
        ):
            question(images[:2], [[], crowd[0]], [[], ["dark"] * 20])
    vit = Detector(ViT(patch=4, width=8, heads=2, layers=1), strides=(4,), inference=TINY).fit(*FEW)
    with pytest.raises(DataError, match=r"images of \(24, 32\) pixels.*was fitted on \(16, 32\)"):
        vit.detect(images)
