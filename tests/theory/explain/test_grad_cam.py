"""Grad-CAM: the channels of the last convolution, weighed by the gradients that go to them."""

from __future__ import annotations

import copy

import numpy as np
import torch
from torch import nn

from likely.inference.posterior import Posterior
from likely.theory.explain import grad_cam


def test_grad_cam_of_one_channel_is_its_map():
    """One kernel, mean pooling and a weight w: α = w / positions, so that the map is (w / positions)·max(0, A)."""
    torch.manual_seed(0)
    conv, head = nn.Conv2d(1, 1, 3, padding=1), nn.Linear(1, 1)
    net = nn.Sequential(conv, nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), head)
    head.weight.data.fill_(2.0)
    x = torch.randn(3, 1, 6, 5)
    expected = 2.0 / 30 * conv(x).relu()
    np.testing.assert_allclose(grad_cam(net, x).values, expected.detach().numpy(), atol=1e-6)
    np.testing.assert_allclose(grad_cam(net, x, layer=conv).values.shape, (3, 1, 6, 5))


def test_the_gradient_goes_through_the_average_of_members(convolutional, stripes):
    """Two members that are one and the same make the map of one; so do a member and another without weight."""
    X = stripes[0][:4]
    alone = convolutional.posterior_
    twice = copy.copy(convolutional)
    twice.posterior_ = Posterior.join([alone, alone])
    expected = grad_cam(convolutional, X).values
    assert expected.min() >= 0
    np.testing.assert_allclose(grad_cam(twice, X).values, expected, atol=1e-5 * expected.max())
