"""A component that has lost all its rows begins again where the mixture explains the data worst.

    p'(x) = (1 − δ) p(x) + δ q(x),      δ = argmax Σᵢ wᵢ log p'(xᵢ)

q is fitted to the rows around the one with the least p(x). δ = 0 leaves the mixture as it was, so that the
likelihood does not fall.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from ...inference.latent.latent import Params
from .responsibilities import blocks, split

if TYPE_CHECKING:
    from .components import Components

__all__ = ["best_fraction", "reseed"]


def reseed(model: Components, params: Params, start: int, component: int) -> int:
    """Change one component of one start, in place; the row it begins at.

    Every process does this for all rows, so that all come to the same.
    """
    weight = torch.ones(len(model.x), dtype=torch.float64) if model.weight is None else model.weight
    current = {name: value[start : start + 1] for name, value in params.items()}
    evidence, before = _log_prob(model, current, component)
    row = int(torch.where(weight > 0, evidence, torch.inf).argmin())
    near = _around(model.x, row, max(len(model.x) // (2 * model.components), model.x.shape[1] + 2))
    trial = {name: value.clone() for name, value in current.items()}
    for name, value in _fitted(model, weight, near).items():
        if value.shape[1] == 2:  # what all components share is left as it is
            trial[name][0, component] = value[0, 0]
    _, after = _log_prob(model, trial, component)
    fraction = best_fraction(after - evidence, weight)
    gain = float(
        weight
        @ torch.logaddexp((after - evidence) + _log(fraction), torch.tensor(_log(1 - fraction), dtype=torch.float64))
    )
    gain += model.emission.smoothing / model.count * float(weight @ (after - before))
    if gain > 0:
        trial["weights"] *= 1 - fraction
        trial["weights"][0, component] = fraction
        for name, value in trial.items():
            params[name][start] = value[0]
    return row


def best_fraction(log_ratio: Tensor, weight: Tensor) -> float:
    """δ in [0, 1] that maximises Σ w log(1 − δ + δ e^ratio), a concave function; 0 if nothing is gained.

    >>> fraction = best_fraction(torch.tensor([4.0, 0.0]).log(), torch.ones(2))        # log(1 + 3δ) + log(1 − δ)
    >>> round(fraction, 6)
    0.333333
    """
    down = torch.exp(-log_ratio.abs())
    up = log_ratio > 0

    def derivative(fraction: float) -> float:
        # Σ w (ρ − 1) / (1 − δ + δρ), written so that neither a huge nor a tiny ρ overflows.
        bent = torch.where(
            up, (1 - down) / ((1 - fraction) * down + fraction), (down - 1) / (1 - fraction + fraction * down)
        )
        return float((weight * bent.double().clamp(-1e300, 1e300)).sum())

    low, high = 0.0, 1.0
    if derivative(low) <= 0:
        return 0.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if derivative(middle) > 0 else (low, middle)
    return low


def _log_prob(model: Components, params: Params, component: int) -> tuple[Tensor, Tensor]:
    """log p(x) and log p(x | component) of all rows."""
    evidence, own = [], []
    for rows in blocks(slice(0, len(model.x)), model.components):
        log_prob = model.emission.log_prob(params, model.x[rows])
        evidence.append(split(log_prob, params["weights"])[1][:, 0])
        own.append(log_prob[:, 0, component])
    return torch.cat(evidence), torch.cat(own)


def _fitted(model: Components, weight: Tensor, near: Tensor) -> Params:
    """Two components: one of the rows that are near, one of the others."""
    totals = model.emission.zeros(1, 2)
    for rows in blocks(slice(0, len(model.x)), 2):
        responsibility = torch.stack([near[rows], 1 - near[rows]], -1) * weight[rows].unsqueeze(-1)
        model.emission.accumulate(totals, None, model.x[rows], responsibility.unsqueeze(1), rows)
    return model.emission.maximise(None, totals)


def _around(x: Tensor, row: int, count: int) -> Tensor:
    """1.0 for the rows nearest to this one, measured in each column's mean distance from it; 0.0 for the others."""
    centre = x[row].double()
    unit = torch.zeros(x.shape[1], dtype=torch.float64)
    for block in x.split(4096):
        unit += (block.double() - centre).abs().nan_to_num().sum(0)
    unit = torch.where(unit > 0, unit / len(x), 1.0)
    far = torch.cat([((block.double() - centre) / unit).nan_to_num().square().sum(1) for block in x.split(4096)])
    near = torch.zeros(len(x), dtype=torch.float64)
    near[far.topk(min(count, len(x)), largest=False).indices] = 1.0
    return near


def _log(value: float) -> float:
    return math.log(value) if value > 0 else -math.inf
