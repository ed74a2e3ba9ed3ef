"""`python -m benchmarks [names …] [--repeats N]`: run all comparisons and write the results, or those named."""

from __future__ import annotations

import argparse
import importlib
import json
import os
import pkgutil
import platform
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from .timing import Result, table

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results.json"
PACKAGES = (
    *("likely", "torch", "numpy", "scikit-learn", "skorch", "lightning", "glum", "statsmodels", "hmmlearn"),
    *("pomegranate", "gensim", "tomotopy", "pgmpy", "pyagrum", "numpyro", "jax", "pyro-ppl", "gpytorch"),
    *("keras", "torch_geometric", "transformers", "pytorch-crf", "statsforecast", "tokenizers"),
)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", help="file names without .py; all if none is given")
    parser.add_argument("--repeats", type=int, help="instead of each benchmark's own number")
    options = parser.parse_args()
    for name in options.names or sorted(module.name for module in pkgutil.iter_modules([str(HERE)])):
        if name == "__main__":
            continue
        try:
            run = getattr(importlib.import_module(f".{name}", __package__), "run", None)
            if run is None:
                continue
            results = run(options.repeats) if options.repeats else run()
        except FileNotFoundError as missing:  # real data that may not be shipped
            print(f"\n{name} is left out: there is no file {Path(missing.filename).name}.", flush=True)
            continue
        except ModuleNotFoundError as missing:  # a peer of this benchmark
            if missing.name is None or missing.name.startswith(("likely", f"{__package__}.")):
                raise
            print(f"\n{name} is left out: {missing.name} is not installed.", flush=True)
            continue
        print(f"\n{table(results)}", flush=True)
        write(name, results)


def write(name: str, results: list[Result]) -> None:
    """Put the lines of one benchmark into results.json, to compute with, and results.md, to read."""
    data = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {"results": {}}
    data["machine"] = machine(data.get("machine", {}))
    data["results"][name] = [result.to_json() for result in results]
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


def machine(before: Mapping[str, Any]) -> dict[str, Any]:
    """What the numbers depend on. A peer that is not installed here keeps the version that its lines were made with."""
    import torch

    versions = {name: installed(name) or before.get(name) for name in PACKAGES}
    return {
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "Python": platform.python_version(),
        **{name: number for name, number in versions.items() if number is not None},
    }


def installed(package: str) -> str | None:
    """Its version, or None."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


if __name__ == "__main__":
    main()
