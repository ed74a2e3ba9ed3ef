"""Numbers too small for their format are 0 within, and what they were before, afterwards."""

from __future__ import annotations

import pytest
import torch

from likely.core.denormals import TINY, flushed


def kept() -> bool:
    return bool((torch.tensor([TINY]) * 1 != 0).item())


@pytest.fixture
def able():
    if not torch.set_flush_denormal(False):
        pytest.skip("this processor cannot flush denormal numbers")


def test_they_are_zero_inside_and_kept_outside(able):
    with flushed():
        assert not kept()
    assert kept()


def test_what_was_set_before_stays_set(able):
    torch.set_flush_denormal(True)
    try:
        with flushed():
            assert not kept()
        assert not kept()
    finally:
        torch.set_flush_denormal(False)


def test_an_error_restores_it(able):
    with pytest.raises(ValueError, match="inside"), flushed():
        raise ValueError("inside")
    assert kept()
