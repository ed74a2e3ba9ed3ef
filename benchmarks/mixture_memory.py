"""Memory of mixtures on 10,000,000 × 16 in float32, which is 640 MB: all in all 4 GB, the data included.

Each fit runs in a process of its own; its number is the peak of resident memory, libraries and data included.
"""

from __future__ import annotations

import subprocess
import sys

from .timing import Result, show

__all__ = ["run"]

ROWS, COLUMNS, COMPONENTS = 10_000_000, 16, 10
LIMIT = 4000.0

MODELS = {
    "GaussianMixture": "GaussianMixture({k}, inference=EM(max_iter=1, tol=0.0), random_state=0)",
    "Mixture(Normal())": "Mixture(Normal(), {k}, inference=EM(max_iter=1, tol=0.0), random_state=0)",
}

CODE = """
import resource
import numpy as np
from benchmarks.gaussian_mixture import clouds
from likely import GaussianMixture, Mixture
from likely.inference import EM
from likely.likelihoods import Normal
x, _ = clouds({rows}, {columns}, {k}, np.float32)
model = {model}.fit(x)
used = len(np.unique(model.predict(x)))
rise = np.diff(model.history_)[0] / len(x)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6, rise, used)
"""


def run(repeats: int = 1) -> list[Result]:
    """Memory does not vary with the load, so that one run of each is enough."""
    results = []
    for name, model in MODELS.items():
        peak, rise, used = _measure(model)
        words = f"made data: one step of EM raises log-likelihood by {rise:.3g} a row; {used:.0f} components predicted"
        equal = rise > 0 and used == COMPONENTS
        results.append(Result(f"memory, {name}", "4 GB in all", peak, LIMIT, words, equal, 1.0, "MB"))
    return results


def _measure(model: str) -> tuple[float, float, float]:
    code = CODE.format(model=model.format(k=COMPONENTS), rows=ROWS, columns=COLUMNS, k=COMPONENTS)
    out = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    peak, rise, used = out.split()
    return float(peak), float(rise), float(used)


if __name__ == "__main__":
    show(run())
