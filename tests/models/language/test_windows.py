from __future__ import annotations

import numpy as np
import pytest
import torch

from likely.core.random import drawing
from likely.models.language.windows import ABSENT, Windows

LENGTHS = [3, 17, 8, 1, 30]
OFFSETS = torch.tensor([0, *np.cumsum(LENGTHS)]) + torch.arange(6)  # a boundary before each
VALUES = torch.arange(int(OFFSETS[-1]))
CONTEXT = 5


def all_of(windows):
    return torch.cat([batch.x for batch in windows.blocks(rows=3)])


def test_in_order_every_token_is_the_next_one_just_once():
    windows = Windows.of(VALUES, OFFSETS, CONTEXT)
    following = all_of(windows)[:, 1:]
    following = following[following != ABSENT]
    inner = sorted(set(VALUES.tolist()) - set(OFFSETS[:-1].tolist()))
    assert sorted(following.tolist()) == inner
    assert windows.total_weight() == len(inner)


def drawn(windows, seed, times=200):
    index = torch.arange(len(windows))
    with drawing(seed):
        return torch.stack([windows.batch(index).x for _ in range(times)])


def test_shifted_windows_stay_within_their_text_and_are_full(seed):
    windows = Windows.of(VALUES, OFFSETS, CONTEXT)
    x = drawn(windows, seed)
    first, last = windows.first.view(1, -1, 1), windows.last.view(1, -1, 1)
    there = x != ABSENT
    assert bool((((x >= first) & (x <= last)) | ~there).all())
    assert bool((x.diff(dim=-1)[there[..., 1:]] == 1).all())
    full = (windows.last - windows.first >= CONTEXT).view(1, -1)
    assert bool((there.all(-1) | ~full).all())


def test_shifted_windows_cover_every_token(seed):
    """A token in the middle of a text is missed by one epoch with probability 1/2 at most: by all 200 below 1e-50."""
    windows = Windows.of(VALUES, OFFSETS, CONTEXT)
    seen = set(drawn(windows, seed)[..., 1:].flatten().tolist()) - {ABSENT}
    assert seen == set(VALUES.tolist()) - set(OFFSETS[:-1].tolist())


def test_held_out_windows_are_not_touched(seed):
    windows = Windows.of(VALUES, OFFSETS, CONTEXT)
    order = torch.randperm(len(windows), generator=torch.Generator().manual_seed(seed))
    held, rest = windows.subset(order[:4]), windows.subset(order[4:])
    hidden = all_of(held)[:, 1:]
    shown = drawn(rest, seed)[..., 1:]
    assert not set(hidden[hidden != ABSENT].tolist()) & set(shown[shown != ABSENT].tolist())
    assert held.total_weight() + rest.total_weight() == windows.total_weight()


def test_nothing_is_shifted_where_nobody_draws():
    windows = Windows.of(VALUES, OFFSETS, CONTEXT)
    assert torch.equal(windows.batch(torch.arange(len(windows))).x, all_of(windows))


def test_all_at_once_and_members_are_shifted_too(seed):
    windows = Windows.of(VALUES, OFFSETS, CONTEXT)
    with drawing(seed):
        assert not torch.equal(windows.batch(slice(None)).x, all_of(windows))
        assert windows.batch(torch.arange(6).view(2, 3)).x.shape == (2, 3, CONTEXT + 1)


def test_weights_are_those_of_the_text():
    weight = torch.tensor([1.0, 0.0, 2.0, 1.0, 0.5], dtype=torch.float64)
    windows = Windows.of(VALUES, OFFSETS, CONTEXT, weight)
    assert windows.total_weight() == pytest.approx(float(weight @ torch.tensor(LENGTHS).double()))
    assert windows.batch(slice(0, 2)).weight.tolist() == [[1.0], [0.0]]


def test_a_context_longer_than_all_texts_is_cut():
    assert Windows.of(VALUES, OFFSETS, 1000).batch(slice(0, 5)).x.shape == (5, 31)
