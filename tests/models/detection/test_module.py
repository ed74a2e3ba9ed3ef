"""The module of a detector: every body that gives a map of features gives cells."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from tests.models.detection.conftest import FEW, TINY

from likely import Detector
from likely.core.errors import SpecError
from likely.models.detection.grids import Grids
from likely.models.detection.module import CellNetwork, layout_of
from likely.networks import ConvNet, ResNet, UNet, ViT


@pytest.mark.parametrize(
    "network",
    [
        ConvNet((4, 4), norm="batch"),
        ConvNet((4, 4, 4)),  # a map coarser than the finest grid
        UNet((4, 8)),
        UNet((4, 8), patch=4),
        ViT(patch=4, width=8, heads=2, layers=1),
        torch.nn.Conv2d(1, 4, 4, stride=4),
        lambda in_shape, channels: torch.nn.Conv2d(in_shape[0], channels, 4, stride=4),
    ],
    ids=["conv", "coarse", "unet", "patches", "vit", "module", "function"],
)
def test_every_body_gives_cells(network):
    model = Detector(network, strides=(4, 8), inference=TINY, random_state=0).fit(*FEW)
    assert len(model.detect(FEW[0], threshold=0.0)) == 8
    assert np.isfinite(model.log_prob(*FEW)).all()


@pytest.mark.parametrize("network", [ConvNet((4, 4)), ResNet((4, 8), 1), UNet((4, 8)), ViT(patch=4, width=8, heads=2)])
@pytest.mark.parametrize("strides", [(4,), (4, 8), (2, 16)])
def test_there_is_an_eta_for_every_cell_of_every_grid(network, strides):
    """Sides that are no multiple of a stride have cells that reach beyond the image; η begins near its offset."""
    shape, offset = (1, 20, 28), 100.0 * torch.arange(len(strides)).unsqueeze(1).repeat(1, 3)
    layout = layout_of(network, shape, strides)
    sides = tuple(-(-side // layout.multiple) * layout.multiple for side in shape[1:])
    grids = Grids(strides, sides)
    module = CellNetwork(network.body((1, *sides)), layout, strides, offset, torch.ones(3)).eval()
    eta = module(torch.randn(2, *shape, generator=torch.Generator().manual_seed(0)))
    assert eta.shape == (2, grids.count, 3)
    assert bool((eta - offset[grids.level]).abs().max() < 20)


def test_eta_is_told_in_its_units():
    network, strides, shape = ConvNet((4,)), (2, 4), (1, 8, 8)
    layout = layout_of(network, shape, strides)
    module = CellNetwork(network.body(shape), layout, strides, torch.zeros(2, 3), torch.ones(3)).eval()
    x, unit, offset = torch.randn(2, *shape), torch.tensor([1.0, 2.0, 0.5]), torch.randn(2, 3)
    plain = module(x)
    module.unit, module.offset = unit, offset
    torch.testing.assert_close(module(x), plain * unit + offset[Grids(strides, (8, 8)).level])


def test_maps_that_fit_no_cells_are_refused():
    with pytest.raises(SpecError, match=r"does not fit cells of strides=\(3, 4\); one side of a map's cell must be"):
        layout_of(ConvNet((4, 4)), (1, 24, 24), (3, 4))
