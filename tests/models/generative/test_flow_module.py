"""The density of a flow: change of variables, integers spread over their unit, rows and noise."""

from __future__ import annotations

import math

import torch

from likely.core.random import isolated
from likely.models.generative.base_density import BaseDensity
from likely.models.generative.flow_module import FlowModule
from likely.models.generative.transforms import Affine, stack
from likely.networks import MLP


def module(steps=None, scale=3.0):
    with isolated(0):
        built = FlowModule(stack(Affine(), (2,), network=MLP((8,))), BaseDensity("normal", (2,)), (2,), steps=steps)
        rows = scale * torch.randn(400, 2).double() + 5
        built = built.double()
        built.adapt(rows.round() if steps else rows, None, None)
    return built.eval(), rows


def test_log_p_is_that_of_the_noise_plus_the_volume():
    built, rows = module()
    x = rows[0]
    matrix = torch.autograd.functional.jacobian(lambda row: built.code(row[None])[0], x)
    with torch.no_grad():
        expected = built.base.log_prob(built.code(x[None])) + torch.linalg.slogdet(matrix).logabsdet
        torch.testing.assert_close(built.log_prob(x[None]), expected)
        torch.testing.assert_close(built.decode(built.code(rows)), rows)


def test_probabilities_of_integers_sum_to_one():
    """P(k) = ∫ p(k + u) du over |u| ≤ ½: with many draws of u, over a grid that holds nearly all rows."""
    built, _ = module(steps={0: 1.0, 1: 1.0}, scale=1.0)
    grid = torch.cartesian_prod(torch.arange(-3, 14), torch.arange(-3, 14)).double()
    with torch.no_grad(), isolated(1):
        log_probs = built.log_prob(grid, None, 200)  # (draws, n)
    total = float((torch.logsumexp(log_probs, 0) - math.log(200)).exp().sum())
    assert abs(total - 1) < 0.03


def test_integers_are_drawn_as_integers():
    built, _ = module(steps={1: 1.0})
    with torch.no_grad(), isolated(0):
        x = built.sample(50)
    assert torch.equal(x[:, 1], x[:, 1].round())
    assert not torch.equal(x[:, 0], x[:, 0].round())
