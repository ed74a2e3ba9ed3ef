"""Rows a block at a time: each row once, with the pattern of what is known in it."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from likely.models.linear_gaussian.blocks import ROWS, blocks, by_pattern, has_missing, patterns


def with_holes(x, seed, fraction=0.3):
    holes = torch.from_numpy(np.random.default_rng(seed).random(tuple(x.shape)) < fraction)
    return torch.where(holes, torch.nan, x)


@pytest.mark.parametrize("holes", [False, True])
def test_blocks_hold_each_row_once(holes):
    x = torch.arange(3 * (2 * ROWS + 5)).reshape(-1, 3).double()
    x = with_holes(x, 0) if holes else x
    assert has_missing(x) == holes
    seen = torch.full_like(x, -1)
    for block in blocks(x):
        known = block.masks[block.owner].bool()
        seen[block.rows] = torch.where(known, block.values, torch.nan)
        assert (block.values[~known] == 0).all()
    np.testing.assert_array_equal(seen, x)
    if holes:
        masks, owner = patterns(x)
        np.testing.assert_array_equal(masks[owner].bool(), ~x.isnan())
        assert len(masks) == len(torch.unique(x.isnan(), dim=0))


def test_rows_of_a_block_are_parted_by_what_they_know():
    """Of each block the patterns part the rows, and name the columns that all rows of a part have."""
    x = with_holes(torch.randn(300, 4).double(), 1)
    for block in blocks(x):
        parts = list(by_pattern(block))
        assert sorted(torch.cat([chosen for chosen, _ in parts]).tolist()) == list(range(len(block.values)))
        for chosen, known in parts:
            for row in x[block.rows][chosen]:
                assert (~row.isnan()).nonzero()[:, 0].tolist() == known.tolist()


def test_more_columns_than_the_bits_of_a_byte_keep_their_patterns():
    x = torch.zeros(3, 19)
    x[0, 17], x[2, 17], x[1, 8] = torch.nan, torch.nan, torch.nan
    masks, owner = patterns(x)
    assert len(masks) == 2
    assert owner[0] == owner[2] != owner[1]
    np.testing.assert_array_equal(masks[owner] == 0, x.isnan())
