"""Every example runs as it is, says something, and leaves the pictures that it names."""

from __future__ import annotations

import re
import runpy
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import pytest

EXAMPLES = sorted((Path(__file__).resolve().parent.parent / "examples").glob("*.py"))


def test_there_are_twelve():
    assert len(EXAMPLES) >= 12


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example(path, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # what a reader runs first says nothing that it does not explain
        runpy.run_path(str(path), run_name="__main__")
    plt.close("all")
    assert capsys.readouterr().out.strip()
    pictures = re.findall(r'"(\w+\.png)"', path.read_text(encoding="utf-8"))
    assert {picture.name for picture in tmp_path.glob("*.png")} == set(pictures)
