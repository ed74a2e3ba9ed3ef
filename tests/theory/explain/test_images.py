"""Where an image network looks: at the patch that makes the class, by every method that has a map."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from torch import nn

from likely import Classifier
from likely.core.errors import DataError, SpecError
from likely.inference.posterior import Posterior
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


def test_grad_cam_of_one_channel_is_its_map():
    """One kernel, mean pooling and a weight w: α = w / positions, so that the map is (w / positions)·max(0, A)."""
    torch.manual_seed(0)
    conv, head = nn.Conv2d(1, 1, 3, padding=1), nn.Linear(1, 1)
    net = nn.Sequential(conv, nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), head)
    head.weight.data.fill_(2.0)
    x = torch.randn(3, 1, 6, 5)
    expected = 2.0 / 30 * conv(x).relu()
    np.testing.assert_allclose(grad_cam(net, x).values, expected.detach().numpy(), atol=1e-6)
    np.testing.assert_allclose(grad_cam(net, x, layer=conv).values.shape, (3, 1, 6, 5))


def test_the_gradient_goes_through_the_average_of_members(convolutional, stripes):
    """Two members that are one and the same make the map of one; so do a member and another without weight."""
    X = stripes[0][:4]
    alone = convolutional.posterior_
    twice = copy.copy(convolutional)
    twice.posterior_ = Posterior.join([alone, alone])
    expected = grad_cam(convolutional, X).values
    assert expected.min() >= 0
    np.testing.assert_allclose(grad_cam(twice, X).values, expected, atol=1e-5 * expected.max())


def test_roll_out_is_the_product_of_the_layers(vit, stripes):
    """Row of the class token in Π (½ A + ½ I), by hand; what is left to the token itself is at least 2⁻ᴸ."""
    X = stripes[0]
    explained = attention_rollout(vit, X[:5])
    patches = explained.values[:, 0, ::4, ::4].reshape(5, 9)
    np.testing.assert_array_equal(explained.values[:, 0, 1::4, 2::4].reshape(5, 9), patches)
    network = vit.posterior_.module_of(0).eval()
    with torch.no_grad():
        encoder, net = network.network.encoder, network.network
        patched = net.embed(net.patches(network.inputs(torch.tensor(X[:5]))))
        steps, _, _ = encoder._entered(patched, None)
        total = torch.eye(10)
        for block in encoder.blocks:
            weights = block.attention.weights(block.norms[0](steps)).mean(1)
            total = (0.5 * weights + 0.5 * torch.eye(10)) @ total
            steps = block(steps)
    np.testing.assert_allclose(patches, total[:, -1, :-1], atol=1e-5)
    assert (patches.sum(1) < 1 - 0.25 + 1e-6).all()
    torch.testing.assert_close(total.sum(-1), torch.ones(5, 10))


def test_roll_out_of_tokens_of_one_length():
    texts, y = ["a b c", "c b a", "b b c", "a c a"] * 2, [0, 1, 0, 1] * 2
    network = "transformer(width=4, heads=1, layers=1)"
    model = Classifier(network=network, inference="map(epochs=1)", random_state=0).fit(texts, y)
    seen = attention_rollout(model, texts).values
    assert seen.shape == (8, 3)
    assert (seen.sum(1) <= 0.5 + 1e-6).all()  # one layer leaves the class token half of itself
    with pytest.raises(DataError, match="sequences of 2 to 3 steps"):
        attention_rollout(model, ["a b", "a b c"])


def test_occlusion_covers_what_the_window_holds():
    """f is the sum of the pixels: each window loses what it holds, and a window as large as the image all of it."""
    X = np.arange(24.0).reshape(1, 1, 4, 6)

    def total(rows):
        return rows.sum((1, 2, 3))

    np.testing.assert_allclose(occlusion(total, X, window=1, stride=1).values, X)
    np.testing.assert_allclose(occlusion(total, X, window=(4, 6)).values, np.full((1, 1, 4, 6), X.sum()))
    lost = occlusion(total, X, window=(1, 6), stride=1, baseline=1.0).values[0, 0]
    np.testing.assert_allclose(lost, np.repeat((X[0, 0].sum(1) - 6)[:, None], 6, 1))


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
