"""Gradients are followed where rows ask for them, and nowhere else."""

from __future__ import annotations

import torch

from likely.core.gradients import following


def test_rows_that_ask_are_followed_unless_gradients_are_off():
    plain, asking = torch.zeros(1), torch.zeros(1, requires_grad=True)
    for x, wanted in ((plain, False), (asking, True), ([1.0], False), (None, False)):
        with following(x):
            assert torch.is_grad_enabled() is wanted
        assert torch.is_grad_enabled()
    with torch.no_grad(), following(asking):
        assert not torch.is_grad_enabled()
