"""Linear recursions, step by step and in closed form: autoregressions and naive forecasts.

z_t = Σ_l a_l z_{t−l} + c·x_t + b + e_t,   e ~ N(0, σ²)
Var z_{t+h} = σ² Σ_{j<h} ψ_j²,   ψ_0 = 1,   ψ_j = Σ_l a_l ψ_{j−l}

What is unknown of a, b and σ is averaged over: the answer is a mixture over members of the posterior.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from scipy.special import gammaincinv
from torch import distributions as td

from .windows import Past

__all__ = ["Recursion", "recursion_of"]

DRAWS, MEMBERS = 1000, 300
"""Draws from a posterior in closed form, and the most of them that are kept."""
NUMBERS = 20_000_000
"""That the means of all members may have."""
LEAST = 20
"""Draws whose surprises die out, or stay, are believed if there are so many."""
LONG = 100
"""Steps after which growth is seen."""


class Recursion(NamedTuple):
    """Members (S, …) of the posterior of one recursion, of equal weight unless `weights` says otherwise."""

    lags: tuple[int, ...]
    weight: np.ndarray
    """a, (S, lags)"""
    known: np.ndarray
    """c, (S, covariates)"""
    bias: np.ndarray
    """b, (S,)"""
    scale: np.ndarray
    """σ, (S,)"""
    weights: np.ndarray
    """(S,), which sum to 1."""

    def ahead(self, past: Past, steps: int, seed: int) -> td.Distribution:
        """The distribution of each of the next steps: batch (n, steps)."""
        n, reach = len(past.values), max(self.lags)
        block = max(1, NUMBERS // (len(self.bias) * (reach + steps)))
        windows = past.windows(reach)
        parts = [
            self._moved(windows[i : i + block], past.known[i : i + block], np.zeros((len(self.bias), 1, steps)))
            for i in range(0, n, block)
        ]
        mean = torch.from_numpy(np.concatenate(parts, 1)).movedim(0, -1)  # (n, steps, S)
        deviation = self.scale[:, None] * np.sqrt(np.cumsum(self.impulses(steps) ** 2, 1))
        spread = torch.from_numpy(deviation).T.expand_as(mean)
        if len(self.bias) == 1:
            return td.Normal(mean[..., 0], spread[..., 0], validate_args=False)
        mixing = td.Categorical(probs=torch.from_numpy(self.weights).expand_as(mean), validate_args=False)
        return td.MixtureSameFamily(mixing, td.Normal(mean, spread, validate_args=False), validate_args=False)

    def paths(self, past: Past, steps: int, count: int, seed: int) -> np.ndarray:
        """Draws of the next steps together, (count, n, steps)."""
        random, n = np.random.default_rng(seed), len(past.values)
        chosen = random.choice(len(self.bias), size=count, p=self.weights)
        noise = random.standard_normal((count, n, steps)) * self.scale[chosen, None, None]
        return self.of(chosen)._moved(past.windows(max(self.lags)), past.known, noise)

    def of(self, members: np.ndarray) -> Recursion:
        """Some of the members, with equal weights."""
        equal = np.full(len(members), 1 / len(members))
        return Recursion(
            self.lags, self.weight[members], self.known[members], self.bias[members], self.scale[members], equal
        )

    def impulses(self, steps: int) -> np.ndarray:
        """ψ, (S, steps): what a surprise adds to each later step.

        >>> one = np.ones(1)
        >>> Recursion((1,), np.array([[0.5]]), np.empty((1, 0)), 0 * one, one, one).impulses(3)
        array([[1.  , 0.5 , 0.25]])
        """
        start, lags = max(self.lags), np.array(self.lags)
        weight = np.ascontiguousarray(self.weight.T)
        psi = np.zeros((start + steps, len(self.bias)))  # steps first: what is added up lies side by side
        psi[start] = 1.0
        for h in range(start + 1, start + steps):
            psi[h] = np.einsum("ls,ls->s", weight, psi[h - lags])
        return psi[start:].T

    def _moved(self, windows: np.ndarray, known: np.ndarray, noise: np.ndarray) -> np.ndarray:
        """Values (S, n, steps) of each member after windows (n, reach), with noise (S, n or 1, steps)."""
        reach, steps = windows.shape[1], noise.shape[-1]
        lags = np.array(self.lags)
        values = np.empty((len(self.bias), len(windows), reach + steps))
        values[..., :reach] = windows
        for h in range(steps):
            past = values[..., reach + h - lags]
            values[..., reach + h] = np.einsum("sl,snl->sn", self.weight, past) + self.bias[:, None] + noise[..., h]
            if self.known.shape[1]:
                values[..., reach + h] += self.known @ known[:, h].T
        return values[..., reach:]


def recursion_of(regressor: Any, lags: tuple[int, ...], seed: int) -> Recursion:
    """The recursion that a fitted linear regressor of one step describes.

    A posterior in closed form is drawn from: weights given σ, in mirrored pairs, and σ by its own distribution. Draws
    that explode are left out, as series that explode are rare.
    """
    posterior = regressor.posterior_
    members, factors = posterior, np.ones(len(posterior))
    if hasattr(posterior, "draw"):
        members = posterior.draw(DRAWS // 2, torch.Generator().manual_seed(seed))
        factors = _spreads(float(posterior.degrees[0]), seed) if hasattr(posterior, "degrees") else np.ones(DRAWS)
    weight = members.parameters["network.weight"][:, 0].double().numpy()
    stored = members.parameters.get("network.bias")
    bias = np.zeros((len(weight), 1)) if stored is None else stored.double().numpy()
    width = weight.shape[1]
    theta = np.concatenate([weight, bias], 1)
    zero = torch.zeros(1, width, dtype=members.dtype)
    scale = regressor.likelihood_.distribution(members.eta(zero)[:, 0]).stddev.double().numpy()
    if members is not posterior:
        centre = _centre(posterior)
        theta = np.concatenate([theta, 2 * centre - theta])
        theta, scale = centre + factors[:, None] * (theta - centre), factors * np.concatenate([scale, scale])
    weights = np.full(len(theta), 1 / len(theta)) if members is not posterior else posterior.weights.double().numpy()
    made = Recursion(
        lags,
        theta[:, : len(lags)],
        theta[:, len(lags) : width],
        theta[:, width],
        scale,
        weights / weights.sum(),
    )
    if members is posterior:
        return made
    calm = np.flatnonzero(_growth(made) <= 1.0)
    return made.of((calm if len(calm) >= LEAST else np.arange(DRAWS))[:MEMBERS])


def _centre(posterior: Any) -> np.ndarray:
    weight = posterior.parameters["network.weight"][0, 0].double().numpy()
    stored = posterior.parameters.get("network.bias")
    return np.concatenate([weight, np.zeros(1) if stored is None else stored[0].double().numpy().reshape(-1)])


def _spreads(degrees: float, seed: int) -> np.ndarray:
    """√(ν / χ²_ν) at even quantiles, in random order."""
    if not np.isfinite(degrees):
        return np.ones(DRAWS)
    p = (np.arange(DRAWS) + 0.5) / DRAWS
    ratios = np.sqrt(degrees / (2 * gammaincinv(degrees / 2, p)))
    return np.random.default_rng(seed).permutation(ratios)


def _growth(recursion: Recursion) -> np.ndarray:
    """How much each member grows per step in the long run: by how far the surprise of one step is felt."""
    reach = max(recursion.lags)
    psi = np.abs(recursion.impulses(2 * LONG + reach))
    sooner, later = psi[:, LONG : LONG + reach].max(1), psi[:, 2 * LONG :].max(1)
    return (np.maximum(later, 1e-300) / np.maximum(sooner, 1e-300)) ** (1 / LONG)  # type: ignore[no-any-return]
