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
RESULTS = HERE / "results.json"
PACKAGES = (
    *("likely", "torch", "numpy", "scikit-learn", "skorch", "lightning", "glum", "statsmodels", "hmmlearn"),
    *("pomegranate", "gensim", "tomotopy", "pgmpy", "pyagrum", "numpyro", "jax", "pyro-ppl", "gpytorch"),
    *("keras", "torch_geometric"),
)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", help="file names without .py; all if none is given")
    parser.add_argument("--repeats", type=int, help="instead of each benchmark's own number")
    options = parser.parse_args()
    for name in options.names or sorted(module.name for module in pkgutil.iter_modules([str(HERE)])):
        run = None if name == "__main__" else getattr(importlib.import_module(f".{name}", __package__), "run", None)
        if run is None:
            continue
        try:
            found = run(options.repeats) if options.repeats else run()
        except FileNotFoundError as missing:  # real data that may not be shipped
            print(f"\n{name} is left out: there is no file {Path(missing.filename).name}.", flush=True)
            continue
        print(f"\n{table(found)}", flush=True)
        write(name, found)


def write(name: str, found: list[Result]) -> None:
    """Put the lines of one benchmark into results.json, to compute with, and results.md, to read."""
    data = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {"results": {}}
    data["machine"] = machine()
    data["results"][name] = [result.to_json() for result in found]
    data["results"] = dict(sorted(data["results"].items()))
    RESULTS.write_text(json.dumps(data, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    lines = [Result.from_json(line) for lines in data["results"].values() for line in lines]
    missed = sum(not line.met for line in lines)
    text = (
        "# Benchmarks\n\n"
        "Ratio is likely / peer, so smaller is better; a ratio within its target at equal or better quality is met. "
        'Times are medians of interleaved repeats after a warm-up; "least" are the shortest of each side. '
        "`python -m benchmarks` makes this page, `python -m benchmarks NAME` renews the lines of one.\n\n"
        f"{', '.join(f'{key} {value}' for key, value in data['machine'].items())}. "
        f"{len(lines) - missed} of {len(lines)} lines are met.\n\n{table(lines)}\n"
    )
    RESULTS.with_suffix(".md").write_text(text, encoding="utf-8")


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
