from __future__ import annotations

import pytest
import torch
from torch import nn

from likely.data.sparse_rows import SparseRows


def _rows() -> SparseRows:
    dense = torch.tensor([[0.0, 2.0, 0.0], [0.0, 0.0, 0.0], [1.0, 0.0, -3.0], [0.0, 0.0, 4.0]]).double()
    place = dense.nonzero()
    offsets = torch.tensor([0, 1, 1, 3, 4])
    return SparseRows(dense[place[:, 0], place[:, 1]], place[:, 1], offsets, 3)


def test_rows_by_index_are_those_of_the_dense_matrix():
    rows, dense = _rows(), _rows().dense()
    for index in (slice(1, 3), slice(None), slice(None, None, 2), torch.tensor([3, 0, 0])):
        torch.testing.assert_close(rows[index].dense(), dense[index])


def test_a_linear_layer_and_its_gradient_are_those_of_the_dense_matrix():
    network = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2)).double()
    rows = _rows()
    gradients = []
    for x in (rows, rows.dense()):
        network.zero_grad()
        out = network(x)
        out.square().sum().backward()
        gradients.append([out.detach(), *(parameter.grad.clone() for parameter in network.parameters())])
    for own, dense in zip(*gradients, strict=True):
        torch.testing.assert_close(own, dense)


def test_many_layers_at_once():
    rows, weights = _rows(), torch.randn(5, 2, 3).double()
    together = torch.vmap(lambda weight: nn.functional.linear(rows, weight))(weights)
    torch.testing.assert_close(together, rows.dense() @ weights.mT)


def test_columns_beside_come_after_its_own():
    rows, more = _rows(), torch.arange(8.0).view(4, 2).double()
    torch.testing.assert_close(rows.beside(more).dense(), torch.cat([rows.dense(), more], 1))


def test_other_functions_of_torch_do_not_know_them():
    with pytest.raises(TypeError, match="__torch_function__"):
        torch.relu(_rows())
