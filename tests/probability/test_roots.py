"""The symmetric root squares to its matrix, and follows it without a jump, also where eigenvalues meet."""

from __future__ import annotations

import torch

from likely.probability.roots import symmetric_root


def test_its_square_is_the_matrix_also_of_singular_ones(seed):
    half = torch.randn(5, 4, 2, dtype=torch.float64)
    for covariance in (half @ half.mT, half @ half.mT + torch.eye(4), torch.zeros(1, 3, 3), torch.full((2, 1, 1), 4.0)):
        root = symmetric_root(covariance)
        torch.testing.assert_close(root @ root, covariance, atol=1e-10, rtol=1e-10)
        torch.testing.assert_close(root, root.mT)


def test_it_has_the_derivative_of_differences(seed):
    half = torch.randn(2, 3, 3, dtype=torch.float64)
    covariance = (half @ half.mT + torch.eye(3)).requires_grad_()
    assert torch.autograd.gradcheck(lambda given: symmetric_root(0.5 * (given + given.mT)), covariance)
    alike = torch.eye(3, dtype=torch.float64).unsqueeze(0).requires_grad_()
    assert torch.autograd.gradcheck(lambda given: symmetric_root(0.5 * (given + given.mT)), alike)


def test_it_does_not_turn_where_eigenvalues_meet():
    """diag(1 + t, 1 − t), and the same turned by 45°, come to the identity from both sides."""
    signs = torch.tensor([-1e-6, 1e-6], dtype=torch.float64).view(2, 1, 1)
    apart = torch.tensor([[1.0, 0.0], [0.0, -1.0]]), torch.tensor([[0.0, 1.0], [1.0, 0.0]])
    for direction in apart:
        below, above = symmetric_root(torch.eye(2, dtype=torch.float64) + signs * direction)
        torch.testing.assert_close(below, above, atol=1e-5, rtol=0)
