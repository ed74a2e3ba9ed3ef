"""The matrix made in blocks is the matrix made at once, and so is the gradient of ⟨G, K⟩."""

from __future__ import annotations

import pytest
import torch

from likely.kernels import RBF, Linear, White
from likely.kernels import gram as module
from likely.kernels.gram import gram, gram_gradient

KERNEL = 2.0 * RBF((0.5, 1.5)) + Linear(0.3) + White(0.1)


@pytest.fixture
def rows():
    return torch.randn(13, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("block", [1, 4, 13, 256])
def test_blocks_give_the_whole_matrix_exactly_symmetric(rows, block, monkeypatch):
    monkeypatch.setattr(module, "BLOCK", block)
    matrix = gram(KERNEL.build(rows), rows)
    assert torch.equal(matrix, matrix.mT)
    torch.testing.assert_close(matrix, KERNEL.matrix(rows), rtol=1e-12, atol=1e-12)


def test_entries_are_the_kernel_of_each_pair(rows):
    matrix = gram(KERNEL.build(rows), rows)
    for i in range(3):
        for j in range(i):
            pair = KERNEL.matrix(rows[[i]], rows[[j]])
            torch.testing.assert_close(matrix[i, j], pair[0, 0], rtol=1e-12, atol=1e-12)
        torch.testing.assert_close(matrix[i, i], KERNEL.matrix(rows[[i]])[0, 0], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("block", [4, 256])
def test_the_gradient_in_blocks_is_that_of_the_whole(rows, block, monkeypatch):
    monkeypatch.setattr(module, "BLOCK", block)
    built = KERNEL.build(rows)
    parameters = list(built.parameters())
    half = torch.randn(13, 13, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    weight = half + half.mT
    whole = torch.autograd.grad((weight * built(rows)).sum(), parameters)
    for ours, expected in zip(gram_gradient(built, rows, weight, parameters), whole, strict=True):
        torch.testing.assert_close(ours, expected, rtol=1e-10, atol=1e-10)
    assert gram_gradient(built, rows, weight, []) == []
