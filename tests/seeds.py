"""How often each test fails when all seeds are others: `python -m tests.seeds 1-50 tests/sampling -k gibbs`.

A process reads the libraries once and is forked for each shift (see `tests/shift.py`), `CORES` at a time. What follows
the shifts is for pytest. Messages and times lie in the folder that `SEEDS_OUT` names, or in a temporary one.
"""

import contextlib
import importlib
import json
import os
import pkgutil
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

os.environ.setdefault("LIKELY_SEED_SHIFT", "1")  # seeds shift before anything is read that keeps a door for them
os.environ.setdefault("OMP_NUM_THREADS", "1")

from tests import shift

AT_ONCE = int(os.environ.get("CORES", "2"))


class Outcomes:
    """What pytest tells of each test: how long it took, and how it failed."""

    def __init__(self):
        self.seconds, self.failed = defaultdict(float), {}

    def pytest_runtest_logreport(self, report):
        self.seconds[report.nodeid] += report.duration
        if report.failed:
            self.failed[report.nodeid] = str(report.longrepr)[-3000:]

    def pytest_collectreport(self, report):
        if report.failed:
            self.failed[report.nodeid] = str(report.longrepr)[-3000:]


def run(number, arguments, folder):
    """One run of pytest in a forked process; it ends the process."""
    shift.SHIFT = number
    os.environ["LIKELY_SEED_SHIFT"] = str(number)
    with (folder / f"{number}.log").open("w") as log, contextlib.redirect_stdout(log), contextlib.redirect_stderr(log):
        import pytest

        outcomes = Outcomes()
        pytest.main(["-q", "-p", "no:cacheprovider", "--no-header", "--tb=short", *arguments], plugins=[outcomes])
    (folder / f"{number}.json").write_text(json.dumps({"seconds": outcomes.seconds, "failed": outcomes.failed}))
    os._exit(0)


def main():
    """Forks for each shift and counts."""
    first, _, last = sys.argv[1].partition("-")
    numbers = list(range(int(first), int(last or first) + 1))
    folder = Path(os.environ.get("SEEDS_OUT") or tempfile.mkdtemp(prefix="seeds"))
    folder.mkdir(exist_ok=True, parents=True)
    import likely

    for module in pkgutil.walk_packages(likely.__path__, "likely."):
        importlib.import_module(module.name)
    running = set()
    for number in numbers:
        if len(running) == AT_ONCE:
            running.discard(os.wait()[0])
        child = os.fork()
        if child == 0:
            run(number, sys.argv[2:], folder)
        running.add(child)
    for child in running:
        os.waitpid(child, 0)
    report(numbers, folder)


def report(numbers, folder):
    """The tests that failed, with their shifts, and how many runs there were."""
    at, runs = defaultdict(list), 0
    for number in numbers:
        path = folder / f"{number}.json"
        if not path.exists():
            at["no outcome: the process ended"].append(number)
            continue
        answer = json.loads(path.read_text())
        runs += len(answer["seconds"])
        for name in answer["failed"]:
            at[name].append(number)
    for name, shifts in sorted(at.items(), key=lambda entry: -len(entry[1])):
        print(f"{len(shifts):4} of {len(numbers)}  {name}  at {shifts[:12]}")
    print(f"{sum(map(len, at.values()))} failed of {runs} in {len(numbers)} shifts; details in {folder}")


if __name__ == "__main__":
    main()
