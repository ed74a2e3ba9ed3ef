"""Answers about many rows go in blocks: what a model makes on its way to an answer does not grow with their number."""

from __future__ import annotations

import subprocess
import sys

ASK = """
import resource, sys, warnings
import numpy as np
from likely import PCA, FactorAnalysis, GaussianMixture, KernelRidge, KMeans, NaiveBayes

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10)

warnings.simplefilter("ignore")
rng = np.random.default_rng(0)
X, many = rng.normal(size=(100, 10)), rng.normal(size=(200_000, 10))
y = (X[:, 0] > 0).astype(int)
questions = [
    (GaussianMixture(20, covariance="diag", random_state=0), ("log_prob", "predict")),
    (KMeans(50, random_state=0), ("predict", "score")),
    (NaiveBayes(), ("predict", "predict_proba")),
    (PCA(3), ("log_prob", "transform")),
    (FactorAnalysis(3), ("log_prob", "transform")),
    (KernelRidge(), ("predict",)),
]
for model, names in questions:
    model.fit(X, y)
    for name in names:
        getattr(model, name)(many[:10])
        before = peak()
        answer = getattr(model, name)(many)
        print(type(model).__name__, name, peak() - before)
"""


def test_many_rows_need_no_memory_beyond_a_block():
    # whole, 200,000 rows x 20 components x 10 columns are 320 MB, and x 100 rows of a kernel 160 MB
    done = subprocess.run([sys.executable, "-c", ASK], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    extra = {tuple(line.split()[:2]): float(line.split()[2]) for line in done.stdout.splitlines()}
    assert len(extra) == 11
    assert {question: size for question, size in extra.items() if size > 100} == {}
