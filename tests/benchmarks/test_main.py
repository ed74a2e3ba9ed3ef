"""`python -m benchmarks NAME` writes what it measured, whichever peers of other benchmarks are installed."""

from __future__ import annotations

import json
import sys
import types

import pytest
from benchmarks.timing import Result

from benchmarks import __main__ as command

LINE = Result("made", "peer", 1.0, 2.0, "equal", True, 1.0)


@pytest.fixture
def results(tmp_path, monkeypatch):
    """An empty page of results, with one old line, and a benchmark that measures nothing."""
    path = tmp_path / "results.json"
    path.write_text(json.dumps({"machine": {"pyro-ppl": "0.1"}, "results": {"old": [LINE.to_json()]}}))
    monkeypatch.setattr(command, "RESULTS", path)
    made = types.ModuleType("benchmarks.made")
    made.run = lambda repeats=1: [LINE] * repeats
    monkeypatch.setitem(sys.modules, "benchmarks.made", made)
    return path


def run(monkeypatch, *arguments):
    monkeypatch.setattr(sys, "argv", ["benchmarks", *arguments])
    command.main()


def test_results_are_written_without_the_peers_of_other_benchmarks(results, monkeypatch):
    def only_torch(name):
        if name != "torch":
            raise command.PackageNotFoundError(name)
        return "2.0"

    monkeypatch.setattr(command, "version", only_torch)
    run(monkeypatch, "made", "--repeats", "2")
    data = json.loads(results.read_text())
    assert [len(data["results"][name]) for name in ("made", "old")] == [2, 1]
    assert data["machine"]["torch"] == "2.0"
    assert data["machine"]["pyro-ppl"] == "0.1"  # the lines made with it still stand
    assert "gensim" not in data["machine"]
    assert "3 of 3 lines are met" in results.with_suffix(".md").read_text()


def test_a_benchmark_whose_own_peer_is_missing_is_left_out_by_name(results, monkeypatch, capsys):
    def broken(repeats=1):
        raise ModuleNotFoundError("No module named 'gensim'", name="gensim")

    monkeypatch.setattr(sys.modules["benchmarks.made"], "run", broken)
    run(monkeypatch, "made")
    assert "made is left out: gensim is not installed." in capsys.readouterr().out
    assert list(json.loads(results.read_text())["results"]) == ["old"]


def test_a_name_that_is_no_benchmark_is_an_error(results, monkeypatch):
    with pytest.raises(ModuleNotFoundError, match=r"benchmarks\.nothing"):
        run(monkeypatch, "nothing")
