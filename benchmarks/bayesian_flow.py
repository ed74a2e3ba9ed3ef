"""What averaging over θ is worth to a flow of few rows: held-out log p of MAP, of five members, and of draws by HMC.

300 rows teach, 5,000 others judge; the same small flow, the same prior, the same training. MAP is the mean over five
starts, since one start may be luck.
"""

from __future__ import annotations

import warnings

import numpy as np

from likely import Flow
from likely.inference import HMC, MAP, Ensemble, Inference
from likely.networks import MLP
from likely.optim import Adam, Cosine
from likely.priors import Normal

from .plane_densities import SETS
from .timing import Result, show

__all__ = ["run"]

ROWS, HELD_OUT, STARTS = 300, 5_000, 5
QUICK = MAP(Adam(5e-3), epochs=150, batch_size=75, schedule=Cosine())
INFERENCES: dict[str, Inference] = {
    f"Ensemble({STARTS})": Ensemble(STARTS, by=QUICK),
    "HMC": HMC(chains=4, draws=25, warmup=100),
}


def run(repeats: int = 1) -> list[Result]:
    """Nats lost against MAP per held-out row: below 0 is better."""
    results = []
    for name in ("moons", "spirals"):
        rng = np.random.default_rng(0)
        rows, held_out = SETS[name](rng, ROWS), SETS[name](rng, HELD_OUT)
        single = float(np.mean([_score(QUICK, rows, held_out, seed) for seed in range(STARTS)]))
        for title, inference in INFERENCES.items():
            score = _score(inference, rows, held_out)
            better = score > single
            words = f"held-out log p {score:.3f}, that of MAP {single:.3f}"
            results.append(Result(f"{name}, {ROWS} rows: {title}", "MAP", -score, -single, words, better, None, "nats"))
    return results


def _score(inference: Inference, rows: np.ndarray, held_out: np.ndarray, seed: int = 0) -> float:
    prior = Normal(1.0, biases=Normal(1.0))
    flow = Flow("affine", layers=4, network=MLP((16,), "tanh"), prior=prior, inference=inference, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # short chains say so
        return flow.fit(rows).score(held_out)


if __name__ == "__main__":
    show(run())
