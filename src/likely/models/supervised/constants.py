"""The learned constants of a likelihood, by name: what a fit says of y that does not depend on x."""

from __future__ import annotations

import itertools
import math
from typing import Any

import torch
from torch import Tensor

from ...inference import Posterior

__all__ = ["constants_of"]


@torch.no_grad()
def constants_of(model: Any, posterior: Posterior) -> dict[str, float]:
    """Σₛ wₛ cₛ of each constant c over the members s of the posterior; {} where the likelihood learned none.

    >>> from likely import Regressor
    >>> model = Regressor().fit([[0.0], [1.0], [2.0], [3.0]], [1.0, 1.0, 2.0, 4.0])
    >>> {name: round(value, 3) for name, value in constants_of(model, model.posterior_).items()}
    {'scale': 0.5}
    """
    if model.likelihood_.ordered:
        names = [f"{low} | {high}" for low, high in itertools.pairwise(model.classes_)]
        cuts = getattr(model, "cut_points_", None)
        return {} if cuts is None or cuts.ndim != 1 else dict(zip(names, cuts.tolist(), strict=True))
    shared = getattr(posterior, "parameters", {}).get("shared")
    count = model.likelihood_.shared(model.target_)
    if shared is None or not count or model.plan_.coupling:
        return {}
    outputs = math.prod(model.plan_.positions)
    values = shared.double().reshape(len(shared), -1, count)
    if values.shape[1] not in (1, outputs):
        return {}
    told = model.likelihood_.constants(values, model.target_)
    heads = [""] if values.shape[1] == 1 else [f"y{place}: " for place in range(outputs)]
    means = {name: _mean(posterior.weights, value) for name, value in told.items()}
    return {head + name: value for name, own in means.items() for head, value in zip(heads, own, strict=True)}


def _mean(weights: Tensor, values: Tensor) -> list[float]:
    """Over the members, (members, outputs) becomes (outputs,)."""
    return list(torch.tensordot(weights.to(values), values, 1).tolist())
