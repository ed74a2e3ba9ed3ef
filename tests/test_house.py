"""The house is in order: each source file has a test file of its name and place, and files and names are short."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCE, TESTS = ROOT / "src" / "likely", ROOT / "tests"
LINES, LETTERS = 400, 70
FILES = [path.relative_to(SOURCE) for path in sorted(SOURCE.rglob("*.py")) if path.name != "__init__.py"]


def test_every_source_file_has_a_test_file_of_its_name():
    tested = {path: TESTS / path.parent / f"test_{path.stem.strip('_')}.py" for path in FILES}  # test_main of __main__
    assert [str(path) for path, test in tested.items() if not test.exists()] == []


def test_source_files_are_short():
    assert [str(path) for path in FILES if len((SOURCE / path).read_text().splitlines()) > LINES] == []


def test_names_of_tests_are_short():
    text = "".join(path.read_text() for path in TESTS.rglob("test_*.py"))
    assert [name for name in re.findall(r"def (test_\w+)", text) if len(name) > LETTERS] == []
