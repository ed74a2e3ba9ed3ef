"""What all kernels share: sums, products and scales by operators, and rows checked at the door."""

from __future__ import annotations

import pytest
import torch

from likely.core.errors import DataError
from likely.kernels import RBF, Constant, KernelModule, Linear, Product, Scaled, Sum

X = torch.tensor([[0.0, 1.0], [2.0, -1.0], [0.5, 0.5]], dtype=torch.float64)
OTHER = torch.tensor([[1.0, 1.0], [-2.0, 0.0]], dtype=torch.float64)


@pytest.mark.parametrize("other", [None, OTHER], ids=["itself", "other rows"])
def test_operators_act_on_the_matrices(other):
    one, two = RBF(0.7), Linear(0.3)
    first, second = one.matrix(X, other), two.matrix(X, other)
    torch.testing.assert_close((one + two).matrix(X, other), first + second)
    torch.testing.assert_close((one * two).matrix(X, other), first * second)
    torch.testing.assert_close((2.5 * one).matrix(X, other), 2.5 * first)
    torch.testing.assert_close((one + 2.5).matrix(X, other), first + 2.5)


def test_sums_and_products_stay_flat_and_a_scale_is_one_number():
    assert (RBF() + Linear() + 1.0) == Sum((RBF(), Linear(), Constant(1.0)))
    assert (RBF() * Linear() * RBF(2.0)) == Product((RBF(), Linear(), RBF(2.0)))
    assert 2.0 * (3.0 * RBF()) == Scaled(RBF(), 6.0)
    assert 1.0 + RBF() == Sum((Constant(1.0), RBF()))


@pytest.mark.parametrize("wrong", ["RBF", None, True])
def test_only_kernels_and_numbers_combine(wrong):
    with pytest.raises(TypeError, match=f"a kernel and a {type(wrong).__name__} cannot be combined"):
        RBF() + wrong


class Lopsided(KernelModule):
    """x·x′ with an error above the diagonal, as a matrix product may have."""

    def forward(self, x, other=None):
        matrix = x @ (x if other is None else other).mT
        return matrix + 1e-3 * torch.ones_like(matrix).triu(1)

    def spec(self):
        return Linear()


def test_a_matrix_with_itself_is_exactly_symmetric():
    module = Lopsided()
    assert torch.equal(module(X), module(X).mT)
    assert not torch.equal(module(X, X), module(X, X).mT)
    torch.testing.assert_close(module.diagonal(X), X.square().sum(1))


def test_rows_need_two_axes_and_as_many_columns():
    with pytest.raises(DataError, match=r"x has shape \(3,\); a kernel needs rows: \(n, d\)"):
        RBF().matrix([1.0, 2.0, 3.0])
    with pytest.raises(DataError, match=r"x has shape \(3, 2\) and other \(1, 1\); rows must be alike"):
        RBF().matrix(X, [[1.0]])
