"""Cells of a piecewise linear network: on a line the kinks are known, and inside a cell the map is the network."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from likely.core.errors import DataError, SpecError
from likely.inference.predictor import Predictor
from likely.networks import MLP
from likely.networks.layers import Standardise, statistics
from likely.theory.piecewise_linear import Cells, read

SQUARE = np.array([[-1.0, -1.0], [1.0, -1.0], [1.0, 1.0], [-1.0, 1.0]])
SEGMENT = np.array([[-2.0], [2.0]])


def identity(d):
    return np.column_stack([np.eye(d), np.zeros(d)])


def cells_of(module, corners):
    cells = Cells(corners, identity(corners.shape[1]))
    read(module.double(), cells)
    return cells


def area(corners):
    x, y = corners.T
    return 0.5 * abs(np.dot(x, np.roll(y, -1)) - np.dot(y, np.roll(x, -1)))


def test_units_on_a_line_kink_where_they_are_zero():
    """relu(x + b): one kink at −b each."""
    layer = nn.Linear(1, 3)
    with torch.no_grad():
        layer.weight.fill_(1.0)
        layer.bias.copy_(torch.tensor([0.5, -1.0, 5.0]))  # the last one is 0 outside the segment
    cells = cells_of(nn.Sequential(layer, nn.ReLU()), SEGMENT)
    ends = sorted({round(float(corner), 9) for own in cells.corners for corner in own[:, 0]})
    assert ends == [-2.0, -0.5, 1.0, 2.0]
    assert len(cells) == 3


@pytest.mark.parametrize("options", [{}, {"residual": "add"}, {"residual": "dense"}, {"activation": "leaky_relu"}])
def test_inside_each_cell_the_map_is_the_network(options):
    torch.manual_seed(0)
    net = MLP((5, 5), **{"activation": "relu", **options}).build((2,), 2).double().eval()
    cells = cells_of(net, SQUARE)
    middles = np.stack([own.mean(0) for own in cells.corners])
    (maps,) = cells.stack
    values = np.einsum("cuk,ck->cu", maps[..., :-1], middles) + maps[..., -1]
    np.testing.assert_allclose(values, net(torch.from_numpy(middles)).detach(), rtol=1e-8, atol=1e-9)
    assert len(cells) > 5


def test_pieces_are_cut_where_far_inputs_count_for_less():
    torch.manual_seed(0)
    inputs = Standardise(*statistics(torch.randn(50, 2).double(), (2,), limited=True))
    net = Predictor(MLP((4,), activation="relu").build((2,), 1), inputs=inputs).double().eval()
    corners = 100 * SQUARE
    cells = cells_of(net, corners)
    middles = np.stack([own.mean(0) for own in cells.corners])
    (maps,) = cells.stack
    values = np.einsum("cuk,ck->cu", maps[..., :-1], middles) + maps[..., -1]
    np.testing.assert_allclose(values, net(torch.from_numpy(middles)).detach(), rtol=1e-8, atol=1e-9)
    assert len(cells) >= 9  # the table in the middle, and what is beyond it on eight sides


def test_cells_tile_the_square():
    torch.manual_seed(1)
    cells = cells_of(MLP((6,), activation="relu").build((2,), 1), SQUARE)
    assert sum(area(own) for own in cells.corners) == pytest.approx(4.0, rel=1e-6)


def test_an_affine_network_is_one_cell():
    module = nn.Sequential(nn.Linear(2, 3), nn.Identity(), nn.Linear(3, 1)).double()
    cells = cells_of(module, SQUARE)
    assert len(cells) == 1
    weight = module[2].weight @ module[0].weight
    np.testing.assert_allclose(cells.stack[-1][0, :, :2], weight.detach(), rtol=1e-10)


def test_what_is_not_piecewise_linear_is_refused():
    with pytest.raises(SpecError, match="Tanh is not known to be piecewise linear"):
        cells_of(nn.Sequential(nn.Linear(2, 3), nn.Tanh()), SQUARE)
    with pytest.raises(DataError, match="The network takes 3 inputs; the points have 2"):
        cells_of(nn.Linear(3, 1), SQUARE)
