from __future__ import annotations

import numpy as np
import torch

from likely.models.detection.grids import SPAN, Grids


def random_boxes(seed, images=6, boxes=9, sides=(48, 64)):
    rng = np.random.default_rng(seed)
    low = rng.uniform(0, 0.9, (images, boxes, 2)) * sides[::-1]
    size = rng.uniform(0.02, 1, (images, boxes, 2)) * (np.array(sides[::-1]) - low)
    return torch.from_numpy(np.concatenate([low, low + size], -1))


def test_boxes_come_back_from_their_cells(seed):
    """Edges are told exactly, wherever a box lies and however small it is."""
    grids, boxes = Grids((4, 8, 16), (48, 64)), random_boxes(seed)
    cells = grids.cells(boxes)
    decoded = grids.decoded(grids.coordinates(boxes, cells.clamp_min(0)), cells.clamp_min(0))
    torch.testing.assert_close(decoded[cells >= 0], boxes[cells >= 0])


def test_a_box_belongs_to_its_centre_on_the_finest_grid_it_fits(seed):
    grids, boxes = Grids((4, 8, 16), (48, 64)), random_boxes(seed, images=40, boxes=1)
    for box, cell in zip(boxes[:, 0], grids.cells(boxes)[:, 0], strict=True):
        longest = float((box[2:] - box[:2]).max())
        stride = next((s for s in (4, 8) if longest <= SPAN * s), 16)
        assert grids.stride[cell] == stride
        centre, corner = (box[:2] + box[2:]) / 2, grids.corners[cell]
        assert bool(((centre >= corner) & (centre <= corner + stride)).all())


def test_two_centres_in_one_cell_have_two_cells_side_by_side():
    boxes = torch.tensor([[[0.0, 0.0, 8.0, 8.0], [1.0, 1.0, 7.0, 7.0], [torch.nan] * 4]])
    grids = Grids((8,), (16, 16))
    cells = grids.cells(boxes)
    assert cells.tolist() == [[0, 1, -1]] or cells.tolist() == [[0, -1, -1]]
    one_cell = Grids((8,), (8, 8)).cells(boxes)
    assert one_cell.tolist() == [[0, -1, -1]]


def test_no_two_boxes_of_an_image_share_a_cell(seed):
    cells = Grids((8, 16), (48, 64)).cells(random_boxes(seed, boxes=30))
    for own in cells:
        placed = own[own >= 0]
        assert len(placed.unique()) == len(placed)
