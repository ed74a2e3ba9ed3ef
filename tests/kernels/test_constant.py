"""Constant is the same for all pairs of rows, White is there for a row with itself alone."""

from __future__ import annotations

import torch

from likely.kernels import Constant, White

X = torch.tensor([[0.0], [1.0], [0.0]], dtype=torch.float64)


def test_constant_has_one_eigenvalue_that_is_not_zero():
    matrix = Constant(0.7).matrix(X)
    torch.testing.assert_close(matrix, torch.full((3, 3), 0.7, dtype=torch.float64))
    torch.testing.assert_close(torch.linalg.eigvalsh(matrix)[-1].item(), 3 * 0.7)
    torch.testing.assert_close(Constant(0.7).matrix(X, X[:2]), torch.full((3, 2), 0.7, dtype=torch.float64))


def test_white_knows_rows_by_their_place_not_by_their_value():
    torch.testing.assert_close(White(0.7).matrix(X), 0.7 * torch.eye(3, dtype=torch.float64))
    assert torch.equal(White(0.7).matrix(X, X), torch.zeros(3, 3, dtype=torch.float64))


def test_the_gradient_by_log_variance_is_the_matrix_itself():
    for kernel in (Constant(0.7), White(0.7)):
        module = kernel.build(X)
        module(X).sum().backward()
        torch.testing.assert_close(module.variance.log.grad, kernel.matrix(X).sum())
        torch.testing.assert_close(module.diagonal(X), kernel.matrix(X).diagonal(), check_stride=False)


def test_the_spec_has_what_was_learned_unless_it_is_held():
    module = White(0.7).build(X)
    with torch.no_grad():
        module.variance.log.fill_(0.0)
    assert module.spec() == White(1.0)
    assert not Constant(0.7, learn=False).build(X).variance.log.requires_grad
