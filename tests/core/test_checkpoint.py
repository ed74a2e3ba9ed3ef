"""Checkpoints: nested states come back as they were, those of other fits are refused, and writes keep their pace."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from likely.core.checkpoint import Checkpoint, Saver, beside
from likely.core.errors import ModelFileError, SpecError

ABOUT = {"rows": 5, "spec": "MAP()"}
STATE = {
    "step": 7,
    "loss": [1.5, 0.5],
    "tensors": {"weight": torch.arange(6.0).reshape(2, 3), 3: torch.tensor([1, 2])},
    "nothing": None,
    "nested": [[torch.ones(1, dtype=torch.float64)], {"flag": True}],
}


def same(one, other):
    if isinstance(one, torch.Tensor):
        return torch.equal(one, other) and one.dtype == other.dtype
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(value, other[key]) for key, value in one.items())
    if isinstance(one, list):
        return len(one) == len(other) and all(same(*pair) for pair in zip(one, other, strict=True))
    return one == other


def test_a_state_comes_back_as_it_was(tmp_path):
    saver = Saver(tmp_path / "run.ckpt", ABOUT)
    assert saver.read() is None
    saver.write(STATE)
    assert same(STATE, Saver(str(tmp_path / "run.ckpt"), ABOUT).read())


def test_the_state_of_another_fit_is_refused(tmp_path):
    Saver(tmp_path / "run.ckpt", ABOUT).write(STATE)
    with pytest.raises(ModelFileError, match=r"belongs to another fit: its rows was 5, now it is 6"):
        Saver(tmp_path / "run.ckpt", {**ABOUT, "rows": 6}).read()
    saver = Saver(tmp_path / "run.ckpt", ABOUT)
    saver.refuse_seeds([1, 2], [1, 2])
    with pytest.raises(ModelFileError, match="belongs to a fit with another random_state"):
        saver.refuse_seeds([1, 2], [1, 3])


def test_writes_are_due_after_the_seconds(tmp_path):
    path = str(tmp_path / "run.ckpt")
    assert Saver(Checkpoint(path, seconds=0), ABOUT).due()
    assert not Saver(Checkpoint(path, seconds=3600), ABOUT).due()
    assert not Saver(None, ABOUT).due()


def test_without_a_checkpoint_nothing_is_read_or_written():
    saver = Saver(None, ABOUT)
    saver.write(STATE)
    assert saver.read() is None


def test_parts_of_a_fit_have_files_beside():
    assert beside(None, "start") is None
    assert beside(Path("run.ckpt"), "start") == Checkpoint("run.ckpt.start")
    assert beside(Checkpoint("run.ckpt", seconds=1), "start").seconds == 1
    with pytest.raises(SpecError, match="seconds must be 0 or more"):
        Checkpoint("run.ckpt", seconds=-1)
