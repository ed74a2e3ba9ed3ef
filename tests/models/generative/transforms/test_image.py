"""Folding pixels into channels keeps every number."""

from __future__ import annotations

import torch

from likely.models.generative.transforms import Squeeze
from likely.models.generative.transforms.image import ChannelsLast, Inverted, checkerboard


def test_squeezing_keeps_every_number():
    x = torch.arange(48.0).reshape(1, 4, 6, 2)
    z = Squeeze()(x)[0]
    assert z.shape == (1, 2, 3, 8)
    assert sorted(z.ravel().tolist()) == x.ravel().tolist()
    assert z[0, 0, 0].tolist() == [0, 1, 2, 3, 12, 13, 14, 15]
    assert torch.equal(Squeeze().inverse(z), x)


def test_a_checkerboard_of_pixels_is_one_half_of_the_channels():
    """Colour the pixels (row + column) mod 2: the first half of the channels has one colour, the second the other."""
    colour = (torch.arange(4)[:, None] + torch.arange(6)) % 2
    folded = Squeeze()(colour.reshape(1, 4, 6, 1))[0][..., list(checkerboard(1))]
    assert folded[..., :2].unique().tolist() == [0]
    assert folded[..., 2:].unique().tolist() == [1]


def test_an_inverted_map_is_the_inverse():
    x = torch.randn(2, 3, 4, 6, generator=torch.Generator().manual_seed(0))
    last, back = ChannelsLast(), Inverted(ChannelsLast())
    assert torch.equal(back(last(x)[0])[0], x)
    assert torch.equal(back.inverse(x), last(x)[0])
