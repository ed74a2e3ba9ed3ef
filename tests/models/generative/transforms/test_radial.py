"""Radial layers: one centre each, invertible whatever their parameters."""

from __future__ import annotations

import torch

from likely.core.random import isolated
from likely.models.generative.transforms import Radial, stack

D = 5
ROWS = 2 * torch.randn(30, D, dtype=torch.float64, generator=torch.Generator().manual_seed(0))


def test_any_parameters_give_an_invertible_layer():
    """The constraint holds far out: parameters of size 30 try to fold space."""
    with isolated(3):
        layers = stack(Radial(), (D,), layers=4).double()
        for parameter in layers.parameters():
            parameter.data.normal_(0.0, 30.0)
    with torch.no_grad():
        z, log_det = layers(ROWS)
        assert log_det.isfinite().all()
        back = layers.inverse(z)
    # where a layer squeezes by e^-60, digits of x are lost in z: the image of what came back is what can be asked
    torch.testing.assert_close(layers(back)[0].detach(), z, atol=1e-9, rtol=1e-9)


def test_rows_move_along_the_line_to_the_centre():
    """z − x₀ = (1 + βh)(x − x₀): directions from the centre stay, and radii keep their order."""
    with isolated(0):
        layer = stack(Radial(), (D,), layers=1).double()
        for parameter in layer.parameters():
            parameter.data.normal_()
    with torch.no_grad():
        centre = layer.maps[0]._parts(ROWS, None)[0]
        before, after = ROWS - centre, layer(ROWS)[0] - centre
    cosines = (before * after).sum(1) / (before.norm(dim=1) * after.norm(dim=1))
    torch.testing.assert_close(cosines, torch.ones_like(cosines))
    assert before.norm(dim=1).argsort().tolist() == after.norm(dim=1).argsort().tolist()
