"""From nothing to an answer: a new process that fits a network, and commands that only read.

The fit is held to `import torch, sklearn` and the time of a second fit in the same process; the commands to seconds.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import numpy as np

from likely import Regressor

from .timing import Result, Timed, new_process, show

__all__ = ["run"]

TARGET = 1.1
SECONDS = {"show": 0.5, "--help": 0.3}

FIT = """
import time
start = time.perf_counter()
{imports}
imported = time.perf_counter() - start
import numpy as np
from likely import Classifier
from likely.inference import MAP
from likely.networks import MLP
rng = np.random.default_rng(0)
X = rng.normal(size=(1000, 20))
y = (X[:, 0] + X[:, 1] > 0).astype(int)
model = Classifier(network=MLP((64,)), inference=MAP(epochs=20), random_state=0).fit(X, y)
whole = time.perf_counter() - start
again = time.perf_counter()
Classifier(network=MLP((64,)), inference=MAP(epochs=20), random_state=0).fit(X, y)
print(whole, imported + time.perf_counter() - again, model.score(X, y))
"""


def run(repeats: int = 7) -> list[Result]:
    """Medians over new processes."""
    cold, least, score = Timed(), Timed(), 0.0
    for repeat in range(-1, repeats):
        code = FIT.format(imports="import torch, sklearn")
        whole, peer, score = map(float, new_process("-c", code).split())
        if repeat >= 0:
            cold.seconds.append(whole)
            least.seconds.append(peer)
    peer_name, words = "import torch, sklearn + the fit itself", f"made data: accuracy {score:.3f}"
    results = [Result("cold, first fit", peer_name, cold.median, least.median, words, score > 0.9, TARGET)]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.likely"
        Regressor().fit(np.eye(3), np.arange(3.0)).save(path)
        for name, arguments in (("show", ["show", str(path)]), ("--help", ["--help"])):
            seconds = _median(arguments, repeats)
            results.append(
                Result(f"cold, likely {name}", "the limit", seconds, SECONDS[name], "new process", True, 1.0)
            )
    return results


def _median(arguments: list[str], repeats: int) -> float:
    timed = Timed()
    for repeat in range(-1, repeats):
        start = time.perf_counter()
        new_process("-m", "likely", *arguments)
        if repeat >= 0:
            timed.seconds.append(time.perf_counter() - start)
    return timed.median


if __name__ == "__main__":
    show(run())
