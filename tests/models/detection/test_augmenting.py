"""Boxes that move with their images, wherever an inference augments."""

from __future__ import annotations

import pytest
import torch
from tests.models.detection.conftest import FEW, TINY

from likely import Detector
from likely.core.errors import DataError
from likely.data.augment import Crop, Flip
from likely.inference import Ensemble
from likely.models.detection.augmenting import moving_boxes
from likely.networks import ConvNet


def test_a_member_of_a_stacked_ensemble_sees_boxes_moved_with_its_images():
    """Without norms of batches two members train as one program, each with augmentations of its own."""
    by = TINY.replace(augment=Flip() + Crop(3))
    model = Detector(ConvNet((4,), hidden=()), strides=(4,), inference=Ensemble(2, by=by), random_state=0)
    assert len(model.fit(*FEW).posterior_) == 2


def test_boxes_are_moved_wherever_rows_are_augmented():
    """Also by the inference inside another one; what augments nothing is left as it is."""
    inner = moving_boxes(Ensemble(2, by=TINY.replace(augment=Flip(1.0)))).by.augment
    images, boxes = torch.rand(3, 1, 4, 6), torch.tensor([[[0.0, 1.0, 2.0, 3.0, 7.0]]]).repeat(3, 1, 1)
    weight = torch.arange(3.0)
    moved, own, same = inner.batch(images, boxes, weight)
    assert torch.equal(moved, images.flip(3))
    assert own[:, 0].tolist() == [[4.0, 1.0, 6.0, 3.0, 7.0]] * 3
    assert same is weight
    assert repr(inner) == repr(Flip(1.0))
    assert moving_boxes(TINY) is TINY
    assert moving_boxes(moving_boxes(TINY.replace(augment=Flip()))).augment.augment == Flip()


def test_a_change_of_targets_that_are_not_boxes_is_refused():
    class Swap:
        def batch(self, x, y, weight, positions=()):
            return x, -y, weight

    with pytest.raises(DataError, match="changes targets, and those are boxes here; use likely"):
        moving_boxes(TINY.replace(augment=Swap()))
