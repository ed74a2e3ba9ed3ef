"""The documents say what is so: their code runs, and the names and tests they point to exist."""

from __future__ import annotations

import doctest
import importlib
import re
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[1]
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


def rows():
    """(concept id, public names, tests) of every row of the page on concepts."""
    for line in (ROOT / "docs" / "concepts.md").read_text().splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split(" | ")]
        if len(cells) == 4 and re.fullmatch(r"[A-N]\d+[a-z]?", cells[0]):
            yield pytest.param(re.findall(r"`([^`]+)`", cells[2]), re.findall(r"`([^`]+)`", cells[3]), id=cells[0])


@pytest.mark.parametrize("page", ["guide", "first-hour"])
def test_the_code_of_a_page_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # a page may draw
    result = doctest.testfile(str(ROOT / "docs" / f"{page}.md"), module_relative=False, optionflags=FLAGS)
    assert result.attempted > 0
    assert result.failed == 0


def test_the_code_in_the_readme_runs():
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.S)
    assert len(blocks) == 2
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    names = {"X": X, "y": X[:, 0] + rng.normal(size=60), "counts": rng.poisson(2, size=60)}
    names["labels"] = (X[:, 1] + rng.normal(size=60) > 0).astype(int)
    exec(blocks[0], names)
    model = names["Regressor"]().fit(X, names["y"])
    model.save = lambda path: None  # the block saves into the working folder
    exec(blocks[1], names | {"model": model})


def test_pictures_and_links_of_the_documents_exist():
    for page in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]:
        for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
            assert target.startswith("http") or (page.parent / target).exists(), f"{page.name} → {target}"


@pytest.mark.parametrize(("names", "tests"), list(rows()))
def test_a_concept_points_to_public_names_and_tests_that_exist(names, tests):
    assert names
    assert tests
    for name in names:
        dotted = re.match(r"[\w.]+", name)
        assert dotted is not None
        room, _, member = dotted.group().rpartition(".")
        assert hasattr(importlib.import_module(room), member), name
    for test in tests:
        path, _, function = test.partition("::")
        assert f"def {function}(" in (ROOT / "tests" / path).read_text(), test
