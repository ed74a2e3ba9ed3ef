"""Effective draws per second of Hamiltonian Monte Carlo against NumPyro's NUTS: eight schools and a correlated normal.

From a cold start: warm-up counts, and so does NumPyro's compilation (a second line is without it). Ours are many short
chains of one program, NumPyro's the four chains of a thousand draws that people run. The number is seconds for a
thousand effective draws of the worst coordinate, bulk ESS by ArviZ.
"""

from __future__ import annotations

import statistics
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch.distributions import constraints

from likely.sampling import HMC, sample
from likely.sampling.chains import arviz

from .timing import Result, show

__all__ = ["compare_draws", "run"]

EFFECT = np.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])
ERROR = np.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])
FOUR: dict[str, Any] = {"num_chains": 4, "chain_method": "vectorized", "progress_bar": False}
SIZE, CORRELATION = 100, 0.9
COVARIANCE = CORRELATION ** np.abs(np.subtract.outer(np.arange(SIZE), np.arange(SIZE)))


def run(repeats: int = 3) -> list[Result]:
    """Both targets."""
    return [
        *compare_draws("eight schools, non-centred", _schools, _schools_model, repeats),
        *compare_draws(f"normal of {SIZE} correlated coordinates", _normal, _normal_model, repeats),
    ]


def _schools(seed: int) -> np.ndarray:
    effect, error = torch.from_numpy(EFFECT), torch.from_numpy(ERROR)

    def log_prob(x: torch.Tensor) -> torch.Tensor:
        mean, scale, schools = x[:, :1], x[:, 1:2], x[:, 2:]
        prior = (
            -0.5 * (mean[:, 0] / 5).square() - torch.log1p((scale[:, 0] / 5).square()) - 0.5 * schools.square().sum(1)
        )
        return prior - 0.5 * ((effect - mean - scale * schools) / error).square().sum(1)

    start = torch.zeros(256, 10)
    start[:, 1] = 1.0
    support = [(constraints.real, 1), (constraints.positive, 1), (constraints.real, 8)]
    return sample(log_prob, start, HMC(), draws=100, warmup=150, random_state=seed, support=support).draws.numpy()


def _normal(seed: int) -> np.ndarray:
    precision = torch.from_numpy(np.linalg.inv(COVARIANCE))
    start = torch.zeros(128, SIZE)
    chains = sample(
        lambda x: -0.5 * ((x @ precision) * x).sum(1), start, HMC(), draws=100, warmup=150, random_state=seed
    )
    return chains.draws.numpy()


def _schools_model() -> None:
    import numpyro
    from numpyro import distributions as dist

    mean = numpyro.sample("mean", dist.Normal(0, 5))
    scale = numpyro.sample("scale", dist.HalfCauchy(5))
    schools = numpyro.sample("schools", dist.Normal(0, 1).expand([8]).to_event(1))
    numpyro.sample("effect", dist.Normal(mean + scale * schools, ERROR), obs=EFFECT)


def _normal_model() -> None:
    import numpyro
    from numpyro import distributions as dist

    numpyro.sample("x", dist.MultivariateNormal(0.0, precision_matrix=np.linalg.inv(COVARIANCE)))


def compare_draws(
    name: str,
    ours: Callable[[int], np.ndarray],
    model: Callable[[], None],
    repeats: int,
    read: Callable[[dict[str, np.ndarray]], np.ndarray] | None = None,
    target: float = 1.0,
) -> list[Result]:
    """Seconds for a thousand effective draws of the worst quantity, ours against NumPyro's NUTS.

    `read` makes quantities (chains, draws, k) of NumPyro's draws by name.
    """
    import jax
    from numpyro import infer

    arviz()  # imported before the clock starts
    costs: dict[str, list[float]] = {"likely": [], "cold": [], "compiled": []}
    means: dict[str, np.ndarray] = {}
    rhat = 0.0
    for repeat in range(repeats):
        seconds, draws = _timed(lambda seed=repeat: ours(seed))
        costs["likely"].append(_cost(seconds, draws))
        means["likely"], rhat = draws.mean((0, 1)), _worst("rhat", draws)
        jax.clear_caches()
        chains = infer.MCMC(infer.NUTS(model), num_warmup=1000, num_samples=1000, **FOUR)
        for case in ("cold", "compiled"):
            seconds, draws = _timed(lambda seed=repeat, chains=chains: _ran(chains, jax.random.PRNGKey(seed), read))
            costs[case].append(_cost(seconds, draws))
            means[case] = draws.mean((0, 1))
    mine = statistics.median(costs["likely"])
    results = []
    for case, words, aim in (("cold", "from a cold start", target), ("compiled", "compiled before", None)):
        apart = float(np.abs(means["likely"] - means[case]).max())
        quality = f"means within {apart:.2g}, R-hat {rhat:.3f}"
        results.append(
            Result(
                f"seconds for 1,000 effective draws: {name}",
                f"NumPyro NUTS, {words}",
                mine,
                statistics.median(costs[case]),
                quality,
                apart < 0.5 and rhat < 1.05,
                aim,
                "s",
                (min(costs["likely"]), min(costs[case])),
            )
        )
    return results


def _ran(chains: Any, key: Any, read: Callable[[dict[str, np.ndarray]], np.ndarray] | None) -> np.ndarray:
    chains.run(key)
    samples = chains.get_samples(group_by_chain=True)
    if read is not None:
        return read({name: np.asarray(value) for name, value in samples.items()})
    order = [name for name in ("mean", "scale", "schools", "x") if name in samples]
    return np.concatenate([np.asarray(samples[name]).reshape(4, 1000, -1) for name in order], 2)


def _timed(call: Callable[[], np.ndarray]) -> tuple[float, np.ndarray]:
    start = time.perf_counter()
    draws = call()
    return time.perf_counter() - start, draws


def _cost(seconds: float, draws: np.ndarray) -> float:
    return 1000 * seconds / _worst("ess", draws)


def _worst(what: str, draws: np.ndarray) -> float:
    library = arviz()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        values = getattr(library, what)(library.convert_to_dataset({"x": draws}))["x"].values
    return float(values.min() if what == "ess" else values.max())


if __name__ == "__main__":
    show(run())
