"""Whether the chains of a model agree: about its parameters, or about what a network says at some training rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from ...data.rows import Rows
from ...sampling.convergence import AGREE, agree, diagnose
from ..log_posterior import LogPosterior
from ..predictor import Predictor

__all__ = ["agreement"]

QUANTITIES, ROWS = 512, 16
"""The largest number of quantities that are judged, and of training rows that a network is judged at."""
BLOCK = 1 << 24
"""Numbers of draws that are looked at together."""


def agreement(target: LogPosterior, draws: Tensor, log_prob: Tensor) -> dict[str, Any]:
    """The largest R-hat, what it is of, whether chains agree, and the smallest ESS, for draws (chains, draws, d).

    They are those of log p and of the parameters of a linear model. The units of a network can be exchanged without any
    change of the function, so that chains may rightly disagree about weights: there it is η at some training rows.
    R-hat and ESS are None where they are unknown.
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
    picked = values[:, chosen].unflatten(0, tuple(log_prob.shape)).double()
    judged = torch.cat([log_prob.unsqueeze(-1), picked], -1).cpu().numpy()
    rhat, ess = diagnose(judged)
    if np.isnan(rhat).all():
        return {"rhat": None, "rhat_of": None, "agree": True, "ess": None}
    worst = int(np.nanargmax(rhat))
    together = bool(rhat[worst] <= AGREE or agree(judged).all())
    of = ["log p", *(names[i] for i in chosen.tolist())][worst]
    return {"rhat": float(rhat[worst]), "rhat_of": of, "agree": together, "ess": float(np.nanmin(ess))}


def _spaced(count: int, wanted: int) -> Tensor:
    """At most `wanted` of the indices 0 … count − 1, evenly spaced."""
    return torch.linspace(0, count - 1, min(count, wanted), dtype=torch.float64).round().long()
