from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.gaussian_process import kernels as peer

from likely.core.errors import SpecError
from likely.kernels import RBF, Constant, Linear, Matern, Periodic, Polynomial, Product, Scaled, Sum, White

RNG = np.random.default_rng(0)
X, OTHER = RNG.normal(size=(20, 2)), RNG.normal(size=(7, 2))
A, B, C = RBF(0.5), Linear(2.0), Matern(2.0)


@pytest.mark.parametrize("other", [None, OTHER], ids=["itself", "other"])
def test_sums_products_and_multiples_are_those_of_the_matrices(other):
    a, b = A.matrix(X, other), B.matrix(X, other)
    np.testing.assert_allclose((A + B).matrix(X, other), a + b, rtol=1e-14)
    np.testing.assert_allclose((A * B).matrix(X, other), a * b, rtol=1e-14)
    np.testing.assert_allclose((3 * A).matrix(X, other), 3 * a, rtol=1e-14)
    np.testing.assert_allclose((A + 0.5).matrix(X, other), a + 0.5, rtol=1e-14)


def test_sums_and_products_are_flat_so_that_brackets_do_not_matter():
    assert (A + B) + C == A + (B + C) == Sum((A, B, C))
    assert (A * B) * C == A * (B * C) == Product((A, B, C))
    assert Product((A, Sum((B, C)))) == A * (B + C)


def test_multiples_of_multiples_have_one_variance():
    assert 2.0 * (3.0 * A) == A * 6.0 == Scaled(A, 6.0)
    held = Scaled(A, 3.0, learn=False)
    assert 2.0 * held == Scaled(held, 2.0)
    assert np.float64(2.0) * A == A * np.int64(2) == Scaled(A, 2.0)


def test_numbers_that_are_added_are_constants():
    assert Sum((A, Constant(2.0))) == A + 2
    assert Sum((Constant(2.0), A)) == 2 + A


def test_composites_are_those_of_scikit_learn():
    ours = 2.0 * RBF(0.5) + Linear() * Constant(0.3) + White(0.1)
    theirs = 2.0 * peer.RBF(0.5) + peer.DotProduct(0.0) * peer.ConstantKernel(0.3) + peer.WhiteKernel(0.1)
    np.testing.assert_allclose(ours.matrix(X), theirs(X), atol=1e-10)
    np.testing.assert_allclose(ours.matrix(X, OTHER), theirs(X, OTHER), atol=1e-10)


def test_a_polynomial_is_a_power_of_scikit_learns_dot_product():
    theirs = peer.DotProduct(np.sqrt(0.7)) ** 3
    np.testing.assert_allclose(Polynomial(3, 0.7).matrix(X, OTHER), theirs(X, OTHER), rtol=1e-10, atol=1e-12)


def test_a_polynomial_is_the_product_of_its_features():
    """(x·x′ + c)² = φ(x)·φ(x′) with the squares, the mixed product, the columns and 1, each with its binomial root."""

    def features(x):
        mixed = np.sqrt(2) * x[:, [0]] * x[:, [1]]
        return np.hstack([x**2, mixed, np.sqrt(2 * 0.7) * x, np.full((len(x), 1), 0.7)])

    np.testing.assert_allclose(
        Polynomial(2, 0.7).matrix(X, OTHER), features(X) @ features(OTHER).T, rtol=1e-12, atol=1e-13
    )


def test_white_noise_is_of_its_own_row():
    assert torch.equal(White(0.3).matrix(X), 0.3 * torch.eye(20, dtype=torch.float64))
    assert not White(0.3).matrix(X, X).any()


def test_what_is_learned_comes_back_in_the_spec():
    kernel = 2.0 * RBF() + Periodic() * Linear()
    module = kernel.build(torch.from_numpy(X))
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.fill_(np.log(0.25))
    assert module.spec() == 0.25 * RBF(0.25) + Periodic(0.25, 0.25) * Linear(0.25)


def test_what_is_no_kernel_cannot_be_combined():
    for other in ("rbf", None, [1.0], True):
        with pytest.raises(TypeError, match=r"a kernel and a .* cannot be combined"):
            A + other
        with pytest.raises(TypeError, match=r"a kernel and a .* cannot be combined"):
            A * other
    with pytest.raises(SpecError, match=r"Scaled\(variance=-2.0\): variance must be a positive number"):
        -2.0 * A
    with pytest.raises(SpecError, match=r"Sum\(kernels=\(\)\): kernels must be one kernel or more"):
        Sum(())
    with pytest.raises(SpecError, match=r"Product\(kernels=\(1,\)\): kernels must be one kernel or more"):
        Product((1,))
    with pytest.raises(SpecError, match="degree must be an integer above 0"):
        Polynomial(degree=0)
