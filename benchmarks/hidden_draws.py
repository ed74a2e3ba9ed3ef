"""Effective draws per second where a discrete variable is summed out: mixtures and chains, against NumPyro's NUTS.

Both have the same prior, normal with standard deviation 3 on the same free numbers, and the same likelihood with the
hidden labels summed out. Quantities that do not depend on labels are judged: ordered means, the probability to stay.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import torch

from likely import HiddenMarkov, Mixture
from likely.inference import HMC
from likely.likelihoods import Normal, Poisson

from .samplers import compare_draws
from .timing import Result, show

__all__ = ["run"]

SCALE, TARGET = 3.0, 1 / 3
CHAINS, DRAWS, WARMUP = 32, 100, 150


def run(repeats: int = 3) -> list[Result]:
    """Both models."""
    rng = np.random.default_rng(0)
    counts = np.concatenate([rng.poisson(2, 200), rng.poisson(10, 200), rng.poisson(25, 100)]).astype(float)
    steps = rng.normal(np.where(np.arange(300) // 25 % 2, 3.0, 0.0), 1.0)
    return [
        *_mixture(counts, repeats),
        *_chain(steps, repeats),
    ]


def _fit(model: Any, X: np.ndarray) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(X)


def _mixture(x: np.ndarray, repeats: int) -> list[Result]:
    middle = float(np.log(x.mean()))

    def ours(seed: int) -> np.ndarray:
        inference = HMC(chains=CHAINS, draws=DRAWS, warmup=WARMUP)
        model = _fit(Mixture(Poisson(), 3, inference=inference, random_state=seed), x[:, None])
        return np.sort(model.draws_["eta"][..., 0], 1).reshape(CHAINS, DRAWS, 3)

    def theirs() -> None:
        import jax
        import numpyro
        from jax import numpy as jnp
        from numpyro import distributions as dist
        from numpyro.distributions.transforms import StickBreakingTransform

        eta = middle + numpyro.sample("eta", dist.Normal(0, SCALE).expand([3]).to_event(1))
        sticks = numpyro.sample("sticks", dist.Normal(0, SCALE).expand([2]).to_event(1))
        weights = jnp.log(StickBreakingTransform()(sticks))
        parts = dist.Poisson(jnp.exp(eta)).log_prob(x[:, None]) + weights
        numpyro.factor("rows", jax.nn.logsumexp(parts, axis=1).sum())

    def read(draws: dict[str, np.ndarray]) -> np.ndarray:
        return middle + np.sort(draws["eta"], -1)

    return compare_draws("mixture of 3 Poissons, 500 rows", ours, theirs, repeats, read, TARGET)


def _chain(x: np.ndarray, repeats: int) -> list[Result]:
    weight = torch.ones(len(x), dtype=torch.float64)
    middle, unit = (float(value) for value in Normal(1.0).baseline(torch.from_numpy(x), weight))

    def ours(seed: int) -> np.ndarray:
        inference = HMC(chains=CHAINS, draws=DRAWS, warmup=WARMUP)
        model = _fit(HiddenMarkov(Normal(1.0), 2, inference=inference, random_state=seed), x[:, None])
        means, moves = model.draws_["eta"][..., 0], model.draws_["chain.transition"]
        stay = np.where(means[:, 0] < means[:, 1], moves[:, 0, 0], moves[:, 1, 1])
        return np.column_stack([np.sort(means, 1), stay]).reshape(CHAINS, DRAWS, 3)

    def theirs() -> None:
        import jax
        import numpyro
        from jax import numpy as jnp
        from numpyro import distributions as dist

        means = middle + unit * numpyro.sample("means", dist.Normal(0, SCALE).expand([2]).to_event(1))
        sticks = numpyro.sample("sticks", dist.Normal(0, SCALE).expand([3]).to_event(1))
        yes, no = jax.nn.log_sigmoid(sticks), jax.nn.log_sigmoid(-sticks)
        first, moves = jnp.array([yes[0], no[0]]), jnp.array([[yes[1], no[1]], [yes[2], no[2]]])
        emitted = dist.Normal(means, 1.0).log_prob(x[:, None])

        def step(forward: Any, seen: Any) -> tuple[Any, None]:
            return jax.nn.logsumexp(forward[:, None] + moves, axis=0) + seen, None

        last, _ = jax.lax.scan(step, first + emitted[0], emitted[1:])
        numpyro.factor("series", jax.nn.logsumexp(last))

    def read(draws: dict[str, np.ndarray]) -> np.ndarray:
        means, sticks = draws["means"], draws["sticks"]
        low = means[..., 0] < means[..., 1]
        stay = np.where(low, 1 / (1 + np.exp(-sticks[..., 1])), 1 - 1 / (1 + np.exp(-sticks[..., 2])))
        ordered = middle + unit * np.sort(means, -1)
        return np.concatenate([ordered, stay[..., None]], -1)

    return compare_draws("hidden Markov model of 2 states, 300 steps", ours, theirs, repeats, read, TARGET)


if __name__ == "__main__":
    show(run())
