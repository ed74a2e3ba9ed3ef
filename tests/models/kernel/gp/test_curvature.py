"""Curvature as an operator, against the dense matrix M = W½ (I + W½ (K ⊗ I) W½)⁻¹ W½."""

from __future__ import annotations

import math

import pytest
import torch

from likely.models.kernel.gp.curvature import Blocks, Softmax, curvature_of

N, K, M = 6, 3, 4


def kernel():
    x = torch.linspace(-1, 1, N, dtype=torch.float64)
    return torch.exp(-2 * (x[:, None] - x) ** 2)


def softmax_information():
    probability = torch.randn(N, K, dtype=torch.float64).softmax(-1)
    weight = torch.rand(N, dtype=torch.float64) + 0.5
    outer = probability.unsqueeze(-1) * probability.unsqueeze(-2)
    return probability, weight, weight[:, None, None] * (torch.diag_embed(probability) - outer)


def dense(information):
    """M (n, k, n, k) and log|B|; B and I + (K ⊗ I) W have one determinant."""
    k = information.shape[1]
    w, wide = torch.block_diag(*information), torch.kron(kernel(), torch.eye(k, dtype=torch.float64))
    both = torch.eye(N * k, dtype=torch.float64) + wide @ w
    return (w @ torch.linalg.inv(both)).reshape(N, k, N, k), float(torch.logdet(both))


def compare(curvature, information, rtol=1e-8, atol=1e-9):
    matrix, log_det = dense(information)
    k = information.shape[1]
    values, cross = torch.randn(N, k, dtype=torch.float64), torch.randn(N, M, dtype=torch.float64)
    expected = torch.einsum("icjd,jd->ic", matrix, values)
    torch.testing.assert_close(curvature.apply(values), expected, rtol=rtol, atol=atol)
    joint = torch.einsum("ia,icjd,jb->acbd", cross, matrix, cross)
    torch.testing.assert_close(curvature.joint(cross), joint.reshape(M * k, M * k), rtol=rtol, atol=atol)
    blocks = torch.stack([joint[m, :, m] for m in range(M)])
    torch.testing.assert_close(curvature.blocks(cross), blocks, rtol=rtol, atol=atol)
    torch.testing.assert_close(curvature.trace(), torch.einsum("icjc->ij", matrix), rtol=rtol, atol=atol)
    assert curvature.log_det == pytest.approx(log_det, rel=rtol, abs=atol)


@pytest.mark.parametrize("k", [1, 2])
def test_any_information(k):
    root = torch.randn(N, k, k, dtype=torch.float64)
    information = root @ root.mT
    information[0] = 0  # a row that says nothing
    curvature = curvature_of(kernel(), information, None, torch.ones(N, dtype=torch.float64))
    assert isinstance(curvature, Blocks)
    compare(curvature, information)


def test_labels_have_a_cheaper_form_of_the_same():
    probability, weight, information = softmax_information()
    curvature = curvature_of(kernel(), information, probability, weight)
    assert isinstance(curvature, Softmax)
    compare(curvature, information)
    compare(Blocks.of(kernel(), information), information)


def test_information_that_is_no_softmax_has_the_form_for_all():
    probability, weight, information = softmax_information()
    assert isinstance(curvature_of(kernel(), 2 * information, probability, weight), Blocks)


def test_one_number_by_hand():
    """k = 1, n = 1, K = 2, W = 3: B = 7, M = 3/7."""
    one = Blocks.of(torch.full((1, 1), 2.0).double(), torch.full((1, 1, 1), 3.0).double())
    assert one.log_det == pytest.approx(math.log(7), rel=1e-12)
    assert float(one.trace()) == pytest.approx(3 / 7, rel=1e-12)
