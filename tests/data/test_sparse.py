"""Sparse products: the dense product, its derivatives of both orders, and all of torch.func's transformations."""

from __future__ import annotations

import gc
import weakref

import pytest
import torch
from torch.func import grad, hessian, jacrev, jvp, vmap

from likely.data.sparse import Selection, SparseMatrix


def made(dtype=torch.float64):
    rows, columns = torch.randint(5, (12,)), torch.randint(7, (12,))
    values = torch.randn(12, dtype=dtype)
    dense = torch.zeros(5, 7, dtype=dtype).index_put((rows, columns), values, accumulate=True)
    return SparseMatrix.of(lambda: (rows, columns, values), (5, 7)), dense


def picked(dtype=torch.float64):
    index = torch.randint(7, (9,))
    return Selection(lambda: index, 9, 7, dtype), torch.eye(7, dtype=dtype)[index]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("make", [made, picked])
def test_products_are_those_of_the_dense_matrix(make, dtype):
    sparse, dense = make(dtype)
    h = torch.randn(7, 3, dtype=dtype)
    torch.testing.assert_close(sparse @ h, dense @ h)
    torch.testing.assert_close(sparse.T @ (dense @ h), dense.T @ dense @ h)
    torch.testing.assert_close(sparse.dense(), dense)
    assert sparse.T.T is sparse


@pytest.mark.parametrize("make", [made, picked])
@pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated")  # torch's own forward mode
def test_derivatives_of_both_orders_and_modes(make):
    sparse, _ = make()
    h = torch.randn(7, 2, dtype=torch.float64, requires_grad=True)
    torch.autograd.gradcheck(lambda h: sparse @ h, h, check_forward_ad=True, check_batched_grad=True)
    torch.autograd.gradgradcheck(lambda h: (sparse @ h).sin(), h)


@pytest.mark.parametrize("make", [made, picked])
@pytest.mark.parametrize("transform", [jacrev, lambda f: grad(lambda h: f(h).sum()), hessian, vmap])
@pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated")
def test_a_matrix_first_used_in_a_transformation_serves_after_it(make, transform):
    sparse, dense = make()
    h = torch.randn(4, 7, 2, dtype=torch.float64)
    h = h if transform is vmap else h[0]
    transformed = transform(lambda h: (sparse @ h).square())(h)
    torch.testing.assert_close(transformed, transform(lambda h: (dense @ h).square())(h))
    plain = torch.randn(7, 2, dtype=torch.float64)
    torch.testing.assert_close(sparse @ plain, dense @ plain)
    torch.testing.assert_close(sparse.T @ (sparse @ plain), dense.T @ dense @ plain)


@pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated")
def test_tangents_go_through_the_same_matrix():
    sparse, dense = made()
    h, change = torch.randn(2, 7, 3, dtype=torch.float64)
    torch.testing.assert_close(jvp(lambda h: sparse @ h, (h,), (change,))[1], dense @ change)


def test_other_values_at_the_same_places():
    sparse, dense = made()
    doubled = sparse.with_values(lambda values: 2 * values)
    torch.testing.assert_close(doubled.dense(), 2 * dense)
    torch.testing.assert_close(doubled.T.dense(), 2 * dense.T)


def test_the_largest_of_each_segment():
    at = Selection(lambda: torch.tensor([2, 0, 2, 2]), 4, 3)
    values = torch.tensor([[1.0, 9.0], [5.0, 0.0], [3.0, -1.0], [2.0, 7.0]])
    assert at.largest(values).tolist() == [[5.0, 0.0], [-torch.inf, -torch.inf], [3.0, 9.0]]
    many = torch.randn(5, 4, 2)
    torch.testing.assert_close(vmap(at.largest)(many), torch.stack([at.largest(member) for member in many]))


def test_a_matrix_and_its_transposed_go_without_the_garbage_collector():
    sparse, _ = made()
    h = torch.randn(7, 2, dtype=torch.float64, requires_grad=True)
    (sparse @ h).sum().backward()
    watched = [weakref.ref(sparse), weakref.ref(sparse.T)]
    gc.disable()
    try:
        del sparse
        h.grad = None
        assert [reference() for reference in watched] == [None, None]
    finally:
        gc.enable()


@pytest.mark.parametrize("make", [made, picked])
def test_products_under_autocast_are_those_of_float32(make):
    """torch has no sparse product in 16 bits: graph networks could not be trained with precision="bfloat16"."""
    sparse, dense = make(torch.float32)
    h = torch.randn(7, 3).bfloat16().requires_grad_()
    with torch.autocast("cpu", torch.bfloat16):
        out = sparse @ h
        (gradient,) = torch.autograd.grad(out.float().square().sum(), h)
        of_float32 = sparse @ h.detach().float()
    torch.testing.assert_close(of_float32, dense @ h.detach().float(), rtol=1e-2, atol=1e-2)
    torch.testing.assert_close(out.float(), dense @ h.float(), rtol=1e-2, atol=1e-2)
    assert gradient.dtype == torch.bfloat16
    torch.testing.assert_close(gradient.float(), 2 * dense.T @ dense @ h.float(), rtol=3e-2, atol=0.1)
