"""Whether the chains of a model agree: about its parameters, or about what a network says at some training rows.

    R-hat² ≈ (n − 1)/n + F/n      for 2m half chains of n independent draws, F ~ F(2m − 1, 2m(n − 1))

So short chains come to a large R-hat by chance alone. Up to that limit, what they agree about is unknown; chains beyond
it disagree. Of fewer than 30 draws, which hang together, no limit can be given: there it is unknown as well.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from scipy.special import fdtri
from torch import Tensor

from ...data.rows import Rows
from ...sampling.convergence import AGREE, ALARM, agree, diagnose
from ..log_posterior import LogPosterior
from ..predictor import Predictor

__all__ = ["JUDGED", "agreement", "limit", "said_of", "untold"]

QUANTITIES, ROWS = 512, 16
"""The largest number of quantities that are judged, and of training rows that a network is judged at."""
JUDGED = 30
"""Draws of a chain from which on a large R-hat is more than the correlation of successive draws."""
BLOCK = 1 << 24
"""Numbers of draws that are looked at together."""


def agreement(target: LogPosterior, draws: Tensor, log_prob: Tensor | None = None) -> dict[str, Any]:
    """The largest R-hat, what it is of, whether chains agree, and the smallest ESS, for draws (chains, draws, d).

    They are those of log p and of the parameters of a linear model. The units of a network can be exchanged without any
    change of the function, so that chains may rightly disagree about weights: there it is η at some training rows.
    R-hat and ESS are None where they are unknown, and so is whether chains agree that are too short to tell.
    """
    module, flat = target.module, draws.flatten(0, 1)
    if isinstance(module, Predictor) and module.linear is not None:
        names = target.parameters.labels()
        values = flat
    else:
        data = target.problem.data
        rows = _spaced(len(data), ROWS)
        batch = data.batch(rows.to(data.x.device))
        x = batch.x
        parts = flat.split(max(1, BLOCK // (target.size + x.numel())))
        values = torch.cat([target.output(part.to(x.device, data.dtype), batch).flatten(1).cpu() for part in parts])
        per_row = values.shape[1] // len(rows)
        what = "η" if "eta" in target.problem.objective.offers else "log p"
        names = [f"{what} at row {row}" for row in rows.tolist() for _ in range(per_row)]
        if isinstance(x, Rows):  # of different numbers of positions
            names = [f"η {index}" for index in range(values.shape[1])]
    chosen = _spaced(len(names), QUANTITIES)
    picked = values[:, chosen].unflatten(0, tuple(draws.shape[:2])).double()
    named = [names[i] for i in chosen.tolist()]
    if log_prob is not None:
        picked, named = torch.cat([log_prob.unsqueeze(-1), picked], -1), ["log p", *named]
    judged = picked.cpu().numpy()
    rhat, ess = diagnose(judged)
    if np.isnan(rhat).all():
        return {"rhat": None, "rhat_of": None, "agree": None, "ess": None}
    worst = int(np.nanargmax(rhat))
    together: bool | None = bool(rhat[worst] <= AGREE or agree(judged).all())
    if not together and (judged.shape[1] < JUDGED or rhat[worst] <= limit(*judged.shape)):
        together = None
    of = named[worst]
    return {"rhat": float(rhat[worst]), "rhat_of": of, "agree": together, "ess": float(np.nanmin(ess))}


def limit(chains: int, draws: int, quantities: int) -> float:
    """The R-hat that chains of independent draws exceed in one of so many quantities once in a thousand times.

    >>> [round(limit(4, draws, 17), 2) for draws in (10, 30, 100, 1000)]
    [1.47, 1.13, 1.05, 1.05]
    """
    halves, n = 2 * chains, draws // 2
    chance = float(fdtri(halves - 1, halves * (n - 1), 1 - ALARM / quantities))
    return max(AGREE, math.sqrt((n - 1 + chance) / n))


def untold(info: dict[str, Any], draws: int) -> str | None:
    """That chains are too short to tell whether they agree, in words; None where they are not.

    >>> untold({"agree": None}, 20)
    'Whether the chains agree cannot be told from 20 draws of each, so converged_ is None: draw 30 or more'
    """
    if info["agree"] is not None or draws >= JUDGED:
        return None
    return (
        f"Whether the chains agree cannot be told from {draws} draws of each, so converged_ is None: draw {JUDGED} or "
        "more"
    )


def said_of(info: dict[str, Any]) -> str | None:
    """What is wrong with chains that disagree, in words; None if they do not, or if that is unknown."""
    if info["agree"] is not False:
        return None
    return f"The chains do not agree: R-hat of {info['rhat_of']} is {info['rhat']:.2f}, above {AGREE}"


def _spaced(count: int, wanted: int) -> Tensor:
    """At most `wanted` of the indices 0 … count − 1, evenly spaced."""
    return torch.linspace(0, count - 1, min(count, wanted), dtype=torch.float64).round().long()
