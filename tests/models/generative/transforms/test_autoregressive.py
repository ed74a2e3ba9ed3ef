"""Autoregressive layers: the Jacobian is triangular in their order."""

from __future__ import annotations

import pytest
import torch

from likely.core.random import isolated
from likely.models.generative.transforms import Affine, Spline
from likely.models.generative.transforms.autoregressive import Autoregression
from likely.networks import MLP


@pytest.mark.parametrize("map", [Affine(), Spline()])
@pytest.mark.parametrize("order", [(0, 1, 2, 3), (2, 0, 3, 1)])
def test_columns_depend_on_those_before_them_alone(map, order):
    with isolated(0):
        layer = Autoregression(map, order, MLP((16,), activation="tanh")).double()
        for parameter in layer.parameters():
            parameter.data.normal_(0.0, 0.3)
        x = torch.randn(3, 4).double()
    matrix = torch.autograd.functional.jacobian(lambda row: layer(row[None])[0][0], x[0])
    ordered = matrix[list(order)][:, list(order)]
    assert torch.equal(ordered, ordered.tril())
    z, log_det = layer(x)
    torch.testing.assert_close(log_det[0].detach(), ordered.diagonal().log().sum())
    torch.testing.assert_close(layer.inverse(z.detach()), x)
