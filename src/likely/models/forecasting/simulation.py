"""Any network and likelihood step by step: paths are drawn, and each goes on from what it drew.

p(z_{t+h} | past) ≈ 1/N Σ_paths p(z_{t+h} | the path up to t + h − 1)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch import distributions as td
from torch.func import functional_call

from ...core.random import isolated
from ...inference.posterior import average
from .windows import Past

__all__ = ["Simulation"]

PATHS = 200
"""Paths behind a distribution."""
MEMBERS = 20
"""Members of a posterior that the paths are shared out to."""


@dataclass(frozen=True)
class Simulation:
    """A fitted regressor of the next step, and how a drawn value becomes a number of the past."""

    regressor: Any
    lags: tuple[int, ...]
    sequence: bool
    encode: Callable[[np.ndarray], np.ndarray]
    """From values (…, n) that the likelihood draws to what rows hold."""

    def ahead(self, past: Past, steps: int, seed: int) -> td.Distribution:
        """The distribution of each of the next steps: batch (n, steps)."""
        eta = self._run(past, steps, PATHS, seed)[1]  # (paths, n, steps, size)
        return average(self.regressor.likelihood_, eta, torch.full((len(eta),), 1 / len(eta)))

    def paths(self, past: Past, steps: int, count: int, seed: int) -> np.ndarray:
        """Draws of the next steps together, (count, n, steps)."""
        return self._run(past, steps, count, seed)[0]

    @torch.inference_mode()
    def _run(self, past: Past, steps: int, count: int, seed: int) -> tuple[np.ndarray, Tensor]:
        posterior, n, reach = self.regressor.posterior_, len(past.values), max(self.lags)
        values = np.empty((count, n, reach + steps))
        values[..., :reach] = past.windows(reach)
        features = past.known.shape[-1]
        known = np.zeros((n, reach + steps, features))
        known[:, reach:] = past.known
        for i, before in enumerate(past.before):
            known[i, :reach] = before[len(before) - reach :]
        drawn, etas = np.empty((count, n, steps)), []
        with isolated(seed):
            members = posterior.draw(MEMBERS, None) if hasattr(posterior, "draw") else posterior
            owner = np.sort(np.asarray(torch.multinomial(members.weights.double(), count, replacement=True)))
            for h in range(steps):
                rows = self._rows(values[..., : reach + h], known[:, : reach + h + 1])
                eta = _eta(members, owner, rows)
                drawn[..., h] = self.regressor.likelihood_.distribution(eta).sample().double().numpy()
                values[..., reach + h] = self.encode(drawn[..., h])
                etas.append(eta)
        return drawn, torch.stack(etas, 2)

    def _rows(self, values: np.ndarray, known: np.ndarray) -> np.ndarray:
        """What the network sees: (count, n, width), or (count, n, context, 1 + covariates)."""
        at = values.shape[-1]
        lags = np.array(self.lags)
        if not self.sequence:
            ahead = np.broadcast_to(known[:, at], (*values.shape[:2], known.shape[-1]))
            return np.concatenate([values[..., at - lags], ahead], -1)
        steps = known[:, at - lags[::-1] + 1]
        steps = np.broadcast_to(steps, (len(values), *steps.shape))
        return np.concatenate([values[..., at - lags[::-1], None], steps], -1)


def _eta(posterior: Any, owner: np.ndarray, rows: np.ndarray) -> Tensor:
    """η (count, n, size), each path by its own member."""
    x = torch.from_numpy(rows).to(posterior.dtype)
    parts = []
    for member in np.unique(owner):
        own = x[torch.from_numpy(owner == member)]
        with posterior.lent() as module:
            eta = functional_call(module, posterior.member(int(member)), (own.flatten(0, 1),))
        parts.append(eta.reshape(*own.shape[:2], -1).double())
    return torch.cat(parts)
