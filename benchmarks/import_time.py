"""How long `import likely` takes against `import torch, sklearn`, which it stands on: fresh processes, interleaved."""

from __future__ import annotations

from .timing import Result, Timed, compare, new_process, show

__all__ = ["run"]

PEER = "import torch, sklearn"
TARGET = 1.2


def run(repeats: int = 9) -> list[Result]:
    statements = ("import likely", "from likely import Classifier, Regressor", PEER)
    timed = {statement: Timed() for statement in statements}
    for repeat in range(-1, repeats):
        for statement in statements:
            seconds = _seconds(statement)
            if repeat >= 0:
                timed[statement].seconds.append(seconds)
    results = []
    for ours in statements[:2]:
        pair = {ours: timed[ours], PEER: timed[PEER]}
        results += compare(f"import_time, `{ours}`", pair, _same, {PEER: TARGET}, ours=ours)
    return results


def _seconds(statement: str) -> float:
    code = f"import time; start = time.perf_counter(); {statement}; print(time.perf_counter() - start)"
    return float(new_process("-c", code))


def _same(mine: object, other: object) -> tuple[str, bool]:
    return "files in the cache", True


if __name__ == "__main__":
    show(run())
