"""A file that is written is whole or as it was."""

import os
import stat

import pytest

from likely.core.replacing import replacing


def test_what_is_written_takes_the_place_of_the_file(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old")
    os.chmod(path, 0o640)
    with replacing(path) as part:
        part.write_text("new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert os.listdir(tmp_path) == ["a.txt"]


def test_a_block_that_raises_leaves_the_file_as_it_was(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old")

    def interrupted():
        with replacing(path) as part:
            part.write_text("ne")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["a.txt"]


def test_a_link_stays_a_link_to_the_new_text(tmp_path):
    (tmp_path / "real.txt").write_text("old")
    (tmp_path / "link.txt").symlink_to(tmp_path / "real.txt")
    with replacing(tmp_path / "link.txt") as part:
        part.write_text("new")
    assert (tmp_path / "link.txt").is_symlink()
    assert (tmp_path / "real.txt").read_text() == "new"


def test_a_device_is_written_to_and_stays_a_device():
    with replacing(os.devnull) as part:
        part.write_text("gone")
    assert not os.path.isfile(os.devnull)


def test_a_folder_that_is_not_there_or_is_the_target_is_an_error(tmp_path):
    with pytest.raises(FileNotFoundError), replacing(tmp_path / "none" / "a.txt"):
        pass
    with pytest.raises(OSError), replacing(tmp_path):
        pass
    assert os.listdir(tmp_path) == []
    assert os.listdir(tmp_path.parent).count(tmp_path.name) == 1
