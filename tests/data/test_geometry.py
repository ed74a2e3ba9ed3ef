"""Boxes as sets of points: areas and overlaps by counting pixels, mirrors and borders."""

from __future__ import annotations

import torch

from likely.data.geometry import areas, clipped, mirrored, overlaps, shared_areas

SIDE = 12


def drawn(count, seed):
    """Boxes with integer corners, some of them empty."""
    ends = torch.randint(0, SIDE + 1, (count, 2, 2), generator=torch.Generator().manual_seed(seed % 2**31))
    return ends.sort(1).values.flatten(1).double()


def pixels(boxes):
    """Which pixels of the image each box holds, (n, SIDE, SIDE)."""
    place = torch.arange(SIDE) + 0.5
    across = (place > boxes[:, None, 0]) & (place < boxes[:, None, 2])
    down = (place > boxes[:, None, 1]) & (place < boxes[:, None, 3])
    return down[:, :, None] & across[:, None, :]


def test_areas_and_overlaps_count_pixels(seed):
    first, second = drawn(20, seed), drawn(15, seed + 1)
    own, other = pixels(first), pixels(second)
    both = (own[:, None] & other).sum((2, 3)).double()
    either = (own[:, None] | other).sum((2, 3)).double()
    torch.testing.assert_close(areas(first), own.sum((1, 2)).double())
    torch.testing.assert_close(shared_areas(first, second), both)
    torch.testing.assert_close(overlaps(first, second), both / either.clamp_min(1))


def test_overlaps_of_batches_are_those_of_each():
    first, second = drawn(12, 0).view(3, 4, 4), drawn(15, 1).view(3, 5, 4)
    alone = [overlaps(own, other) for own, other in zip(first, second, strict=True)]
    torch.testing.assert_close(overlaps(first, second), torch.stack(alone))


def test_a_mirror_moves_boxes_with_their_pixels(seed):
    boxes = drawn(20, seed)
    for axis, dim in ((0, 2), (1, 1)):
        turned = mirrored(boxes, SIDE, axis)
        assert torch.equal(pixels(turned), pixels(boxes).flip(dim))
        assert torch.equal(mirrored(turned, SIDE, axis), boxes)


def test_what_lies_inside_is_kept_where_it_is_enough():
    boxes = torch.tensor([[1.0, 2.0, 5.0, 6.0], [-2.0, 0.0, 2.0, 3.0], [-3.0, 0.0, 1.0, 3.0], [20.0, 0.0, 30.0, 3.0]])
    inside = clipped(boxes, 8, 10)
    assert inside[:3].tolist() == [[1.0, 2.0, 5.0, 6.0], [0.0, 0.0, 2.0, 3.0], [0.0, 0.0, 1.0, 3.0]]
    assert bool(inside[3].isnan().all())
    assert clipped(boxes, 8, 10, least=0.4)[:, 0].isnan().tolist() == [False, False, True, True]
    assert clipped(boxes, 8, 10, least=0.5)[:, 0].isnan().tolist() == [False, True, True, True]  # half is no more
