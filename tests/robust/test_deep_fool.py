"""DeepFool: small changes that cross, in every norm, and the nearest way of several."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from likely.core.errors import SpecError
from likely.optim.ball import dual
from likely.robust import FGSM, CarliniWagner, DeepFool, attack
from likely.robust.deep_fool import nearest_way


def test_changes_fool_and_are_no_larger_than_along_the_gradient(net, clouds):
    X, y = clouds
    right = net.predict(X) == y
    sizes = {}
    for method in (DeepFool(), CarliniWagner(steps=60, searches=5)):
        found = attack(net, X, y, method)
        assert found.success.all()
        sizes[type(method).__name__] = found.l2[right].mean()
        assert not attack(net, X, y, FGSM(0.25 * float(found.l2[right].min()), norm=2)).success[right].any()
    assert sizes["CarliniWagner"] <= 1.05 * sizes["DeepFool"]


@pytest.mark.parametrize("norm", [1, 1.5, 2, math.inf])
def test_deep_fool_crosses_in_every_norm(net, clouds, norm):
    X, y = clouds
    assert attack(net, X, y, DeepFool(norm)).success.all()
    inside = attack(net, X, y, DeepFool(norm), bounds=(X.min() - 1, X.max() + 1))
    assert inside.success.mean() > 0.9


@pytest.mark.parametrize("norm", [1, 1.1, 2, math.inf])
def test_a_fold_is_left_along_it(norm):
    """The margin x₁ − 2|x₀| − 1 has its steepest way over the fold at x₀ = 0 and back; it is crossed along the fold."""

    def scores(x):
        return torch.stack([torch.zeros(len(x)), x[:, 1] - 2 * x[:, 0].abs() - 1], 1)

    found = attack(scores, np.array([[0.2, 0.0], [-0.7, 0.3]], np.float32), [0, 0], DeepFool(norm))
    assert found.success.all()


@pytest.mark.parametrize("norm", [1, 1.5, 2, math.inf])
def test_the_nearest_way_brings_the_nearest_margin_to_0(norm, seed):
    """Of linear margins it is the least distance |m| / ‖g‖_q, and a push is that much longer. No draw is an alarm."""
    torch.manual_seed(seed % 2**31)
    margins, gradients = -torch.rand(20, 3, dtype=torch.float64), torch.randn(20, 3, 5, dtype=torch.float64)
    gradients[0, 1] = 0.0  # a way that leads nowhere is never the nearest
    way = nearest_way(margins, gradients, norm)
    q = dual(norm)
    distances = margins.abs() / torch.linalg.vector_norm(gradients, q, dim=2)
    torch.testing.assert_close(torch.linalg.vector_norm(way, norm, dim=1), distances.amin(1))
    after = margins + torch.einsum("nkd,nd->nk", gradients, way)
    torch.testing.assert_close(after.gather(1, distances.argmin(1, keepdim=True))[:, 0], torch.zeros_like(after[:, 0]))
    longer = nearest_way(margins, gradients, norm, push=0.5)
    torch.testing.assert_close(torch.linalg.vector_norm(longer, norm, dim=1), distances.amin(1) + 0.5)


def test_where_nothing_leads_anywhere_nothing_moves():
    assert not nearest_way(-torch.ones(2, 3), torch.zeros(2, 3, 4), 2.0, push=1.0).any()


def test_arguments_that_will_not_do():
    for arguments, words in (
        ({"norm": 0.5}, "norm must be a number p from 1 to inf"),
        ({"steps": 0}, "steps must be an integer, 1 or more"),
        ({"overshoot": 0.0}, "overshoot must be a positive fraction"),
        ({"candidates": 0}, "candidates must be an integer, 1 or more"),
    ):
        with pytest.raises(SpecError, match=words):
            DeepFool(**arguments)
