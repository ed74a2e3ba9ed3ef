"""The program as a stranger meets it: from a shell."""

from __future__ import annotations

import subprocess
import sys

import pytest


def shell(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "likely", *words], capture_output=True, text=True, check=False)


def test_help_names_the_commands_and_loads_nothing_heavy():
    code = (
        "import sys; from likely.cli.app import app; app(['--help'], standalone_mode=False); "
        "print([m for m in ('torch', 'sklearn', 'polars', 'matplotlib') if m in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.splitlines()[-1] == "[]"
    for command in ("fit", "predict", "evaluate", "compare", "show", "list"):
        assert command in ran.stdout


@pytest.mark.parametrize("words", [["fit"], ["nothing"], ["predict", "none.likely", "none.csv"]])
def test_bad_usage_and_bad_input_end_with_code_2(words):
    ran = shell(*words)
    assert ran.returncode == 2
    assert "Traceback" not in ran.stderr
    assert ran.stdout == ""


def test_a_closed_pipe_is_no_error():
    ran = subprocess.run(
        f"{sys.executable} -m likely list --json | head -n 1", shell=True, capture_output=True, text=True, check=False
    )
    assert ran.stdout == "{\n"
    assert ran.stderr == ""
