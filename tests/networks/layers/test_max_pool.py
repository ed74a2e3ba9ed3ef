"""Max pooling in bfloat16 is torch's to the bit, and so are its gradients."""

from __future__ import annotations

import math

import pytest
import torch
from torch.nn import functional

from likely.networks.layers.max_pool import _MaxPool, max_pool


def image(seed, shape):
    """Few different numbers, so that blocks have equal ones; channels last in memory."""
    x = torch.randint(-3, 4, shape, generator=torch.Generator().manual_seed(seed)).bfloat16()
    return x.to(memory_format=torch.channels_last).requires_grad_()


@pytest.mark.parametrize(
    ("shape", "factor"), [((3, 5, 8, 6), 2), ((2, 4, 7, 9), 2), ((2, 3, 9, 10), 3), ((1, 2, 4, 4), 4)]
)
def test_values_and_gradients_are_those_of_torch(shape, factor, seed):
    x = image(seed, shape)
    out, expected = max_pool(x, factor), functional.max_pool2d(x, factor)
    assert type(out.grad_fn).__name__ == f"{_MaxPool.__name__}Backward"
    assert torch.equal(out, expected)
    assert out.is_contiguous(memory_format=torch.channels_last)
    score = torch.randn(out.shape, generator=torch.Generator().manual_seed(seed)).bfloat16()  # channels first
    gradients = [torch.autograd.grad(y, x, score)[0] for y in (out, expected)]
    assert torch.equal(*gradients)


def test_what_is_no_number_wins_its_block():
    x = image(0, (1, 2, 4, 4)).detach()
    x[0, 0, 0, 1], x[0, 0, 3, 3], x[0, 1, 0, 0], x[0, 1, 2, 2] = math.nan, -math.nan, math.inf, -math.inf
    torch.testing.assert_close(max_pool(x, 2), functional.max_pool2d(x, 2), rtol=0, atol=0, equal_nan=True)


def test_gradients_of_gradients_are_those_of_torch(seed):
    x = image(seed, (2, 3, 4, 4))

    def penalty(pool):
        (gradient,) = torch.autograd.grad(pool(x, 2).square().sum(), x, create_graph=True)
        return torch.autograd.grad(gradient.square().sum(), x)[0]

    assert torch.equal(penalty(max_pool), penalty(functional.max_pool2d))


def test_other_images_are_left_to_torch():
    """In float32, with positions next to each other in memory, or without rows."""
    x = image(0, (2, 3, 32, 32)).detach()
    for other, factor in ((x.float(), 2), (x.contiguous(), 2), (x[0], 2)):
        assert torch.equal(max_pool(other, factor), functional.max_pool2d(other, factor))
        assert max_pool(other.clone().requires_grad_(), factor).grad_fn.name() != f"{_MaxPool.__name__}Backward"
