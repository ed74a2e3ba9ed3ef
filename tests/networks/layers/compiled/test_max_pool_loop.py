"""The loops of max pooling: the first of equal maxima has the place, and every other position a gradient of 0."""

from __future__ import annotations

import numpy as np
import torch

from likely.networks.layers.compiled.max_pool_loop import _rank, pooled, spread_back


def test_the_first_of_equal_numbers_is_the_maximum():
    x = torch.tensor([[1.0, 2.0], [2.0, -1.0]]).bfloat16().view(1, 2, 2, 1)
    out, place = np.empty((1, 1, 1, 1), np.int16), np.empty((1, 1, 1, 1), np.int16)
    pooled(x.view(torch.int16).numpy(), 2, out, place)
    assert torch.from_numpy(out).view(torch.bfloat16).item() == 2
    assert place.item() == 1
    back = np.full((1, 2, 2, 1), 7, np.int16)
    spread_back(out, place, 2, back)
    assert torch.from_numpy(back).view(torch.bfloat16).flatten().tolist() == [0.0, 2.0, 0.0, 0.0]


def test_ranks_are_in_the_order_of_the_numbers():
    """Of all 65,536 numbers in bfloat16."""
    bits = np.arange(2**16).astype(np.uint16).view(np.int16)
    values = torch.from_numpy(bits).view(torch.bfloat16).float().numpy()
    ranks = np.array([_rank(own) for own in bits])
    nan = np.isnan(values)
    assert (ranks[nan] == 0x7FFF).all()
    order = np.argsort(values[~nan], kind="stable")
    assert (np.diff(ranks[~nan][order]) == (np.diff(values[~nan][order]) > 0)).all()
    assert ranks[~nan].max() < 0x7FFF
