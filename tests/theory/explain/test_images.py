"""Where an image network looks: at the patch that makes the class, by every method that has a map."""

from __future__ import annotations

import numpy as np
import pytest
from torch import nn

from likely.core.errors import DataError, SpecError
from likely.networks.layers.conv import Conv
from likely.theory.explain import attention_rollout, grad_cam, integrated_gradients, occlusion


def in_patch(maps, places):
    """The fraction of the positive part of each map that lies in the patch of stripes, a ninth of the image."""
    positive = np.clip(maps[:, 0], 0, None)
    inside = [image[r : r + 4, c : c + 4].sum() for image, (r, c) in zip(positive, places, strict=True)]
    return np.array(inside) / positive.sum((1, 2))


@pytest.mark.parametrize("method", [integrated_gradients, occlusion, grad_cam])
def test_the_patch_makes_the_class(method, convolutional, stripes):
    X, y, places = stripes
    right = convolutional.predict(X) == y
    assert right.mean() > 0.9
    right &= np.cumsum(right) <= 16
    explained = method(convolutional, X[right], y[right])
    assert explained.target.tolist() == y[right].tolist()
    assert explained.values.shape == X[right].shape
    assert np.median(in_patch(explained.values, places[right])) > 1 / 3  # a ninth by chance


def test_what_cannot_be_explained_so_is_named(net, vit, table, stripes):
    X = stripes[0]
    with pytest.raises(DataError, match=r"rows of shape \(4,\); grad_cam takes images"):
        grad_cam(net, table[0])
    with pytest.raises(SpecError, match=r"PatchTransformer has no convolution.*integrated_gradients or occlusion"):
        grad_cam(vit, X)
    with pytest.raises(SpecError, match="layer=Conv is not a part"):
        grad_cam(nn.Sequential(nn.Conv2d(1, 1, 12), nn.Flatten()), X, layer=Conv(1, 1, 3))
    with pytest.raises(SpecError, match="model is a function; grad_cam looks inside"):
        grad_cam(lambda x: x.sum((1, 2, 3)), X)
    with pytest.raises(SpecError, match="Sequential has no attention; attention_rollout takes"):
        attention_rollout(net, table[0])
    with pytest.raises(SpecError, match=r"window=20 must be integers from 1 to the sides of X, \(12, 12\)"):
        occlusion(vit, X, window=20)
    with pytest.raises(DataError, match="baseline must be a number"):
        occlusion(vit, X, baseline=np.zeros(3))
