"""ConvGenerator: images of any size from vectors, with the variance kept on the way, and what is refused."""

from __future__ import annotations

import pytest
import torch

from likely.core.errors import SpecError
from likely.core.random import isolated
from likely.networks import ConvGenerator


@pytest.mark.parametrize("size", [(28, 28), (8, 8), (5, 7), (1, 1)])
@pytest.mark.parametrize("norm", [None, "batch", "layer"])
def test_images_have_their_size_and_channels(size, norm):
    pixels = size[0] * size[1]
    net = ConvGenerator(size, channels=(4, 2), norm=norm).build((3,), 3 * pixels)
    assert net(torch.randn(6, 3)).shape == (6, 3 * pixels)
    told = ConvGenerator(size, channels=(4,), norm=norm).build((3,), pixels, (2,))
    assert told(torch.randn(6, 3), torch.ones(6, 2)).shape == (6, pixels)


def test_doubling_is_local():
    """With kernel 4 a change of one small pixel reaches 4 positions along each axis of the next image."""
    with isolated(0):
        net = ConvGenerator((16, 16), channels=(3,), norm=None).build((2,), 256)
    small = torch.zeros(2, 3, 8, 8)
    small[1, :, 4, 5] = 1.0
    with torch.no_grad():
        one, two = net[3:](small).view(2, 16, 16)
    changed = (one != two).nonzero()
    assert changed.amin(0).tolist() == [7, 9]
    assert changed.amax(0).tolist() == [10, 12]


def test_pixels_start_with_a_variance_of_order_1():
    with isolated(1):
        made = ConvGenerator((32, 32), channels=(64, 32), norm=None).build((64,), 1024)(torch.randn(200, 64))
    assert 0.3 < made.view(200, 32, 32)[:, 8:24, 8:24].var().item() < 3


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ConvGenerator((28,)), "size must be the height and the width of images"),
        (lambda: ConvGenerator(channels=()), "channels must be a tuple of positive integers"),
        (lambda: ConvGenerator(kernel=3), "kernel must be an even integer, 2 or more"),
        (lambda: ConvGenerator(norm="weight"), "norm must be None or one of batch, layer"),
        (
            lambda: ConvGenerator((8, 8)).build((3,), 100),
            r"makes images of 64 pixels .* 100 outputs",
        ),
        (lambda: ConvGenerator((8, 8)).build((1, 8, 8), 64), r"found rows of shape \(1, 8, 8\)"),
        (lambda: ConvGenerator((10**6, 10**6)).build((3,), 10**12), "numbers for each row"),
    ],
)
def test_what_makes_no_image_is_refused(make, message):
    with pytest.raises(SpecError, match=message):
        make()
