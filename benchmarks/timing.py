"""How a comparison is timed and shown: interleaved repeats after a warm-up, the median (and least) of each side."""

from __future__ import annotations

import gc
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

__all__ = ["Result", "Timed", "compare", "interleave", "new_process", "show", "table", "with_threads"]


@dataclass
class Timed:
    """Seconds of each repeat, and what the last one returned."""

    seconds: list[float] = field(default_factory=list)
    value: Any = None

    @property
    def median(self) -> float:
        """The middle repeat."""
        return statistics.median(self.seconds)

    @property
    def least(self) -> float:
        """The repeat that was disturbed least."""
        return min(self.seconds)


@dataclass(frozen=True)
class Result:
    """One line of the table: `ratio` is likely / peer, so smaller is better; it should not exceed `target`."""

    benchmark: str
    peer: str
    likely: float
    other: float
    quality: str
    equal: bool
    target: float | None = None
    unit: str = "s"
    least: tuple[float, float] | None = None

    @property
    def ratio(self) -> float:
        """Likely's number over the peer's."""
        return self.likely / self.other

    @property
    def met(self) -> bool:
        """Whether quality is equal (or better) and the ratio within its target, if it has one."""
        return self.equal and (self.target is None or self.ratio <= self.target)

    @staticmethod
    def from_json(data: dict[str, Any]) -> Result:
        """The inverse of `to_json`."""
        own = {key: value for key, value in data.items() if key not in ("ratio", "met")}
        return Result(**own | {"least": None if own["least"] is None else tuple(own["least"])})

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self) | {"equal": bool(self.equal), "ratio": float(self.ratio), "met": bool(self.met)}


def interleave(
    calls: Mapping[str, Callable[[], Any]],
    repeats: int = 5,
    warm_up: int = 1,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, Timed]:
    """Call each in turn (a, b, a, b, …), so that a busy moment of the machine meets all of them alike.

    `time.process_time` as the clock counts what this process worked, and not what it waited for its neighbours.
    """
    timed = {name: Timed() for name in calls}
    for repeat in range(-warm_up, repeats):
        for name, call in calls.items():
            gc.collect()
            start = clock()
            value = call()
            elapsed = clock() - start
            if repeat >= 0:
                timed[name].seconds.append(elapsed)
                timed[name].value = value
    return timed


def compare(
    benchmark: str,
    timed: Mapping[str, Timed],
    quality: Callable[[Any, Any], tuple[str, bool]],
    targets: Mapping[str, float],
    ours: str = "likely",
) -> list[Result]:
    """One result for each peer of `ours`; `quality` judges the two last values, in words and as a yes or no."""
    mine = timed[ours]
    results = []
    for name, peer in timed.items():
        if name == ours:
            continue
        words, equal = quality(mine.value, peer.value)
        least = (mine.least, peer.least)
        results.append(Result(benchmark, name, mine.median, peer.median, words, equal, targets.get(name), "s", least))
    return results


def with_threads(count: int, measure: Callable[[], list[Result]]) -> list[Result]:
    """What `measure` gives with so many threads for torch; afterwards there are as many as before."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        return measure()
    finally:
        torch.set_num_threads(before)


def new_process(*arguments: str) -> str:
    """What Python prints in a process of its own, compiled files kept: as an installed package has them."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    command = [sys.executable, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout


def table(results: list[Result]) -> str:
    """A Markdown table."""
    lines = [
        "| benchmark | peer | likely | peer | ratio | target | met | least | quality |",
        "| --- | --- | ---: | ---: | ---: | ---: | --- | --- | --- |",
    ]
    for r in results:
        target = "" if r.target is None else f"≤ {r.target:.3g}"
        met = "" if r.target is None and r.equal else "yes" if r.met else "**no**"
        least = "" if r.least is None else " / ".join(_amount(v, r.unit) for v in r.least)
        lines.append(
            f"| {r.benchmark} | {r.peer} | {_amount(r.likely, r.unit)} | {_amount(r.other, r.unit)} "
            f"| {r.ratio:.3g} | {target} | {met} | {least} | {r.quality} |"
        )
    return "\n".join(lines)


def show(results: list[Result]) -> None:
    """Print the table and the threads in use."""
    import torch

    print(f"{torch.get_num_threads()} threads; ratio = likely / peer, medians of interleaved repeats\n")
    print(table(results), flush=True)


def _amount(value: float, unit: str) -> str:
    return f"{value:.4g} {unit}"
