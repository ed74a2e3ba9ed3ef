"""The tables of a Bayesian network from rows with gaps, as a model for EM.

    E:  N(x, parents) = Σ rows p(x, parents | what is seen)        M:  θ = (N + a) / Σₓ (N + a)

What is hidden are the gaps; one pass over the clique tree a row gives the expected counts of all tables. With
pseudo-counts a the prior is p(θ) ∝ ∏ θᵃ, a Dirichlet, and EM ends at its posterior mode. Rows without gaps are counted
once.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from ...core import distributed
from ...inference.latent.latent import Latent, Params
from .exact import ExactInference
from .tables import Tables

__all__ = ["NetworkEM", "log_power"]


class NetworkEM(Latent):
    """Codes (rows, variables) with −1 for a gap, weights, and the pseudo-count of every entry of the tables."""

    def __init__(self, tables: Tables, codes: np.ndarray, weights: np.ndarray, prior: np.ndarray) -> None:
        mine = distributed.shard(len(codes))
        self.tables, self.prior = tables, prior
        self.count = float(weights.sum())
        self.seen = tables.counts(codes, weights)
        codes, weights = codes[mine], weights[mine]
        complete = (codes >= 0).all(1)
        self.known = tables.counts(codes[complete], weights[complete])
        self.gaps, self.repeats = _distinct(codes[~complete], weights[~complete])
        self.inference: ExactInference | None = None

    def start(self, seeds: list[int]) -> Params:
        """What families seen whole tell, with random counts of about one row for each entry.

        EM never leaves a zero, nor the symmetry of states that start alike.
        """
        noise = [np.random.default_rng(seed).uniform(0.5, 1.5, len(self.seen)) for seed in seeds]
        first = np.stack([self.tables.normalise(self.seen + self.prior + jitter) for jitter in noise])
        return {"tables": torch.from_numpy(first)}

    def expect(self, params: Params) -> tuple[Params, Tensor]:
        runs = [self._expect(vector) for vector in params["tables"].numpy()]
        counts, values = (np.stack([run[place] for run in runs]) for place in range(2))
        return {"counts": torch.from_numpy(counts)}, torch.from_numpy(values)

    def expected_counts(self, vector: np.ndarray) -> np.ndarray:
        """How often each entry of the tables is expected in all rows of all processes."""
        counts = self._expect(vector)[0]
        distributed.sum_(torch.from_numpy(counts))
        return counts

    def _expect(self, vector: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        if self.inference is None:
            self.inference = ExactInference(self.tables, vector)
        else:
            self.inference.use(vector)
        counts, log_prob = self.inference.expected_counts(self.gaps, self.repeats)
        return counts + self.known, np.array(self.repeats @ log_prob + log_power(vector, self.known))

    def maximise(self, params: Params, statistics: Params) -> Params:
        tables = [self.tables.normalise(counts + self.prior) for counts in statistics["counts"].numpy()]
        return {"tables": torch.from_numpy(np.stack(tables))}

    def log_prior(self, params: Params) -> Tensor:
        return torch.tensor([log_power(vector, self.prior) for vector in params["tables"].numpy()], dtype=torch.float64)


def log_power(vector: np.ndarray, counts: np.ndarray) -> float:
    """log ∏ θᴺ = Σ N log θ, with 0 log 0 = 0.

    >>> log_power(np.array([1.0, 0.0]), np.array([3.0, 0.0]))
    0.0
    """
    used = counts > 0
    return float(counts[used] @ np.log(vector[used]))


def _distinct(codes: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Each different row once, with the weight of all its copies."""
    codes, weights = codes[weights > 0], weights[weights > 0]
    if not len(codes):
        return codes, weights
    rows, which = np.unique(codes, axis=0, return_inverse=True)
    return rows, np.bincount(which.reshape(-1), weights)
