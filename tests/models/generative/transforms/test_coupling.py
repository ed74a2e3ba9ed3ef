"""Couplings: half of the columns stay, and decide how the others move."""

from __future__ import annotations

import pytest
import torch

from likely.core.random import isolated
from likely.models.generative.transforms import Affine, Coupling, Spline
from likely.networks import MLP


@pytest.mark.parametrize("map", [Affine(), Spline()])
@pytest.mark.parametrize("kept", [0, 2])
def test_what_is_kept_stays_and_the_rest_depends_on_it(map, kept):
    with isolated(0):
        layer = Coupling(map, 5, kept, MLP((8,), activation="tanh")).double()
        for parameter in layer.parameters():
            parameter.data.normal_(0.0, 0.3)
        x = torch.randn(6, 5).double()
    with torch.no_grad():
        z, log_det = layer(x)
        assert torch.equal(z[:, 5 - kept :], x[:, :kept])
        torch.testing.assert_close(layer.inverse(z), x)
    matrix = torch.autograd.functional.jacobian(lambda row: layer(row[None])[0][0], x[0])
    torch.testing.assert_close(log_det[0], torch.linalg.slogdet(matrix).logabsdet)
    moved = matrix[: 5 - kept, kept:]  # each moved column depends on no other moved one
    torch.testing.assert_close(moved, moved.diagonal().diag())
