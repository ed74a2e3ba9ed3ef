"""A fit killed at a random moment resumes to the same bits, and a save killed at a random moment leaves a good file.

Both are counted over 20 kills (SIGKILL): a fit with dropout, a schedule and validation, checkpointed many times a
second; and a loop that saves two different models in turn to one path.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file

import likely

from .timing import Result, show

__all__ = ["run"]

KILLS = 20

FIT = """
import sys
from sklearn.datasets import load_digits
from likely import Classifier
from likely.inference import MAP
from likely.core.checkpoint import Checkpoint
from likely.networks import MLP
from likely.optim import Cosine
x, y = load_digits(return_X_y=True)
inference = MAP(
    epochs=40, batch_size=64, schedule=Cosine(), validation=0.2, checkpoint=Checkpoint(sys.argv[1], seconds=0.02)
)
model = Classifier(network=MLP((100,), dropout=0.3), inference=inference, random_state=0)
print("ready", flush=True)
model.fit(x / 16, y).save(sys.argv[2])
print("done", flush=True)
"""

SAVE = """
import sys
import likely
first, second = (likely.load(path) for path in sys.argv[1:3])
print("ready", flush=True)
while True:
    first.save(sys.argv[3])
    second.save(sys.argv[3])
"""


def run(repeats: int = KILLS) -> list[Result]:
    with tempfile.TemporaryDirectory() as folder:
        return [_fits(Path(folder), repeats), _saves(Path(folder), repeats)]


def _fits(folder: Path, kills: int) -> Result:
    rng = np.random.default_rng(0)
    whole = folder / "whole.likely"
    duration = _killed(FIT, [folder / "whole.ckpt", whole], None)
    expected, identical, resumed, killed, missed = _tensors(whole), 0, 0, 0, 0
    while killed < kills:
        checkpoint, model = folder / f"{killed}.{missed}.ckpt", folder / f"{killed}.{missed}.likely"
        elapsed = _killed(FIT, [checkpoint, model], duration * (killed + rng.random()) / kills)
        if model.exists():  # it had ended before the kill, which then proves nothing: try again with its own duration
            missed, duration = missed + 1, min(duration, elapsed)
            continue
        killed += 1
        resumed += checkpoint.exists()
        _killed(FIT, [checkpoint, model], None)
        identical += _tensors(model) == expected
    words = f"{resumed} of {killed} left a checkpoint to resume from, the others began anew; {missed} ended too early"
    return Result("kill, fits resumed to the same bits", "kills", identical, kills, words, identical == kills, 1.0, "")


def _saves(folder: Path, kills: int) -> Result:
    rng = np.random.default_rng(1)
    x, y = rng.standard_normal((100, 200)), rng.integers(3, size=100)
    paths, path = [folder / "first.likely", folder / "second.likely"], folder / "saved.likely"
    for seed, file in enumerate(paths):
        inference = likely.inference.MAP(epochs=1)
        network = likely.networks.MLP((1000, 1000))
        likely.Classifier(network=network, inference=inference, random_state=seed).fit(x, y).save(file)
    allowed = [_tensors(file) for file in paths]
    path.write_bytes(paths[0].read_bytes())
    good, seen = 0, set()
    for _ in range(kills):
        _killed(SAVE, [*paths, path], 0.3 * rng.random())
        likely.load(path)
        tensors = _tensors(path)
        good += tensors in allowed
        seen.add(allowed.index(tensors) if tensors in allowed else None)
    rest = len(list(folder.glob(".saved*")))
    words = f"{len(seen)} of 2 models found in place; {rest} partial files left beside it"
    return Result("kill, saves that left a good file", "kills", good, kills, words, good == kills, 1.0, "")


def _killed(code: str, arguments: list[Path], after: float | None) -> float:
    """Run the code; kill it that many seconds after it says it is ready, or give the seconds from there to its end."""
    command = [sys.executable, "-c", code, *map(str, arguments)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        if process.stdout.readline() != "ready\n":
            raise RuntimeError("the child did not start")
        start = time.perf_counter()
        try:
            process.wait(after)
        except subprocess.TimeoutExpired:
            process.kill()
        elapsed = time.perf_counter() - start
    if after is None and process.returncode != 0:
        raise RuntimeError(f"the child ended with {process.returncode}")
    return elapsed


def _tensors(path: Path) -> dict[str, tuple[str, tuple[int, ...], bytes]]:
    return {name: (str(v.dtype), v.shape, v.tobytes()) for name, v in load_file(path).items()}


if __name__ == "__main__":
    show(run())
