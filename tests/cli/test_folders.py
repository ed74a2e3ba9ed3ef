"""Answers about folders of images: each has a name of its own, at the place of its image."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from likely.cli.folders import answer_names, asked_images, made
from likely.core.errors import DataError
from likely.data import write_image

TOP = Path("in")


@pytest.mark.parametrize(
    ("images", "answers"),
    [
        (["a.jpg", "dark/a.jpg"], ["a.png", "dark/a.png"]),
        (["a.jpg", "a.png"], ["a.jpg.png", "a.png.png"]),
        (["A.jpg", "a.png"], ["A.jpg.png", "a.png.png"]),  # which some disks do not tell apart
        (["a.jpg", "a.png", "a.jpg.png"], ["a.jpg.png", "a.png.png", "a.jpg.png.png"]),
    ],
)
def test_no_answer_overwrites_another(images, answers):
    names = [name.as_posix() for name in answer_names([TOP / image for image in images], TOP)]
    assert names == answers
    assert len({name.lower() for name in names}) == len(images)


def test_an_image_is_told_from_its_folder_and_a_folder_from_itself(tmp_path):
    for name in ("one.png", "dark/two.png"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        write_image(tmp_path / name, np.zeros((4, 4)))
    assert asked_images(tmp_path / "one.png") == ([tmp_path / "one.png"], tmp_path)
    paths, top = asked_images(tmp_path)
    assert (sorted(paths), top) == ([tmp_path / "dark" / "two.png", tmp_path / "one.png"], tmp_path)
    with pytest.raises(DataError, match=r"No image or folder at .*three"):
        asked_images(tmp_path / "three")


def test_folders_of_answers_are_made_where_no_file_is(tmp_path):
    made(tmp_path / "new" / "folder", "--out")
    made(tmp_path / "new" / "folder", "--out")
    assert (tmp_path / "new" / "folder").is_dir()
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match=r"--out .*file is a file; name a folder"):
        made(tmp_path / "file", "--out")
    with pytest.raises(DataError, match=r"Cannot make the folder --pictures .*file/below"):
        made(tmp_path / "file" / "below", "--pictures")
