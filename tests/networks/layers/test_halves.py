"""Loops take what torch is slow at, and nothing that they do not know."""

from __future__ import annotations

import pytest
import torch
from torch.autograd import forward_ad

from likely.networks.layers import halves


@pytest.mark.filterwarnings("ignore:.*torch.jit.script")  # torch's own forward mode compiles its rules
def test_only_plain_numbers_in_bfloat16_on_few_threads_are_taken(monkeypatch):
    x = torch.zeros(3, dtype=torch.bfloat16)
    assert halves.loops_take(x, torch.zeros(1))
    assert not any(halves.loops_take(other) for other in (x.float(), x.half(), x[:0], x.to("meta")))
    seen = []
    torch.vmap(lambda row: seen.append(halves.loops_take(row)) or row)(x)
    with forward_ad.dual_level():
        seen.append(halves.loops_take(x, forward_ad.make_dual(torch.zeros(1), torch.ones(1))))
    monkeypatch.setattr(torch, "get_num_threads", lambda: halves.FEW + 1)
    assert [*seen, halves.loops_take(x)] == [False, False, False]
