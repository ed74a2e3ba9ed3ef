"""Linear and polynomial kernels are inner products of features that can be written down."""

from __future__ import annotations

from itertools import combinations_with_replacement
from math import factorial, prod, sqrt

import numpy as np
import pytest
import torch
from sklearn.metrics.pairwise import polynomial_kernel

from likely.kernels import Linear, Polynomial

RNG = np.random.default_rng(0)
X, OTHER = RNG.normal(size=(7, 3)), RNG.normal(size=(4, 3))


def features(x, degree, offset):
    """All monomials of degree d in (x, √c), each with the root of its multinomial coefficient."""
    wide = np.column_stack([x, np.full(len(x), sqrt(offset))])
    columns = []
    for chosen in combinations_with_replacement(range(wide.shape[1]), degree):
        ways = factorial(degree) / prod(factorial(chosen.count(j)) for j in set(chosen))
        columns.append(sqrt(ways) * wide[:, chosen].prod(1))
    return np.column_stack(columns)


def test_linear_is_the_covariance_of_a_random_line():
    np.testing.assert_allclose(Linear(0.3).matrix(X, OTHER), X @ (0.3 * np.eye(3)) @ OTHER.T, rtol=1e-12, atol=1e-13)
    assert int(torch.linalg.matrix_rank(Linear().matrix(X))) == 3


@pytest.mark.parametrize("degree", [1, 2, 3])
def test_a_polynomial_is_the_inner_product_of_all_monomials(degree):
    expected = features(X, degree, 0.7) @ features(OTHER, degree, 0.7).T
    kernel = Polynomial(degree=degree, offset=0.7)
    np.testing.assert_allclose(kernel.matrix(X, OTHER), expected, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(
        expected, polynomial_kernel(X, OTHER, degree, gamma=1.0, coef0=0.7), rtol=1e-10, atol=1e-12
    )


def test_the_diagonal_needs_no_matrix():
    x = torch.from_numpy(X)
    for kernel in (Linear(0.3), Polynomial(degree=2, offset=0.7)):
        torch.testing.assert_close(kernel.build(x).diagonal(x), kernel.matrix(x).diagonal(), check_stride=False)
