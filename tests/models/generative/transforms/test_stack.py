"""Layers of a flow put together: images come back, and networks that cannot serve are named."""

from __future__ import annotations

import pytest
import torch

from likely.core.errors import SpecError
from likely.core.random import isolated
from likely.models.generative.transforms import Affine, Coupling, Permutation, Spline, stack
from likely.models.generative.transforms.stack import as_image
from likely.networks import MLP, ConvNet, UNet


@pytest.mark.parametrize("network", [ConvNet((4,), activation="tanh"), UNet((2, 4), norm=None, activation="tanh")])
@pytest.mark.parametrize("mixing", ["permutation", "linear"])
def test_images_come_back(network, mixing):
    with isolated(0):
        layers = stack(Affine(), (2, 8, 4), network=network, layers=4, mixing=mixing).double()
        for parameter in layers.parameters():
            parameter.data.add_(0.1 * torch.randn(parameter.shape))
        x = torch.randn(3, 2, 8, 4).double()
    with torch.no_grad():
        z, log_det = layers(x)
        assert z.shape == x.shape
        torch.testing.assert_close(layers.inverse(z), x, atol=1e-10, rtol=0)
    matrix = torch.autograd.functional.jacobian(lambda at: layers(at[None])[0].ravel(), x[0]).flatten(1)
    torch.testing.assert_close(log_det[0], torch.linalg.slogdet(matrix).logabsdet, atol=1e-8, rtol=0)


def test_networks_without_an_answer_per_pixel_are_refused():
    with pytest.raises(SpecError, match="no answer per pixel"):
        stack(Affine(), (1, 4, 4), network=UNet((2,), output="mean"))


def test_every_column_moves_and_no_layer_leaves_out_a_half():
    """Two couplings are enough for each column to depend on another one, and to be moved."""
    with isolated(0):
        layers = stack(Affine(), (2,), layers=2, network=MLP((8,))).double()
        for parameter in layers.parameters():
            parameter.data.normal_()
    matrix = torch.autograd.functional.jacobian(lambda x: layers(x[None])[0][0], torch.tensor([0.3, -0.8]).double())
    assert bool((matrix.abs() > 1e-6).all())


def test_a_plain_network_sees_images_as_numbers():
    assert not as_image(Spline(), (1, 4, 4), MLP((8,)))
    assert as_image(Spline(), (1, 4, 4), ConvNet((4,)))
    kinds = [type(layer) for layer in stack(Affine(), (4,), layers=3).maps]
    assert kinds == [Coupling, Permutation, Coupling, Permutation, Coupling]
