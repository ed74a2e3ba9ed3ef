"""`python -m likely` is the command `likely`."""

import subprocess
import sys

import likely


def shell(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "likely", *words], capture_output=True, text=True, check=False)


def test_it_says_its_version():
    assert shell("--version").stdout == f"likely {likely.__version__}\n"


def test_its_exit_code_is_that_of_the_command():
    ran = shell("show", "nothing.likely")
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr.startswith("error: No model file at nothing.likely")
