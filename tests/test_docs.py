"""The documents say what is so: their code runs, and the names and tests they point to exist."""

from __future__ import annotations

import doctest
import importlib
import json
import re
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[1]
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


def rows():
    """(concept id, public names, facts) of every row of the page on concepts."""
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


def met():
    """The benchmarks all of whose lines are met."""
    results = json.loads((ROOT / "benchmarks" / "results.json").read_text(encoding="utf-8"))["results"]
    lines = [line for lines in results.values() for line in lines]
    return {line["benchmark"] for line in lines} - {line["benchmark"] for line in lines if not line["met"]}


def test_concepts_are_numbered_once_and_without_gaps():
    ids = [row.id for row in rows()]
    assert len(set(ids)) == len(ids)
    for letter in "ABCDEFGHIJKLMN":
        numbers = [int(name[1:]) for name in ids if name[0] == letter and name[1:].isdigit()]
        assert numbers == list(range(1, len(numbers) + 1))
        assert numbers


@pytest.mark.parametrize(("names", "facts"), list(rows()))
def test_a_concept_points_to_public_names_and_facts_that_exist(names, facts):
    assert names
    assert facts
    for name in names:
        dotted = re.match(r"[\w.]+", name)
        assert dotted is not None
        room, _, member = dotted.group().rpartition(".")
        assert hasattr(importlib.import_module(room), member), name
    for fact in facts:
        place, _, name = fact.partition("::")
        if place == "line":
            assert name in met(), fact
        else:
            assert f"def {name}(" in (ROOT / "tests" / place).read_text(), fact
