"""Bayesian logistic regression (breast cancer, standardised, 31 weights, Normal(1) prior): seconds per effective draw.

The whole call is timed from a cold start, warm-up and (for NumPyro) compilation included: what a person waits for. The
number is the time divided by the bulk-ESS of the worst coordinate, in milliseconds, so that smaller is better. A line
for NumPyro without its compilation is there to see what that costs.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import time
from collections.abc import Callable
from statistics import median
from typing import Any, NamedTuple

import numpy as np

from .timing import Result, show

__all__ = ["run"]

CHAINS, DRAWS, WARMUP = 128, 300, 50


class Run(NamedTuple):
    """Seconds of the call, the draws (chains, draws, 31), and seconds without compilation where there is one."""

    seconds: float
    draws: np.ndarray
    compiled: float | None = None

    @property
    def ess(self) -> float:
        return float(_diagnosed(self.draws)[1].min())

    @property
    def rhat(self) -> float:
        return float(_diagnosed(self.draws)[0].max())


def run(repeats: int = 3) -> list[Result]:
    pyro = importlib.util.find_spec("pyro") is not None
    names = ("likely", "NumPyro NUTS", *(("Pyro NUTS",) if pyro else ()))
    runs: dict[str, list[Run]] = {name: [] for name in names}
    for repeat in range(repeats):  # interleaved; each in a process of its own, so that nothing is compiled already
        for name in names[: 3 if repeat == 0 else 2]:
            runs[name].append(_apart(name, repeat))
    ours = runs["likely"]
    mean = ours[-1].draws.reshape(-1, 31).mean(0)
    std = ours[-1].draws.reshape(-1, 31).std(0)
    rhat = max(chain.rhat for chain in ours)

    def line(peer: str, name: str, target: float | None, seconds: Callable[[Run], float]) -> Result:
        theirs = runs[name]
        costs = [[1000 * of(chain) / chain.ess for chain in side] for side, of in ((ours, _whole), (theirs, seconds))]
        gap = np.abs(theirs[-1].draws.reshape(-1, 31).mean(0) - mean) / std * np.sqrt(theirs[-1].ess)
        words = (
            f"ESS {ours[-1].ess:.0f} in {ours[-1].seconds:.2f} s (R-hat {rhat:.4f}) against {theirs[-1].ess:.0f} in "
            f"{seconds(theirs[-1]):.1f} s; means {gap.max():.1f} standard errors apart"
        )
        equal = rhat < 1.01 and bool(gap.max() < 5)
        least = (min(costs[0]), min(costs[1]))
        return Result(
            "Bayesian logistic", peer, median(costs[0]), median(costs[1]), words, equal, target, "ms / ESS", least
        )

    return [
        line("NumPyro NUTS", "NumPyro NUTS", 1 / 5, _whole),
        line("NumPyro NUTS, compiled", "NumPyro NUTS", None, lambda run: run.compiled or run.seconds),
        *([line("Pyro NUTS", "Pyro NUTS", 1 / 50, _whole)] if pyro else []),
    ]


def _whole(run: Run) -> float:
    return run.seconds


def _diagnosed(draws: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    from likely.sampling.convergence import diagnose  # ArviZ's numbers, without its import

    return diagnose(draws)


def _data() -> tuple[np.ndarray, np.ndarray]:
    from sklearn.datasets import load_breast_cancer
    from sklearn.preprocessing import StandardScaler

    x, y = load_breast_cancer(return_X_y=True)
    return StandardScaler().fit_transform(x), y


# --- each in a process of its own -------------------------------------------------------------------------------------
def _apart(name: str, seed: int) -> Run:
    """Run one side in a fresh interpreter and read what it drew."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "draws.npz")
        command = [sys.executable, "-m", "benchmarks.bayesian_logistic", name, str(seed), path]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        with np.load(path) as saved:
            compiled = float(saved["compiled"])
            return Run(float(saved["seconds"]), saved["draws"], None if np.isnan(compiled) else compiled)


def _likely(seed: int) -> Run:
    from likely import Classifier
    from likely.inference import HMC
    from likely.priors import Normal

    x, y = _data()
    prior = Normal(1.0, biases=Normal(1.0))
    model = Classifier(prior=prior, inference=HMC(CHAINS, DRAWS, WARMUP), random_state=seed)
    start = time.perf_counter()
    model.fit(x, y)
    seconds = time.perf_counter() - start
    parameters = model.posterior_.parameters
    draws = np.concatenate([parameters["network.weight"][:, 0], parameters["network.bias"]], 1)
    return Run(seconds, draws.reshape(CHAINS, DRAWS, 31))


def _numpyro(seed: int) -> Run:
    import jax

    jax.config.update("jax_enable_x64", True)
    import jax.numpy as jnp
    import numpyro
    import numpyro.distributions as dist
    from numpyro.infer import MCMC, NUTS

    x, y = _data()
    design = jnp.asarray(np.column_stack([x, np.ones(len(x))]))

    def model(design: Any, y: Any) -> None:
        w = numpyro.sample("w", dist.Normal(0.0, 1.0).expand([31]).to_event(1))
        numpyro.sample("y", dist.Bernoulli(logits=design @ w), obs=y)

    sampler = MCMC(
        NUTS(model), num_warmup=1000, num_samples=1000, num_chains=4, chain_method="vectorized", progress_bar=False
    )
    times = []
    for number in range(2):  # the second call is compiled already
        start = time.perf_counter()
        sampler.run(jax.random.PRNGKey(seed + 100 * number), design, y)
        draws = np.asarray(sampler.get_samples(group_by_chain=True)["w"])
        times.append(time.perf_counter() - start)
    return Run(times[0], draws, times[1])


def _pyro(seed: int) -> Run:
    import pyro
    import pyro.distributions as dist
    import torch
    from pyro.infer import MCMC, NUTS

    x, y = _data()
    design = torch.as_tensor(np.column_stack([x, np.ones(len(x))]))
    target = torch.as_tensor(y, dtype=torch.float64)

    def model() -> None:
        w = pyro.sample("w", dist.Normal(torch.zeros(31, dtype=torch.float64), 1.0).to_event(1))
        with pyro.plate("rows", len(design)):
            pyro.sample("y", dist.Bernoulli(logits=design @ w), obs=target)

    pyro.set_rng_seed(seed)
    sampler = MCMC(NUTS(model), num_samples=200, warmup_steps=200, disable_progbar=True)  # it is slow: one chain
    start = time.perf_counter()
    sampler.run()
    seconds = time.perf_counter() - start
    return Run(seconds, sampler.get_samples(group_by_chain=True)["w"].numpy())


def _one_side(name: str, seed: int, path: str) -> None:
    sides = {"likely": _likely, "NumPyro NUTS": _numpyro, "Pyro NUTS": _pyro}
    run = sides[name](seed)
    np.savez(path, seconds=run.seconds, draws=run.draws, compiled=run.compiled or np.nan)


if __name__ == "__main__":
    if len(sys.argv) == 4:
        _one_side(sys.argv[1], int(sys.argv[2]), sys.argv[3])
    else:
        show(run())
