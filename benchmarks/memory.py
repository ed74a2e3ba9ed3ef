"""Memory of a fit on 1,000,000 × 100 float32 beyond the data itself, which is 400 MB: never a second copy.
Memory of the answers of a network for 5,000,000 × 10 rows beyond them: blocks go through it, not all at once.

Each fit runs in a process of its own; its number is the peak of resident memory less what was resident before it.
"""

from __future__ import annotations

import subprocess
import sys

from .timing import Result, show

__all__ = ["run"]

ROWS, COLUMNS = 1_000_000, 100
DATA = ROWS * COLUMNS * 4 / 1e6

FITS = {
    "Exact": ("from likely import Regressor", "Regressor()", "numbers"),
    "Newton": ("from likely import Classifier", "Classifier()", "labels"),
    "MAP": (
        "from likely import Classifier; from likely.inference import MAP; from likely.networks import MLP",
        "Classifier(network=MLP((32,)), inference=MAP(epochs=1, batch_size=1024), random_state=0)",
        "labels",
    ),
    "scikit-learn LinearRegression": (
        "from sklearn.linear_model import LinearRegression", "LinearRegression()", "numbers"
    ),
    "scikit-learn LogisticRegression": (
        "from sklearn.linear_model import LogisticRegression", "LogisticRegression()", "labels"
    ),
    "scikit-learn MLPClassifier": (
        "from sklearn.neural_network import MLPClassifier",
        "MLPClassifier((32,), batch_size=1024, max_iter=1)",
        "labels",
    ),
}  # fmt: skip
PEERS = {
    "Exact": "scikit-learn LinearRegression",
    "Newton": "scikit-learn LogisticRegression",
    "MAP": "scikit-learn MLPClassifier",
}

CODE = """
import resource, sys, warnings
import numpy as np
warnings.simplefilter("ignore")
{imports}
rng = np.random.default_rng(0)
weight = rng.standard_normal({columns}, dtype=np.float32) / 10
small = rng.standard_normal((200, {columns}), dtype=np.float32)
def targets(x):
    eta = x @ weight
    noise = rng.standard_normal(len(x), dtype=np.float32)
    return eta + noise if "{target}" == "numbers" else (eta + noise > 0).astype(np.int64)
{model}.fit(small, targets(small))  # libraries and threads are loaded before the measurement
x = np.empty(({rows}, {columns}), dtype=np.float32)
for block in np.array_split(x, 100):
    rng.standard_normal(out=block, dtype=np.float32)
y = targets(x)
with open("/proc/self/statm") as file:
    before = int(file.read().split()[1]) * resource.getpagesize()
model = {model}.fit(x, y)
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
print((peak - before) / 1e6, model.score(x[:20000], y[:20000]))
"""


ANSWER = """
import resource
import numpy as np
from likely import Classifier, Regressor
from likely.inference import MAP
from likely.networks import MLP
rng = np.random.default_rng(0)
def targets(x):
    return np.digitize(x[:, 0], [-0.5, 0.5]) if "{kind}" == "Classifier" else x[:, 0].copy()
small = rng.standard_normal((2000, 10)).astype("{dtype}")
model = {kind}(network=MLP((100,)), inference=MAP(epochs=2), random_state=0).fit(small, targets(small))
model.{question}(*(small, targets(small))[:{parts}])  # what is loaded once does not count
x = np.zeros(({rows}, 10), dtype="{dtype}")
for block in np.array_split(x, 100):
    block[:] = rng.standard_normal(block.shape)
y = targets(x)
with open("/proc/self/statm") as file:
    before = int(file.read().split()[1]) * resource.getpagesize()
answer = model.{question}(*(x, y)[:{parts}])
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - before) / 1e6)
"""
QUESTIONS = {"predict": 1, "log_prob": 2, "score": 2}
"""Each with how many of X and y it takes."""
ASKED = [
    *((kind, dtype, question) for kind in ("Classifier", "Regressor") for dtype in ("float32", "float64")
      for question in QUESTIONS),
    ("Regressor", "float64", "predict_interval"),
]  # fmt: skip
ANSWERED, MOST = 5_000_000, 300.0


def run(repeats: int = 1) -> list[Result]:
    """Memory does not vary with the load, so that one run of each is enough."""
    measured = {name: _measure(*fit) for name, fit in FITS.items()}
    results = []
    for name, peer in PEERS.items():
        (more, score), (theirs, their_score) = measured[name], measured[peer]
        words = f"made data: score {score:.4f}; {peer} takes {theirs:.0f} MB more, score {their_score:.4f}"
        equal = score >= their_score - 0.01
        results.append(Result(f"memory, {name}", "the data", more, DATA, words, equal, 1.0, "MB"))
    for kind, dtype, question in ASKED:
        more = answered(kind, dtype, question)
        words = f"{ANSWERED:,} × 10 {dtype} through MLP((100,))"
        results.append(Result(f"memory, {kind}.{question}", "the limit", more, MOST, words, True, 1.0, "MB"))
    return results


def answered(kind: str, dtype: str, question: str, rows: int = ANSWERED) -> float:
    """MB that an answer adds."""
    parts = QUESTIONS.get(question, 1)
    code = ANSWER.format(kind=kind, dtype=dtype, question=question, parts=parts, rows=rows)
    return float(subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout)


def _measure(imports: str, model: str, target: str) -> tuple[float, float]:
    code = CODE.format(imports=imports, model=model, target=target, rows=ROWS, columns=COLUMNS)
    out = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    more, score = out.split()
    return float(more), float(score)


if __name__ == "__main__":
    show(run())
