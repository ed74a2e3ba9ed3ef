from __future__ import annotations

import pytest
import torch

from likely.data.rows import Ragged
from likely.inference import dataset as dataset_module
from likely.inference.dataset import Dataset


@pytest.fixture
def data():
    x = torch.arange(20).reshape(10, 2)
    return Dataset(x, torch.arange(10.0), torch.arange(10.0) / 10, torch.float64)


def test_batches_are_rows_in_the_dtype_of_the_fit(data):
    batch = data.batch(torch.tensor([3, 0]))
    assert batch.x.dtype == torch.float64
    assert batch.x.tolist() == [[6, 7], [0, 1]]
    assert batch.y.tolist() == [3, 0]
    torch.testing.assert_close(batch.weight, torch.tensor([0.3, 0.0]))


def test_a_table_of_numbers_gives_a_batch_for_each_member(data):
    batch = data.batch(torch.tensor([[3, 0], [1, 1]]))
    assert batch.x.shape == (2, 2, 2)
    assert batch.y.tolist() == [[3, 0], [1, 1]]


def test_a_subset_of_a_subset_is_a_subset(data):
    odd = data.subset(torch.tensor([1, 3, 5, 7, 9]))
    two = odd.subset(torch.tensor([4, 0]))
    assert (len(data), len(odd), len(two)) == (10, 5, 2)
    assert two.batch(slice(None)).y.tolist() == [9, 1]
    assert two.x is data.x  # nothing is copied


def test_weights_add_up(data):
    assert data.total_weight() == pytest.approx(4.5)
    assert data.subset(torch.tensor([1, 3])).total_weight() == pytest.approx(0.4)
    plain = Dataset(data.x, torch.zeros(10, 2, 3), None, torch.float32, positions=(2, 3))
    assert plain.total_weight() == 60
    assert plain.subset(torch.tensor([1, 3])).total_weight() == 12


@pytest.mark.parametrize("part", [None, slice(2, 9)])
def test_blocks_are_all_rows_in_order(part, data, monkeypatch):
    monkeypatch.setattr(dataset_module, "BLOCK", 6)  # three rows of two numbers
    blocks = list(data.blocks(part))
    assert all(len(block.x) <= 3 for block in blocks)
    assert torch.cat([block.y for block in blocks]).tolist() == list(range(10))[part or slice(None)]


def test_coupled_targets_come_with_where_rows_start_and_count_as_rows():
    rows = Ragged(torch.arange(6.0), torch.tensor([0, 1, 3, 6]))
    whole = Dataset(rows, rows, None, torch.float32, whole=True)
    batch = whole.batch(torch.tensor([2, 0]))
    assert batch.y.tolist() == [3, 4, 5, 0]
    assert batch.offsets.tolist() == [0, 3, 4]
    assert (whole.total_weight(), Dataset(rows, rows, None, torch.float32).total_weight()) == (3, 6)
    weighted = Dataset(rows, rows, torch.tensor([1.0, 2.0, 3.0]), torch.float32, whole=True)
    assert weighted.batch(slice(1, 3)).weight.tolist() == [2, 3]
    assert weighted.total_weight() == 6
