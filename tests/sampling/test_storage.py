"""Room for draws: in memory while they are few, in a named file if asked, in one that vanishes where they are many."""

from __future__ import annotations

import pytest
import torch

from likely.core.errors import DataError, ModelFileError
from likely.sampling import storage
from likely.sampling.storage import room_for

SHAPE = (2, 5, 3)


@pytest.mark.parametrize("dtype", [torch.float64, torch.int64])
def test_few_draws_are_held_in_memory(dtype):
    room, file = room_for(SHAPE, None, again=False, dtype=dtype)
    assert file is None
    assert room.shape == SHAPE
    assert room.dtype == dtype


def test_many_draws_go_to_a_file_without_a_name(monkeypatch):
    monkeypatch.setattr(storage, "IN_MEMORY", 8 * 29)
    room, file = room_for(SHAPE, None, again=False)
    assert file is not None
    room.copy_(torch.arange(30.0).reshape(SHAPE))
    assert float(file.sum()) == sum(range(30))


@pytest.mark.parametrize("dtype", [torch.float64, torch.int64])
def test_a_named_file_keeps_what_was_written(tmp_path, dtype):
    path = str(tmp_path / "draws")
    room, file = room_for(SHAPE, path, again=False, dtype=dtype)
    room.copy_(torch.arange(30).reshape(SHAPE))
    file.flush()
    again, _ = room_for(SHAPE, path, again=True, dtype=dtype)
    assert torch.equal(again, torch.arange(30, dtype=dtype).reshape(SHAPE))
    fresh, _ = room_for(SHAPE, path, again=False, dtype=dtype)
    assert not fresh.any()


def test_files_that_will_not_do_are_refused(tmp_path):
    short = tmp_path / "short"
    short.write_bytes(b"few")
    with pytest.raises(ModelFileError, match="does not hold the draws of the checkpoint; delete both"):
        room_for(SHAPE, str(short), again=True)
    with pytest.raises(DataError, match=r"stream: cannot keep .* GB of draws in .*nowhere.*a disk with room"):
        room_for(SHAPE, str(tmp_path / "nowhere" / "draws"), again=False)
