"""`likely list`: every registered spec, with no list to edit."""

from __future__ import annotations

import subprocess
import sys

import pytest

from likely.core.spec import axes, registered
from likely.likelihoods import Likelihood
from likely.networks import Network


def test_all_registered_specs_are_listed(run):
    said = run("list", "--json").json()
    for axis in axes():
        ours = [name for name, spec in registered(axis).items() if spec.__module__.startswith("likely.")]
        assert [spec["name"] for spec in said.get(axis, [])] == sorted(ours)
    assert {"likelihood", "network", "prior", "inference"} <= set(said)


@pytest.mark.parametrize("axis", [Likelihood, Network])
def test_arguments_have_their_defaults_and_a_meaning(run, axis):
    for spec in run("list", axis.axis, "--json").json()[axis.axis]:
        assert spec["meaning"]
        assert spec["call"].startswith(spec["name"] + "(")
        if all(default is not None for default in spec["arguments"].values()):
            assert axis.parse(spec["name"]) == registered(axis)[spec["name"]]()


def test_one_axis_as_a_table(run):
    out = run("list", "prior").out
    assert "Laplace(scale=1.0" in out
    assert "MLP" not in out


def test_an_unknown_axis_is_named_with_the_nearest(run):
    ran = run("list", "networks")
    assert ran.code == 2
    assert "Unknown axis 'networks'. Did you mean network?" in ran.err


def test_reading_commands_load_no_torch():
    code = """
import sys
from typer.testing import CliRunner
from likely.cli.app import app
for arguments in (["--help"], ["fit", "--help"], ["list"], ["list", "network", "--json"]):
    assert CliRunner().invoke(app, arguments).exit_code == 0, arguments
print([name for name in ("torch", "sklearn", "scipy") if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
