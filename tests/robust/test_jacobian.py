"""Margins and their gradients, row by row, as a Jacobian of the whole has them."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import nn

from likely.core.errors import SpecError
from likely.robust.jacobian import nearest_margins
from likely.robust.victims import victim_of


def test_margins_and_gradients_are_those_of_the_jacobian(rng):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 4)).double()
    victim = victim_of(net)
    x = victim.read(rng.normal(size=(6, 3)))
    y = victim.targets(x, x, rng.integers(0, 4, 6))
    margins, gradients, largest = nearest_margins(victim, x, y, 2)
    for row in range(6):
        scores = net(x[row]).detach()
        jacobian = torch.autograd.functional.jacobian(net, x[row])
        others = [k for k in range(4) if k != y[row]]
        order = sorted(others, key=lambda k: -float(scores[k]))[:2]
        torch.testing.assert_close(margins[row], scores[order] - scores[y[row]])
        torch.testing.assert_close(gradients[row], jacobian[order] - jacobian[y[row]])
        assert largest[row] == margins[row, 0]


def test_a_way_that_is_none_has_no_gradient(rng):
    """Of three classes two are wrong: asked for more ways, there are no more; a class of probability 0 is −∞ away."""
    shut = torch.tensor([0.0, 0.0, -math.inf], dtype=torch.float64)
    victim = victim_of(lambda x: x + shut)
    x = victim.read(rng.normal(size=(5, 3)))
    y = torch.tensor([0, 1, 0, 1, 0])
    margins, gradients, _ = nearest_margins(victim, x, y, 10)
    assert margins.shape == (5, 1)
    expected = np.where(y.numpy()[:, None] == 0, [[-1.0, 1.0, 0.0]], [[1.0, -1.0, 0.0]])
    np.testing.assert_array_equal(gradients[:, 0], expected)


def test_functions_without_gradients_are_told(rng):
    victim = victim_of(lambda x: x.detach())
    x = victim.read(rng.normal(size=(2, 3)))
    with pytest.raises(SpecError, match="gives no gradient with respect to its inputs"):
        nearest_margins(victim, x, torch.tensor([0, 1]), 1)
