"""A floor under eigenvalues is the constrained maximum of the likelihood."""

from __future__ import annotations

import torch

from likely.models.emissions.gaussian_floor import at_least


def scatter(*eigenvalues):
    """A matrix with these eigenvalues and a random basis."""
    basis = torch.linalg.qr(torch.randn(len(eigenvalues), len(eigenvalues), dtype=torch.float64))[0]
    return (basis * torch.tensor(eigenvalues, dtype=torch.float64)) @ basis.T


def test_eigenvalues_are_clamped_and_vectors_kept():
    matrices = torch.stack([scatter(0.01, 0.5, 2.0), scatter(1.0, 2.0, 3.0), scatter(-1e-3, 0.1, 0.2)])
    held, changed = at_least(matrices, 0.3)
    assert changed.tolist() == [True, False, True]
    expected = torch.tensor([[0.3, 0.5, 2.0], [1.0, 2.0, 3.0], [0.3, 0.3, 0.3]], dtype=torch.float64)
    torch.testing.assert_close(torch.linalg.eigvalsh(held), expected, rtol=1e-10, atol=1e-12)
    torch.testing.assert_close(held[0] @ matrices[0], matrices[0] @ held[0])  # they commute: one basis
    assert torch.equal(held[1], matrices[1])


def test_no_other_covariance_above_the_floor_is_more_likely():
    sample = scatter(0.01, 0.2, 1.5)
    held, _ = at_least(sample, 0.3)

    def value(sigma):
        return float(-0.5 * torch.logdet(sigma) - 0.5 * torch.linalg.solve(sigma, sample).trace())

    for _ in range(200):
        noise = 0.1 * torch.randn(3, 3, dtype=torch.float64)
        other, _ = at_least(held + noise + noise.T, 0.3)
        assert value(other) <= value(held) + 1e-12


def test_without_a_floor_a_singular_matrix_can_be_factored():
    vector = torch.tensor([[1.0], [2.0], [3.0]], dtype=torch.float64)
    held, changed = at_least(vector @ vector.T, 0.0)
    assert bool(changed)
    torch.testing.assert_close(held, vector @ vector.T, rtol=1e-10, atol=1e-10)
    assert bool(torch.isfinite(torch.linalg.cholesky(held)).all())
