"""Rooms above tell where classes are; rooms below ask by name."""

from __future__ import annotations

import subprocess
import sys

from likely.core import finding

ASK = """
from likely import models
from likely.core.finding import find_model
from likely.core.estimator import _MODELS
assert "FactorAnalysis" not in _MODELS
find_model("FactorAnalysis")
find_model("Oracle")
assert "FactorAnalysis" in _MODELS
"""


def test_all_who_know_models_are_asked(monkeypatch):
    asked: list[tuple[str, str]] = []
    monkeypatch.setattr(finding, "_FINDERS", [])
    finding.found_by(lambda name: asked.append(("first", name)))
    finding.found_by(lambda name: asked.append(("second", name)))
    finding.find_model("Oracle")
    assert asked == [("first", "Oracle"), ("second", "Oracle")]


def test_a_model_that_was_never_imported_is_found():
    ran = subprocess.run([sys.executable, "-c", ASK], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
