"""`python -m benchmarks [names …] [--repeats N]`: run all comparisons and write the results, or those named."""

from __future__ import annotations

import argparse
import importlib
import json
import os
import pkgutil
import platform
from importlib.metadata import version
from pathlib import Path
from typing import Any

from .timing import Result, table

HERE = Path(__file__).resolve().parent
PACKAGES = ("likely", "torch", "numpy", "scikit-learn", "skorch", "lightning", "glum", "statsmodels")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", help="file names without .py; all if none is given")
    parser.add_argument("--repeats", type=int, help="instead of each benchmark's own number")
    options = parser.parse_args()
    results: list[Result] = []
    for name in options.names or sorted(module.name for module in pkgutil.iter_modules([str(HERE)])):
        run = None if name == "__main__" else getattr(importlib.import_module(f".{name}", __package__), "run", None)
        if run is None:
            continue
        found = run(options.repeats) if options.repeats else run()
        print(f"\n{table(found)}", flush=True)
        results += found
    if not options.names:
        write(results)


def write(results: list[Result]) -> None:
    """results.md to read and results.json to compute with."""
    where = machine()
    facts = ", ".join(f"{name} {value}" for name, value in where.items())
    missed = sum(not r.met for r in results)
    text = (
        "# Benchmarks\n\n"
        "Ratio is likely / peer, so smaller is better; a ratio within its target at equal or better quality is met. "
        'Times are medians of interleaved repeats after a warm-up; "least" are the shortest of each side. '
        "`python -m benchmarks` makes this page.\n\n"
        f"{facts}. {len(results) - missed} of {len(results)} lines are met.\n\n{table(results)}\n"
    )
    (HERE / "results.md").write_text(text, encoding="utf-8")
    data = {"machine": where, "results": [r.to_json() for r in results]}
    (HERE / "results.json").write_text(json.dumps(data, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def machine() -> dict[str, Any]:
    """What the numbers depend on."""
    import torch

    packages = {name: version(name) for name in PACKAGES}
    return {
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "Python": platform.python_version(),
        **packages,
    }


if __name__ == "__main__":
    main()
