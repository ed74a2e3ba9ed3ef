"""Products by oneDNN are products, from whatever memory, and are asked for where they are faster."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from likely.networks.layers import products
from likely.networks.layers.dense import DensePasses, dense_layers


@pytest.fixture
def preferred(monkeypatch):
    """As if oneDNN were the faster one on this machine, at products of any size, if it is there at all."""
    monkeypatch.setattr(products, "_mkl_is_narrow", torch.backends.mkldnn.is_available)
    monkeypatch.setattr(products, "LARGE", 1)


@pytest.mark.parametrize("rows", [1, 33])
def test_passes_by_onednn_equal_autograd(preferred, rows, seed):
    """To rounding of float32; the rows are a part of a wider matrix."""
    generator = torch.Generator().manual_seed(seed)
    network = nn.Sequential(nn.Linear(20, 40), nn.ReLU(), nn.Linear(40, 17, bias=False), nn.Tanh(), nn.Linear(17, 3))
    parameters = {name: value.detach() for name, value in network.named_parameters()}
    gradients = {name: torch.empty_like(value) for name, value in parameters.items()}
    passes = DensePasses(dense_layers(network), parameters, gradients)
    x = torch.randn(rows, 30, generator=generator)[:, 4:24]
    score = torch.randn(rows, 3, generator=generator)
    out = passes.forward(x).clone()
    passes.backward(score.clone())
    expected = network(x)
    wanted = torch.autograd.grad((expected * score).sum(), list(network.parameters()))
    torch.testing.assert_close(out, expected.detach(), rtol=1e-4, atol=1e-5)
    for name, gradient in zip(gradients, wanted, strict=True):
        torch.testing.assert_close(gradients[name], gradient, rtol=1e-4, atol=1e-4 * float(gradient.abs().max() + 1))


def test_only_large_products_of_float32_are_worth_it(monkeypatch):
    monkeypatch.setattr(products, "_mkl_is_narrow", lambda: True)
    assert products.rows_for_onednn(torch.zeros(256, 784)) == products.LARGE / (256 * 784)
    others = torch.zeros(256, 784, dtype=torch.float64), torch.zeros(3, 256, 784), torch.zeros(0, 784)
    assert [products.rows_for_onednn(weight) for weight in others] == [math.inf] * 3
    monkeypatch.setattr(products, "_mkl_is_narrow", lambda: False)
    assert products.rows_for_onednn(torch.zeros(256, 784)) == math.inf


def test_without_the_operator_torch_is_asked(monkeypatch):
    """It is missing, takes other arguments, or means something else."""
    assert products._is_there() or not torch.backends.mkldnn.is_available()
    others = (
        lambda x, weight, bias: torch.ops.mkldnn._of_another_version(x, weight, bias),
        lambda x, weight, bias: torch.ops.aten.addmm(x, weight, bias, "none"),
        lambda x, weight, bias: x @ weight.mT,
    )
    for other in others:
        monkeypatch.setattr(products, "onednn_affine", other)
        assert not products._is_there()


def test_numbers_that_are_none_pass_through_and_rows_may_share_memory(preferred, seed):
    generator = torch.Generator().manual_seed(seed)
    network = nn.Linear(5, 7)
    parameters = {name: value.detach() for name, value in network.named_parameters()}
    passes = DensePasses(dense_layers(network), parameters, {})
    x = torch.randn(6, 5, generator=generator)
    x[0, 0], x[1, 1], x[2, 2] = math.nan, math.inf, -math.inf
    for rows in (x, x[:0], x[3:4].expand(4, 5)):
        torch.testing.assert_close(passes.forward(rows), network(rows).detach(), equal_nan=True)
